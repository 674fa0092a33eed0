"""The rows of a range of offsets of one segment, as Arrow record batches, each row checked.

Owns reading and judging rows. A damaged row is returned with its offset and a `fault`; offsets that cannot be read are
returned as one such row for each extent (lost.py). Invariant: every requested offset is returned once, except those that
the manifest lists as missing and those that the part leaves out. If the part may lose rows and their file was deleted,
none is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import JournalBroken, JournalMissing
from .checksum import CHECKSUM, checksums
from .columns import FAULT, FAULT_BYTES, FAULT_NEXT
from .extents.lost import Lost, Offsets, belonging, lost_rows
from .extents.planned import check_read
from .recovery import File, decode, find_misfit, read_head, recounted, scan
from .segments import missing_of, tells_of

_ROWS, _BYTES = 32_768, 24 << 20  # of one batch on its way to Spark


@dataclass(frozen=True)
class Part:
    """Rows of one segment: those with offsets from `first` up to, not including, `next`."""

    folder: str
    file: str
    node: str
    first: int
    next: int
    segment_first: int
    segment_next: int
    missing: tuple[tuple[int, int], ...] = ()
    time: int = 0
    """A time in the segment, for rows whose own time is lost."""
    ranges: tuple[tuple[int, int, int], ...] = ()
    """For an open segment: the first byte of each batch, its first offset, and how many of its rows count."""
    lost: tuple[Lost, ...] = ()
    """For an open segment: offsets that no sound frame has, and the bytes in their place. They may reach beyond the part."""
    left_out: tuple[tuple[int, int], ...] = ()
    """Offsets that must not be returned."""
    runs: tuple[tuple[str, int, int], ...] = ()
    """The runs of its rows, each with its first offset and the one after its last: for rows whose own run is damaged, and to
    detect rows of other runs.
    """
    last_rows: tuple[tuple[int, int], ...] = ()
    """Offsets of rows, with the checksum that each had when the part was planned."""
    may_lose: bool = False
    """Whether to skip rows that retention deleted before they were read."""

    @property
    def is_open(self) -> bool:
        """True if its file was not sealed when it was planned. All of its rows may be lost: then it has no ranges."""
        return self.file.endswith(".arrows")


@dataclass(frozen=True)
class Reading:
    """The rows and columns to read."""

    schema: pa.Schema
    """The stream's columns, in the order of the checksum."""
    wanted: pa.Schema
    """The requested columns, in the order that Spark expects."""
    verify: bool = True


def read_part(part: Part, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The part's rows with the wanted columns."""
    try:
        yield from read_there(part, reading)
    except JournalMissing:
        if not part.may_lose:
            raise


def read_there(part: Part, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows of an existing segment; raises JournalMissing if it was deleted meanwhile."""
    due = offsets_of(part.first, part.next, part.missing)
    has_come = np.zeros(len(due), np.bool_)
    for raw in gather(read_raw(part, reading.schema)):
        offsets, batch, why, _ = raw
        low, high = np.searchsorted(offsets, (part.first, part.next))
        if low >= high:
            continue
        has_come[np.searchsorted(due, offsets[low:high])] = True
        if batch is None:
            yield from missing_rows(part, reading, offsets, (), why, raw.bytes)
            continue
        for piece, its_offsets in cut(batch.slice(low, high - low), offsets[low:high]):
            if part.left_out:
                wanted = are_wanted(its_offsets, part)
                piece, its_offsets = piece.filter(pa.array(wanted)), its_offsets[wanted]
            judged = judge(piece, its_offsets, part, reading)
            if reading.verify:
                check_read(judged, its_offsets, part)
            yield finish(judged, reading)
    why = f"unreadable: no sound frame of {part.file} has it"
    yield from missing_rows(part, reading, due[~has_come], part.lost, why)


def missing_rows(
    part: Part, reading: Reading, offsets: Offsets, known: Sequence[Lost], why: str, size: int | None = None
) -> Iterator[pa.RecordBatch]:
    """A row for each extent of offsets, or of known lost rows, that begins in the part."""
    found = list(belonging(offsets, known, part.left_out, part.first, part.next))
    if len(found) == 1 and found[0].next - found[0].first == len(offsets):
        found = [found[0]._replace(bytes=found[0].bytes or size)]
    if found:
        runs = runs_at(part, np.array([each.first for each in found], np.int64))
        yield finish(lost_rows(part.node, part.time, reading.schema, found, why, runs), reading)


def are_wanted(offsets: Offsets, part: Part) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each offset, true unless the part leaves it out."""
    if not part.left_out:
        return np.ones(len(offsets), np.bool_)
    edges = np.array(part.left_out, np.int64)
    index = np.searchsorted(edges[:, 0], offsets, side="right") - 1
    wanted: np.ndarray[Any, np.dtype[np.bool_]] = (index < 0) | (offsets >= edges[index, 1])
    return wanted


def offsets_of(first: int, next: int, missing: tuple[tuple[int, int], ...]) -> Offsets:
    """The offsets of a range for which rows must be returned."""
    offsets = np.arange(first, next, dtype=np.int64)
    for start, end in missing:
        offsets = offsets[(offsets < start) | (offsets >= end)]
    return offsets


class Raw(NamedTuple):
    """Offsets, and their rows or the reason why they cannot be read; then the bytes in their place, if known."""

    offsets: Offsets
    batch: pa.RecordBatch | None
    why: str = ""
    bytes: int | None = None


def read_raw(part: Part, schema: pa.Schema) -> Iterator[Raw]:
    """The segment's batches as in the file, from the one with the first offset on."""
    path = Path(part.folder, part.file)
    if not part.is_open:
        yield from _read_sealed(path, part, schema)
        return
    try:
        with path.open("rb") as file:
            yield from _read_open(file, part, schema)
    except FileNotFoundError:  # sealed since it was planned: the same rows are in a file of another name
        sealed = sorted(path.parent.glob(f"{part.segment_first:020}-*.arrow"))
        if not sealed:
            raise JournalMissing(f"{path} was there and is not any more, nor is the segment sealed from it") from None
        following, missing = int(sealed[0].name[21:41]), missing_of(sealed[0])
        again = {"file": sealed[0].name, "segment_next": following, "missing": missing}
        whole = Part(**{**part.__dict__, **again})
        yield from _read_sealed(sealed[0], whole, schema)


def _read_sealed(path: Path, part: Part, schema: pa.Schema) -> Iterator[Raw]:
    due = offsets_of(part.segment_first, part.segment_next, part.missing)
    why = "its footer lists other rows than the manifest"
    try:
        batches = _batches_of_file(path, schema)
    except FileNotFoundError:
        gone = "it was removed" if tells_of(path) else f"retention removed offset {part.first} before it was read"
        raise JournalMissing(f"{path} no longer exists: {gone}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        batches, why = [], str(error)
    rows = sum(batch.num_rows for batch in batches)
    if rows not in (len(due), part.segment_next - part.segment_first):
        yield from _scan_sealed(path, part, schema, due, why)
        return
    placed = due if rows == len(due) else np.arange(part.segment_first, part.segment_next, dtype=np.int64)
    at = 0
    for batch in batches:
        offsets = placed[at : at + batch.num_rows]
        at += batch.num_rows
        if len(offsets) and offsets[-1] >= part.first and offsets[0] < part.next:
            yield _without_holes(_checked(offsets, batch), due) if placed is not due else _checked(offsets, batch)


def _batches_of_file(path: Path, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The batches in the file's footer. They stay in the mapped file until their rows are read."""
    with pa.memory_map(str(path)) as mapped:
        reader = pa.ipc.open_file(mapped)
        _check_schema(reader.schema, schema)
        return [recounted(reader.get_batch(index)) for index in range(reader.num_record_batches)]


def _scan_sealed(path: Path, part: Part, schema: pa.Schema, due: Offsets, why: str) -> Iterator[Raw]:
    """The rows that a node would recover from a damaged sealed segment; its frames are like those of an open one."""
    with path.open("rb") as opened:
        file = File(opened.fileno())
        written, begin = read_head(file, schema, is_sealed=True)
        found = scan(file, written, begin, part.segment_first)
        if not found:
            yield Raw(due, None, f"unreadable: {why}", file.size)
        for each in found:
            if each.offset < part.next and each.offset + each.rows > part.first:
                frame = file.find(each.start)
                batch = None if frame is None else decode(frame, written)
                if batch is not None:
                    offsets = np.arange(each.offset, each.offset + each.rows, dtype=np.int64)
                    yield _without_holes(_checked(offsets, batch), due)


def _without_holes(raw: Raw, due: Offsets) -> Raw:
    """For a segment that was damaged after it was sealed and whose manifest was rebuilt: its missing ranges are still in the file."""
    is_due = np.isin(raw.offsets, due)
    return raw._replace(offsets=raw.offsets[is_due], batch=raw.batch and raw.batch.filter(pa.array(is_due)))


def _read_open(opened: Any, part: Part, schema: pa.Schema) -> Iterator[Raw]:
    file = File(opened.fileno())
    written, _ = read_head(file, schema)
    try:
        _check_schema(written, schema)
    except ValueError as error:
        whole = offsets_of(part.segment_first, part.segment_next, part.missing)
        yield Raw(whole, None, f"unreadable: {error}", file.size)
        return
    for start, first, rows in part.ranges:
        offsets = np.arange(first, first + rows, dtype=np.int64)
        frame = file.find(start)
        batch = None if frame is None else decode(frame, written)
        size = None if frame is None else frame.end - frame.start
        if batch is None:
            yield Raw(offsets, None, "unreadable: the batch is damaged", size)
        elif batch.num_rows < rows:
            raise JournalBroken(f"{Path(part.folder, part.file)}: it was overwritten while it was read")
        else:
            yield _checked(offsets, batch)._replace(bytes=size)


def _check_schema(written: pa.Schema, wanted: pa.Schema) -> None:
    """A segment may be written by a newer or an older version; raises ValueError for any other schema."""
    if misfit := find_misfit(written, wanted):
        raise ValueError(misfit)


def _checked(offsets: Offsets, batch: pa.RecordBatch) -> Raw:
    """A batch whose inner lengths and texts are valid; otherwise reading it could access memory outside of it."""
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        return Raw(offsets, None, f"unreadable: {error}")
    return Raw(offsets, batch.slice(0, len(offsets)))


def gather(raws: Iterator[Raw]) -> Iterator[Raw]:
    """Combine small batches, as a journal under low load has them."""
    held: list[pa.RecordBatch] = []
    offsets: list[Offsets] = []
    rows = size = 0

    def put_together() -> Raw:
        whole = held[0] if len(held) == 1 else pa.Table.from_batches(held).combine_chunks().to_batches()[0]
        return Raw(np.concatenate(offsets), whole)

    for raw in raws:
        its_offsets, batch = raw.offsets, raw.batch
        if batch is not None and batch.num_rows == 0:
            continue
        if held and (batch is None or rows + batch.num_rows > _ROWS or size + batch.nbytes > _BYTES):
            yield put_together()
            held, offsets, rows, size = [], [], 0, 0
        if batch is None:
            yield raw
        else:
            held.append(batch)
            offsets.append(its_offsets)
            rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield put_together()


def cut(batch: pa.RecordBatch, offsets: Offsets) -> Iterator[tuple[pa.RecordBatch, Offsets]]:
    """Split large batches into pieces that are small compared to the memory."""
    rows = max(1, min(_ROWS, int(batch.num_rows * _BYTES / max(1, batch.nbytes))))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows), offsets[start : start + rows]


def judge(batch: pa.RecordBatch, offsets: Offsets, part: Part, reading: Reading) -> pa.RecordBatch:
    """The rows with their fault. A row's offset is a field like others, and may be damaged."""
    rows = batch.num_rows
    given = batch.column("journal_offset").to_numpy(zero_copy_only=False)
    faults: list[str | None] | None = None
    wrong = given != offsets
    if reading.verify:
        claimed = batch.column(CHECKSUM).to_numpy(zero_copy_only=False)
        wrong = wrong | (checksums(batch) != claimed)
    if wrong.any():
        faults = ["crc" if each else None for each in wrong.tolist()]
        for index in np.flatnonzero(given != offsets):
            faults[index] = f"journal_offset: the row says {given[index]}"
        batch = batch.set_column(batch.schema.get_field_index("journal_offset"), "journal_offset", pa.array(offsets))
        batch = batch.set_column(batch.schema.get_field_index("time"), "time", sound_times(batch, wrong, part))
        batch = batch.set_column(batch.schema.get_field_index("run"), "run", known_runs(batch, offsets, wrong, part))
    fault = pa.array(faults, pa.string()) if faults else pa.nulls(rows, pa.string())
    there = {*batch.schema.names}  # an older writer lacks columns that may be null
    columns = [
        batch.column(field.name).cast(field.type) if field.name in there else pa.nulls(rows, field.type)
        for field in reading.schema
    ]
    columns += [fault, pa.nulls(rows, pa.int64()), pa.nulls(rows, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=[*reading.schema.names, FAULT, FAULT_NEXT, FAULT_BYTES])


def sound_times(batch: pa.RecordBatch, wrong: np.ndarray[Any, np.dtype[np.bool_]], part: Part) -> pa.Array:
    """The times. Those of damaged rows are replaced by one nearby, because rows are partitioned by their day."""
    times = batch.column("time").view(pa.int64()).to_numpy(zero_copy_only=False).copy()
    sound = np.flatnonzero(~wrong)
    times[wrong] = times[sound[0]] if len(sound) else part.time
    return pa.array(times).view(pa.timestamp("us", "UTC"))


def known_runs(
    batch: pa.RecordBatch, offsets: Offsets, wrong: np.ndarray[Any, np.dtype[np.bool_]], part: Part
) -> pa.Array:
    """The run of each row; a damaged row takes it from the rows around it, because a row is identified by its run and offset."""
    own_runs, runs = batch.column("run").to_pylist(), runs_at(part, offsets)
    return pa.array(
        [run if is_wrong and run else own for own, run, is_wrong in zip(own_runs, runs, wrong, strict=True)],
        pa.string(),
    )


def runs_at(part: Part, offsets: Offsets) -> list[str]:
    """The run of each offset; empty if the part does not know it."""
    begins = [first for _, first, _ in part.runs]
    index = np.searchsorted(begins, offsets, side="right") - 1
    return [
        part.runs[at][0] if at >= 0 and offset < part.runs[at][2] else ""
        for at, offset in zip(index, offsets, strict=True)
    ]


def finish(batch: pa.RecordBatch, reading: Reading) -> pa.RecordBatch:
    """The rows with the requested columns."""
    columns = [batch.column(field.name) for field in reading.wanted]
    kept = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(columns, reading.wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(kept, schema=reading.wanted)
