"""A stream of one node's journal as its manifest says it: which segments hold which offsets, up to the last whole batch.

Owns finding rows, never their content. The manifest is read again only when it was renamed over, the folder is listed only
when something was added to it, and of an open segment only what is new is looked at. Invariant: an offset belongs to one segment.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import JournalBroken, JournalMissing
from .columns import stream_schema
from .extents.lost import Lost
from .recovery import Batch, File, decode, may_be_torn, read_head, scan, sound_rows

FORMAT = 2
_SAMPLE_BYTES = 1 << 16
SKIPPED = 1_000_000
"""Offsets that a node leaves out after a power cut, as in journal/src/recover.rs."""
MANIFEST = "manifest.json"
_OPEN = re.compile(r"(\d{20})\.arrows")
_SEALED = re.compile(r"\d{20}-\d{20}\.arrow")


class Segment(NamedTuple):
    """A sealed segment, as the manifest has it."""

    file: str
    first: int
    next: int
    time_min: int | None = None
    time_max: int | None = None
    arrival_min: int | None = None
    arrival_max: int | None = None
    missing: tuple[tuple[int, int], ...] = ()
    run: str = ""
    """The run that wrote its rows, as the manifest says; empty where it does not."""


@dataclass
class OpenSegment:
    """A segment that grows: the batches that count so far, with the offset at which each begins."""

    path: Path
    first: int
    ours: pa.Schema
    """The columns of its stream: what a damaged beginning is read with."""
    batches: list[Batch] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    bound: int | None = None
    """The offset at which the next file begins. Offsets missing before it were lost, or skipped after a power cut."""
    tail_bytes: int = 0
    """Bytes after the last batch that cannot be read yet."""
    inode: int = 0
    """Which file of that name it is."""
    written_us: int = 0
    """Time of its last write at the last look (microseconds since 1970). Its file may be sealed and removed since."""
    copies: int = 0
    """How often other rows were written into the file, as by a copy that was put back: what was known of it is forgotten."""
    _begin: int = 0
    _at: int = 0
    _samples: list[tuple[int, int, int]] = field(default_factory=list)
    """The first byte of its first and of its last whole batch, how many bytes of them are compared, and their checksum."""

    @property
    def rows_next(self) -> int:
        """The offset after its last row."""
        return self.offsets[-1] + self.batches[-1].rows if self.batches else self.first

    @property
    def next(self) -> int:
        """The offset after the last row that was in it. After a power cut a node skips offsets; that is not a loss."""
        if self.bound is None:
            return self.rows_next
        is_skipped = self.bound - self.rows_next >= SKIPPED
        return self.bound - SKIPPED if is_skipped else max(self.bound, self.rows_next)

    def look(self) -> None:
        """Find the batches that were added since. The last one is read again if not all of it counted."""
        with self.path.open("rb", buffering=0) as opened:
            file = File(opened.fileno())
            self.written_us = os.fstat(opened.fileno()).st_mtime_ns // 1000
            schema, begin = read_head(file, self.ours)
            if any(zlib.crc32(file.read(start, size)) != crc for start, size, crc in self._samples):
                self.batches, self.offsets, self._at, self.copies = [], [], 0, self.copies + 1
            if self.batches and not self.batches[-1].is_whole:
                self._at = self.batches.pop().start
                self.offsets.pop()
            self._begin = begin
            self._at = max(self._at, begin)
            is_torn = may_be_torn(self.path.parent.parent)
            for batch in scan(file, schema, self._at, self.rows_next, is_torn=is_torn):
                self.offsets.append(batch.offset)
                self.batches.append(batch)
                self._at = batch.end if batch.is_whole else batch.start
            self.tail_bytes = file.count_tail(self._at)
            ends = [each for each in (*self.batches[:1], *self.batches[-1:]) if each.is_whole]
            sizes = [(each.start, min(each.end - each.start, _SAMPLE_BYTES)) for each in ends]
            self._samples = [(start, size, zlib.crc32(file.read(start, size))) for start, size in sizes]

    def lost(self) -> list[Lost]:
        """Offsets of it that no sound frame has, before its last row or before the file after it, and the bytes in their place."""
        found, at, begin = list[Lost](), self.first, self._begin
        for batch, offset in zip(self.batches, self.offsets, strict=True):
            if offset > at:
                found.append(Lost(at, offset, batch.start - begin))
            at, begin = offset + batch.rows, batch.end
        if self.bound is not None and at < self.next:
            found.append(Lost(at, self.next, self.tail_bytes))
        return found

    def batches_of(self, first: int, next: int) -> list[tuple[Batch, int]]:
        """The batches with rows of these offsets, and where each begins."""
        index = max(0, bisect_right(self.offsets, first) - 1)
        chosen = []
        while index < len(self.batches) and self.offsets[index] < next:
            chosen.append((self.batches[index], self.offsets[index]))
            index += 1
        return chosen


class StreamFolder:
    """One stream of one node: DIR/journal/STREAM."""

    def __init__(self, folder: Path, stream: str) -> None:
        self.folder = folder
        self.stream = stream
        self.node = ""
        self.first = 0
        self._manifest_node = ""
        self._node_from: tuple[str, int, int] | None = None
        self.sealed: list[Segment] = []
        self.missing: list[tuple[int, int]] = []
        """Offsets that are gone for good: as the manifest says of its segments, and those left out after a power cut."""
        self.open: list[OpenSegment] = []
        self._sealed_missing: list[tuple[int, int]] = []
        self._manifest_is: tuple[int, ...] = ()
        self._folder_was = -1
        self._open_names: list[str] = []
        self._sealed_names: list[str] = []

    @property
    def next(self) -> int:
        """The offset after the last row that is there."""
        sealed = [segment.next for segment in self.sealed[-1:]]
        return max([self.first, *sealed, *(segment.next for segment in self.open[-1:])])

    @property
    def has_content(self) -> bool:
        """True if a node wrote anything, readable or not."""
        return bool(self.sealed or self.tail_bytes or any(segment.batches for segment in self.open))

    @property
    def signature(self) -> object:
        """Another one whenever another look found other rows."""
        return (
            self._manifest_is,
            self._folder_was,
            [(each.path.name, each.inode, each.copies, each.next) for each in self.open],
        )

    @property
    def tail_bytes(self) -> int:
        """Bytes of the open segment, after its rows, that cannot be read yet."""
        return sum(segment.tail_bytes for segment in self.open[-1:])

    def look(self) -> None:
        """Find what was added since. A file that vanished was sealed meanwhile: look again."""
        for _ in range(20):
            try:
                self._read_manifest()
                self._list_open()
                if not self._read_manifest():  # what was sealed between the two would be in neither
                    self._miss_manifest()
                    self._find_node()
                    return
            except FileNotFoundError:
                self._folder_was, self._manifest_is = -1, ()
                if not self.folder.is_dir():
                    raise JournalMissing(f"{self.folder} is not there: no stream {self.stream} was written") from None
        raise JournalBroken(f"{self.folder}: its files change faster than they can be read")

    def _read_manifest(self) -> bool:
        """True where it is another one than before."""
        path = self.folder / MANIFEST
        try:
            status = path.stat()
        except FileNotFoundError:
            self._manifest_is, self.first, self.sealed, self._sealed_missing = (), 0, [], []  # nothing was sealed yet
            return False
        is_now = (status.st_ino, status.st_mtime_ns, status.st_size)
        if is_now == self._manifest_is:
            return False
        table = parse_manifest(path, path.read_bytes(), self.stream)
        self._manifest_node, self.first, self.sealed, self._sealed_missing = (
            table.node,
            table.first,
            table.segments,
            table.missing,
        )
        self._manifest_is = is_now
        return True

    def _miss_manifest(self) -> None:
        """Raises JournalBroken if the manifest is missing although sealed segments exist without an open one: it had listed them."""
        if not self._manifest_is:
            opened = {name[:20] for name in self._open_names}
            alone = [name for name in self._sealed_names if name[:20] not in opened]
            if alone:
                raise JournalBroken(
                    f"{self.folder / MANIFEST} is not there, and {len(alone)} sealed segments are, from {alone[0]} on: "
                    "the node creates it again when it starts"
                )

    def _find_node(self) -> None:
        """The node that writes the journal, as its newest rows say. A manifest names the one that began it: a journal may have been copied,
        or its node have been given another name.
        """
        opened = next((segment for segment in reversed(self.open) if segment.batches), None)
        sealed = self.sealed[-1] if self.sealed and opened is None else None
        newest = (opened.path.name, opened.inode, opened.copies) if opened else (sealed.file, 0, 0) if sealed else None
        if newest is None or newest != self._node_from:
            path = self.folder / sealed.file if sealed else None
            found = read_node(opened, self._manifest_node) if opened else read_sealed_node(path) if path else ""
            self.node, self._node_from = found or self._manifest_node, newest

    def _list_open(self) -> None:
        modified = self.folder.stat().st_mtime_ns
        if modified != self._folder_was:
            names = sorted(os.listdir(self.folder))
            self._open_names = [name for name in names if _OPEN.fullmatch(name)]
            self._sealed_names = [name for name in names if _SEALED.fullmatch(name)]
            self._folder_was = modified
        known = {segment.path.name: segment for segment in self.open}
        sealed_firsts = {segment.first for segment in self.sealed}
        after = self.sealed[-1].next if self.sealed else 0
        kept: list[OpenSegment] = []
        for name in self._open_names:
            first = int(name[:20])
            if first in sealed_firsts or first < after:
                continue  # sealed already, and not yet removed
            inode = (self.folder / name).stat().st_ino
            segment = known.get(name)
            if segment is None or segment.inode != inode:  # another journal may have come in its place
                segment = OpenSegment(self.folder / name, first, stream_schema(self.stream), inode=inode)
            segment.look()
            kept.append(segment)
        self.open = _cut(kept)
        skipped = [(each.next, each.bound) for each in self.open if each.bound is not None and each.next < each.bound]
        self.missing = [*self._sealed_missing, *skipped]

    def segments_of(self, first: int, next: int) -> list[Segment | OpenSegment]:
        """The segments with rows of these offsets, oldest first."""
        index = max(0, bisect_right([segment.first for segment in self.sealed], first) - 1)
        chosen: list[Segment | OpenSegment] = [
            segment for segment in self.sealed[index:] if segment.first < next and segment.next > first
        ]
        return chosen + [segment for segment in self.open if segment.first < next and segment.next > first]


class Manifest(NamedTuple):
    node: str
    first: int
    next: int
    segments: list[Segment]
    missing: list[tuple[int, int]]


def parse_manifest(path: Path, content: bytes, stream: str) -> Manifest:
    """A manifest whose segments follow each other; raises JournalBroken for anything else."""
    try:
        table: dict[str, Any] = json.loads(content)
        if table["format"] != FORMAT:
            raise JournalBroken(f"{path} has format {table['format']}: this version reads only format {FORMAT}")
        segments = [_segment(entry) for entry in table["segments"]]
        missing = sorted(span for segment in segments for span in segment.missing)
        node, first, following, named = str(table["node"]), int(table["first"]), int(table["next"]), table["stream"]
    except (ValueError, KeyError, TypeError) as error:
        raise JournalBroken(f"{path} is not a manifest of a journal: {error!r}") from error
    if named != stream:
        raise JournalBroken(f"{path} is of the stream {named}, not {stream}")
    for before, after in itertools.pairwise(segments):
        if before.next > after.first or not is_gone(before.next, after.first, missing):
            raise JournalBroken(f"{path}: {after.file} does not follow {before.file}")
    if segments and (segments[-1].next > following or not segments[0].first <= first <= following):
        raise JournalBroken(f"{path}: first {first} and next {following} do not match its segments")
    return Manifest(node, first, following, segments, missing)


def tells_of(path: Path) -> bool:
    """True if the manifest next to a sealed segment names it: then retention did not remove it."""
    try:
        table = json.loads((path.parent / MANIFEST).read_bytes())
        return any(entry["file"] == path.name for entry in table["segments"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def missing_of(path: Path) -> tuple[tuple[int, int], ...]:
    """The offsets that a sealed segment lacks, as its manifest lists them."""
    try:
        table = json.loads((path.parent / MANIFEST).read_bytes())
        return next((_segment(entry).missing for entry in table["segments"] if entry["file"] == path.name), ())
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def is_gone(first: int, next: int, missing: Sequence[tuple[int, int]]) -> bool:
    """True if all of these offsets are in `missing`, which is sorted."""
    for start, end in missing:
        if start <= first < end:
            first = end
    return first >= next


def _segment(entry: dict[str, Any]) -> Segment:
    missing = tuple((int(first), int(next)) for first, next in entry.get("missing") or ())
    bounds = {name: entry.get(name) for name in ("time_min", "time_max", "arrival_min", "arrival_max")}
    file, first, following = entry["file"], int(entry["first"]), int(entry["next"])
    if not _SEALED.fullmatch(file) or first >= following:
        raise ValueError(f"{file} with offsets {first} to {following}")
    return Segment(file, first, following, **bounds, missing=missing, run=str(entry.get("run") or ""))


def _cut(segments: list[OpenSegment]) -> list[OpenSegment]:
    """Rows at or past the first of the next file do not count: a disk refused to keep them, and the next file has them."""
    for before, after in itertools.pairwise(segments):
        while before.batches and before.offsets[-1] >= after.first:
            before.batches.pop()
            before.offsets.pop()
        if before.rows_next > after.first:
            before.batches[-1] = before.batches[-1]._replace(rows=after.first - before.offsets[-1])
        before.bound = after.first
    return segments


def times_of(segment: Segment | OpenSegment) -> tuple[int, int] | None:
    """The times of its first and its last rows (microseconds since 1970); None if they are not known."""
    if isinstance(segment, Segment):
        is_bounded = segment.time_min is not None and segment.time_max is not None
        return (segment.time_min or 0, segment.time_max or 0) if is_bounded else None
    ends = [] if not segment.batches else [segment.batches[0], segment.batches[-1]]
    try:
        found = [pc.min_max(read_batch(segment, batch).column("time").cast(pa.int64())).as_py() for batch in ends]
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    times = [time for bounds in found for time in bounds.values() if time is not None]
    return (min(times), max(times)) if times else None


def read_batch(segment: OpenSegment, batch: Batch) -> pa.RecordBatch:
    """One of an open segment's batches. Its buffers are as long as it says, or ValueError is raised; its rows may be damaged."""
    with segment.path.open("rb", buffering=0) as opened:
        file = File(opened.fileno())
        schema, _ = read_head(file, segment.ours)
        frame = file.find(batch.start)
        found = None if frame is None else decode(frame, schema)
    if found is None:
        raise ValueError(f"{segment.path}, byte {batch.start}: no batch begins here")
    return found


def read_node(segment: OpenSegment, known_node: str = "") -> str:
    """The node in a segment's first intact row; `known_node` before that row is written."""
    for batch in segment.batches:
        try:
            found = read_batch(segment, batch)
        except ValueError:
            continue
        sound = sound_rows(found)
        if len(sound):
            return str(found.column("node")[int(sound[0])].as_py())
    return known_node


def read_sealed_node(path: Path) -> str:
    """The node that the first sound row of a sealed segment names; empty where none can be read."""
    try:
        with pa.memory_map(str(path)) as mapped:
            reader = pa.ipc.open_file(mapped)
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                sound = sound_rows(batch)
                if len(sound):
                    return str(batch.column("node")[int(sound[0])].as_py())
    except (pa.ArrowException, OSError, ValueError, KeyError):
        pass
    return ""
