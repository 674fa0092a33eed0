"""A stream of one node's journal as its manifest says it: which segments hold which offsets, up to the last whole batch.

Owns finding rows, never their content. The manifest is read again only when it was renamed over, the folder is listed only
when something was added to it, and of an open segment only what is new is looked at. Invariant: an offset belongs to one segment.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import JournalBroken, JournalMissing
from .checksum import CHECKSUM, checksums
from .ipc import Found, FramingBroken, list_batches

FORMAT = 1
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
    holes: tuple[tuple[int, int], ...] = ()


@dataclass
class OpenSegment:
    """A segment that grows: the whole batches found so far, with the offset at which each begins."""

    path: Path
    first: int
    batches: list[Found] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    broken: str = ""
    """Why nothing after the last batch can be read, if so."""

    @property
    def next(self) -> int:
        return self.offsets[-1] + self.batches[-1].rows if self.batches else self.first

    def look(self) -> None:
        """Take up the batches that were added since."""
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            try:
                found = list_batches(file, self.batches[-1].end if self.batches else 0, size)
                self.broken = ""
            except FramingBroken as error:
                self.broken, found = str(error), []
        for batch in found:
            self.offsets.append(self.next)
            self.batches.append(batch)

    def batches_of(self, first: int, next: int) -> list[tuple[Found, int]]:
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
        self.sealed: list[Segment] = []
        self.holes: list[tuple[int, int]] = []
        """Offsets that are gone for good, as the manifest says of its segments."""
        self.open: list[OpenSegment] = []
        self._manifest_is: tuple[int, ...] = ()
        self._folder_was = -1
        self._open_names: list[str] = []
        self._sealed_names: list[str] = []

    @property
    def next(self) -> int:
        """The offset after the last row that is there."""
        sealed = [segment.next for segment in self.sealed[-1:]]
        return max([self.first, *sealed, *(segment.next for segment in self.open[-1:])])

    def look(self) -> None:
        """Take up what was added since. A file that vanished was sealed meanwhile: look again."""
        for _ in range(20):
            try:
                self._read_manifest()
                self._list_open()
                if not self._read_manifest():  # what was sealed between the two would be in neither
                    self._miss_manifest()
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
            self._manifest_is, self.sealed, self.holes = (), [], []  # nothing was sealed yet
            return False
        is_now = (status.st_ino, status.st_mtime_ns, status.st_size)
        if is_now == self._manifest_is:
            return False
        table = parse_manifest(path, path.read_bytes(), self.stream)
        self.node, self.first, self.sealed, self.holes = table.node, table.first, table.segments, table.holes
        self._manifest_is = is_now
        return True

    def _miss_manifest(self) -> None:
        """Raises JournalBroken where there is none and sealed segments are that no open one stands beside: they had been in it."""
        if not self._manifest_is:
            opened = {name[:20] for name in self._open_names}
            alone = [name for name in self._sealed_names if name[:20] not in opened]
            if alone:
                raise JournalBroken(
                    f"{self.folder / MANIFEST} is not there, and {len(alone)} sealed segments are, from {alone[0]} on: "
                    "the node makes it anew when it starts again"
                )

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
            segment = known.get(name) or OpenSegment(self.folder / name, first)
            segment.look()
            kept.append(segment)
        self.open = _cut(kept)
        if self.open and not self.node:
            self.node = read_node(self.open[0])

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
    holes: list[tuple[int, int]]


def parse_manifest(path: Path, content: bytes, stream: str) -> Manifest:
    """A manifest whose segments follow each other; raises JournalBroken for anything else."""
    try:
        table: dict[str, Any] = json.loads(content)
        if table["format"] != FORMAT:
            raise JournalBroken(f"{path}: format {table['format']} is not one that this version reads ({FORMAT})")
        segments = [_segment(entry) for entry in table["segments"]]
        holes = sorted(hole for segment in segments for hole in segment.holes)
        node, first, following, named = str(table["node"]), int(table["first"]), int(table["next"]), table["stream"]
    except (ValueError, KeyError, TypeError) as error:
        raise JournalBroken(f"{path} is no manifest of a journal: {error!r}") from error
    if named != stream:
        raise JournalBroken(f"{path} is of the stream {named}, not {stream}")
    for before, after in itertools.pairwise(segments):
        if before.next > after.first or not is_gone(before.next, after.first, holes):
            raise JournalBroken(f"{path}: {after.file} does not follow {before.file}")
    if segments and (segments[-1].next > following or not segments[0].first <= first <= following):
        raise JournalBroken(f"{path}: first {first} and next {following} are not those of its segments")
    return Manifest(node, first, following, segments, holes)


def tells_of(path: Path) -> bool:
    """Whether the manifest beside a sealed segment names it: then it was not retention that took it."""
    try:
        table = json.loads((path.parent / MANIFEST).read_bytes())
        return any(entry["file"] == path.name for entry in table["segments"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_gone(first: int, next: int, holes: Sequence[tuple[int, int]]) -> bool:
    """Whether the holes take all of these offsets; they are in order."""
    for start, end in holes:
        if start <= first < end:
            first = end
    return first >= next


def _segment(entry: dict[str, Any]) -> Segment:
    holes = tuple((int(first), int(next)) for first, next in entry.get("holes") or ())
    bounds = {name: entry.get(name) for name in ("time_min", "time_max", "arrival_min", "arrival_max")}
    file, first, following = entry["file"], int(entry["first"]), int(entry["next"])
    if not _SEALED.fullmatch(file) or first >= following:
        raise ValueError(f"{file} with offsets {first} to {following}")
    return Segment(file, first, following, **bounds, holes=holes)


def _cut(segments: list[OpenSegment]) -> list[OpenSegment]:
    """Rows at or past the first of the next file do not count: a disk refused to keep them, and the next file has them."""
    for before, after in itertools.pairwise(segments):
        while before.batches and before.offsets[-1] >= after.first:
            before.batches.pop()
            before.offsets.pop()
        if before.next > after.first:
            last = before.batches[-1]
            before.batches[-1] = last._replace(rows=after.first - before.offsets[-1])
    return segments


def times_of(segment: Segment | OpenSegment) -> tuple[int, int] | None:
    """The times of its first and its last rows (microseconds since 1970); none where they cannot be told."""
    if isinstance(segment, Segment):
        is_told = segment.time_min is not None and segment.time_max is not None
        return (segment.time_min or 0, segment.time_max or 0) if is_told else None
    ends = [] if not segment.batches else [segment.batches[0], segment.batches[-1]]
    try:
        found = [pc.min_max(read_batch(segment, batch).column("time").cast(pa.int64())).as_py() for batch in ends]
    except (pa.ArrowException, OSError, ValueError, KeyError):
        return None
    times = [time for bounds in found for time in bounds.values() if time is not None]
    return (min(times), max(times)) if times else None


def read_batch(segment: OpenSegment, batch: Found) -> pa.RecordBatch:
    """One of an open segment's batches. Its buffers are as long as it says, or ArrowInvalid is raised; its rows may be damaged."""
    with segment.path.open("rb") as file:
        schema = pa.ipc.read_schema(pa.ipc.read_message(file))
        file.seek(batch.start)
        found = pa.ipc.read_record_batch(pa.ipc.read_message(file), schema)
    found.validate()
    return found


def read_node(segment: OpenSegment) -> str:
    """The node that a segment's first sound row names; empty while there is none."""
    if not segment.batches:
        return ""
    try:
        batch = read_batch(segment, segment.batches[0])
        batch.validate(full=True)
        sound = np.flatnonzero(checksums(batch) == batch.column(CHECKSUM).to_numpy(zero_copy_only=False))
        return str(batch.column("node")[int(sound[0])].as_py())
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        raise JournalBroken(
            f"{segment.path}: its beginning is damaged, and no manifest says whose it is: {error}"
        ) from error
