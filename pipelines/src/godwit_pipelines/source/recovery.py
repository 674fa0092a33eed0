"""The rows of an open segment that a node would recover: journal/src/decode/scan.rs, in Python.

Owns one rule. A batch counts when its frame is whole and its rows have offsets at or after the ones before it. Offsets
come from rows. Bytes that are not a valid frame count as damage only if a valid frame follows them and a second read
agrees; until then they are an unfinished write, and are not read. Reading the rows themselves is left to rows.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from .checksum import CHECKSUM, checksums
from .ipc import FramingBroken, align_buffers, read_frame_lengths

_MAGIC = b"ARROW1\0\0"  # what a sealed segment begins with; its frames stand behind it
_CONTINUATION = b"\xff\xff\xff\xff"
_CHUNK_BYTES = 1 << 20
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Frame(NamedTuple):
    """A whole message of the stream: where it begins and ends, and the message."""

    start: int
    end: int
    message: pa.ipc.Message

    @property
    def is_schema(self) -> bool:
        return bool(self.message.type == "schema")


class Batch(NamedTuple):
    """A batch that counts: its bytes, its first offset, how many of its rows count, and whether these are all."""

    start: int
    end: int
    rows: int
    offset: int
    is_whole: bool = True


class File:
    """The bytes of a segment at each read; nothing is cached, because a node may be writing."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, at: int, count: int) -> bytes:
        return os.pread(self.descriptor, max(0, min(count, self.size - at)), at)

    def find(self, at: int) -> Frame | None:
        """The frame that begins here, if it is whole."""
        try:
            lengths = read_frame_lengths(self.read, at, self.size)
            if lengths is None:
                return None
            end = at + sum(lengths)
            content = self.read(at, end - at)
            message = pa.ipc.read_message(pa.py_buffer(align_buffers(content))) if len(content) == end - at else None
        except (FramingBroken, pa.ArrowException, OSError, ValueError, EOFError):
            return None
        is_ours = message is not None and message.type in ("schema", "record batch")
        return Frame(at, end, message) if is_ours else None

    def find_behind(self, at: int) -> Frame | None:
        """The first frame after a damaged place. Frames begin at multiples of eight bytes."""
        for begin, chunk in self._written(at):
            place = chunk.find(_CONTINUATION)
            while place >= 0:
                if begin + place > at and (begin + place) % 8 == 0 and (frame := self.find(begin + place)):
                    return frame
                place = chunk.find(_CONTINUATION, place + 1)
        return None

    def count_tail(self, at: int) -> int:
        """Bytes from here up to the last one that is not zero; zeros at the end are preallocated space."""
        end = at
        for begin, chunk in self._written(at):
            written = len(chunk.rstrip(b"\0"))
            end = begin + written if written else end
        return max(0, end - at)

    def _written(self, at: int) -> Iterator[tuple[int, bytes]]:
        """The bytes from here on, in pieces that overlap by the length of a mark."""
        while at < self.size:
            try:
                begin = os.lseek(self.descriptor, at, os.SEEK_DATA)  # room that was only allocated is passed over
            except OSError:
                return
            chunk = self.read(begin, _CHUNK_BYTES)
            if not chunk:
                return
            yield begin, chunk
            at = begin + len(chunk) - (len(_CONTINUATION) - 1 if begin + len(chunk) < self.size else 0)


def read_head(file: File, ours: pa.Schema, *, is_sealed: bool = False) -> tuple[pa.Schema, int]:
    """The schema at the beginning of a segment, and where its batches begin. The current schema replaces a damaged one: the
    checksums decide.
    """
    begin = len(_MAGIC) if is_sealed else 0
    frame = file.find(begin)
    if frame is None:
        return ours, begin
    try:
        schema = pa.ipc.read_schema(frame.message) if frame.is_schema else ours
        is_fit = fits(schema, ours)
    except (pa.ArrowException, OSError, ValueError):  # a name that is not UTF-8 is found only when it is looked at
        return ours, frame.end
    return (schema if is_fit else ours), frame.end


def fits(written: pa.Schema, ours: pa.Schema) -> bool:
    """True if a schema may be of another version of the writer: its checksum is last, and it has our columns."""
    if not len(written) or written[-1].name != CHECKSUM or find_misfit(written, ours):
        return False
    known = (written.field(name) for name in written.names if name in ours.names)
    return all(field.nullable == ours.field(field.name).nullable for field in known)


def find_misfit(written: pa.Schema, ours: pa.Schema) -> str:
    """Why a schema is not one of this stream. A newer writer has unknown columns; an older one lacks columns that may be
    null. A schema with both has a damaged name: an existing column would be read as nulls.
    """
    lacking: list[str] = []
    for field in ours:
        index = written.get_field_index(field.name)
        if index < 0 and field.nullable:
            lacking.append(field.name)
        elif index < 0 or not is_as(written.field(index).type, field.type):
            return f"the column {field.name} is not there as {field.type}"
    is_of_ours = len(written) == len(ours) - len(lacking)
    return "" if is_of_ours or not lacking else f"the column {lacking[0]} is not there, but others that are unknown"


def is_as(written: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether it is of that type. The name of a list's elements, and whether they may be null, do not matter."""
    if pa.types.is_list(written) and pa.types.is_list(wanted):
        return bool(written.value_type.equals(wanted.value_type))
    return bool(written.equals(wanted))


def decode(frame: Frame, schema: pa.Schema) -> pa.RecordBatch | None:
    """The batch of a frame; None if its bytes are not a valid batch."""
    if frame.is_schema:
        return None
    try:
        batch = recounted(pa.ipc.read_record_batch(frame.message, schema))
        batch.validate()
    except (pa.ArrowException, OSError, ValueError):
        return None
    return batch if batch.num_rows else None


def recounted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with its nulls counted again. A count belongs to no row, so a wrong one damages no row; checksums decide."""
    for index, column in enumerate(batch.columns):
        counted = _recounted(column)
        if counted is not column:
            batch = batch.set_column(index, batch.schema.field(index), counted)
    return batch


def _recounted(column: pa.Array) -> pa.Array:
    """The column with the nulls of its bitmap. With a count and without a bitmap, Arrow would read past the end of an empty one."""
    buffers = column.buffers()[: column.type.num_buffers]
    elements = column.values if pa.types.is_list(column.type) else None
    counted_elements = None if elements is None else _recounted(elements)
    if buffers[0] is None and counted_elements is elements:
        return column
    if buffers[0] is not None and 8 * buffers[0].size < column.offset + len(column):
        buffers[0] = None
    children = None if counted_elements is None else [counted_elements]
    return pa.Array.from_buffers(column.type, len(column), buffers, -1, column.offset, children)


def sound_rows(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The rows whose checksum is right."""
    try:
        batch.validate(full=True)
        return np.flatnonzero(checksums(batch) == batch.column(CHECKSUM).to_numpy(zero_copy_only=False))
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return np.empty(0, np.intp)


def find_offset(batch: pa.RecordBatch, expected: int) -> int | None:
    """The offset of a batch's first row; None if no row has it. Rows of a batch have offsets that follow each other."""
    given = batch.column("journal_offset").to_numpy(zero_copy_only=False)
    if given[0] == expected and given[-1] == expected + len(given) - 1:
        return expected
    sound = sound_rows(batch)
    if not len(sound):
        return None
    first = int(given[sound[0]]) - int(sound[0])
    return first if first >= expected else None


def may_be_torn(journal: Path) -> bool:
    """Whether a power cut may have lost a part of the last writes: journal/src/boot.rs, in Python. False while the machine
    is still running; unknown for a journal of another machine.
    """
    try:
        return (journal / "boot").read_bytes() != _BOOT.read_bytes()
    except OSError:
        return True


def scan(file: File, schema: pa.Schema, at: int, expected: int, *, is_torn: bool = False) -> list[Batch]:
    """The valid batches from a frame's first byte on; of the last one the rows up to the last intact row. If `is_torn`, a
    last batch that is not completely intact was never completely on the disk.
    """
    found: list[Batch] = []
    doubtful: int | None = None
    checked_again = seen = -1
    while True:
        frame = file.find(at)
        if frame is None and (frame := file.find_behind(at)) is not None:
            frame = file.find(at) or frame  # the second look: a node may have written it since
        if frame is None:
            break
        seen = frame.end
        batch = decode(frame, schema)
        offset = None if batch is None else find_offset(batch, expected)
        if batch is None or offset is None:
            doubtful = frame.start if doubtful is None else doubtful
            at = frame.end
            continue
        if doubtful is not None and doubtful != checked_again:
            at, checked_again, doubtful = doubtful, doubtful, None
            continue
        doubtful = None
        found.append(Batch(frame.start, frame.end, batch.num_rows, offset))
        at, expected, last = frame.end, offset + batch.num_rows, batch
    if found:
        kept = _without_unsound_end(found[-1], last)
        is_last = found[-1].end == seen
        found[-1:] = [] if is_torn and is_last and len(sound_rows(last)) < last.num_rows else kept
    return found


def _without_unsound_end(found: Batch, batch: pa.RecordBatch) -> list[Batch]:
    """The last batch without the rows after its last intact one: no valid frame follows them yet."""
    sound = sound_rows(batch)
    rows = int(sound[-1]) + 1 if len(sound) else 0
    return [found._replace(rows=rows, is_whole=rows == batch.num_rows)] if rows else []
