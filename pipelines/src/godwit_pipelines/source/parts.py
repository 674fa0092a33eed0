"""The journals behind a source, and the tasks that read a range of their offsets.

Owns which folder is which node and what may be read; where the rows are in a folder is segments.py's. Invariant: the parts
of a range cover every offset of it once, or JournalMissing says which are not there.
"""

from __future__ import annotations

import glob
import itertools
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import ConfigInvalid, JournalBroken, JournalMissing
from ..schemas import SCHEMAS
from .offsets import Span
from .rows import Part
from .segments import OpenSegment, Segment, StreamFolder, is_gone, tells_of, times_of

GO_ON = "failOnDataLoss=false (journal.fail_on_data_loss) continues without them"


class Journals:
    """One stream in the journals of one or several nodes."""

    def __init__(self, paths: str, stream: str, *, rows_per_task: int = 100_000) -> None:
        self.paths = paths
        self.stream = stream
        self.rows_per_task = rows_per_task
        self.folders: dict[str, StreamFolder] = {}
        self.unnamed: list[StreamFolder] = []
        """Folders with bytes that cannot be read, of which nothing says which node wrote them."""
        self._all: dict[Path, StreamFolder] = {}

    def look(self) -> None:
        """Find what was added since, also new nodes that match a glob."""
        for folder in find_folders(self.paths, self.stream):
            if folder not in self._all:
                self._all[folder] = StreamFolder(folder, self.stream)
        folders: dict[str, StreamFolder] = {}
        for found in self._all.values():
            found.look()
            if not found.node and found.has_content:  # no row of it is sound: its other streams name the node
                found.node = find_node_beside(found.folder)
                check_named(found)
            if found.node:
                known = folders.setdefault(found.node, found)
                if known is not found:
                    raise ConfigInvalid(
                        "journal.paths",
                        self.paths,
                        f"has two journals of the node {found.node}, {known.folder} and {found.folder}",
                        hint="name one of them",
                    )
        self.folders = folders
        self.unnamed = [found for found in self._all.values() if not found.node and found.has_content]

    def reopen(self, node: str) -> None:
        """Look at a node's files as if for the first time."""
        known = self.folders.pop(node)
        self._all.pop(known.folder)
        self.look()
        self.folders.setdefault(node, known)

    def firsts(self) -> dict[str, int]:
        return {node: folder.first for node, folder in self.folders.items()}

    def nexts(self) -> dict[str, int]:
        return {node: folder.next for node, folder in self.folders.items()}

    def spans(self, node: str, first: int, next: int) -> list[Span]:
        """The times at which the rows between two offsets were written, as far as segments have them."""
        found: list[Span] = []
        covered = before_us = 0
        for segment in self.folders[node].segments_of(first, next):
            begins_us, ends_us = times_of(segment) or (before_us, before_us)
            rows, took_us = segment.next - segment.first, max(0, ends_us - begins_us)
            low, high = max(first, segment.first), min(next, segment.next)
            at_us = [max(before_us, begins_us + took_us * (at - segment.first) // rows) for at in (low, high)]
            found.append(Span(covered if found else first, high, *at_us))
            covered, before_us = high, at_us[1]
        if not found or covered < next:
            found.append(Span(covered if found else first, next, before_us, before_us))
        return found

    def check_there(self, node: str, first: int, next: int) -> None:
        """Raises JournalMissing where some of these rows are not there any more: before they become a batch, whose offsets
        stay as they are.
        """
        folder = self.folders[node]
        self._check_kept(folder, first, next)
        for segment in self._without_file(folder, first, next):
            is_known = tells_of(folder.folder / segment.file)
            why = "was removed, and not by retention" if is_known else "was removed by retention before it was read"
            rows = f"rows {segment.first} to {segment.next - 1} of {self.stream}"
            raise JournalMissing(f"node {node}: the segment with {rows} {why}; {GO_ON}")

    def _check_kept(self, folder: StreamFolder, first: int, next: int) -> None:
        if first < min(next, folder.first):
            raise JournalMissing(
                f"node {folder.node}: rows {first} to {min(next, folder.first) - 1} of {self.stream} were removed by "
                f"retention before they were read; {GO_ON}"
            )

    def missing_files(self, node: str, first: int, next: int) -> list[tuple[int, int]]:
        """The offsets, of some, of sealed segments whose files are not there."""
        gone = self._without_file(self.folders[node], first, next)
        return [(max(first, segment.first), min(next, segment.next)) for segment in gone]

    def removed_files(self, node: str) -> list[tuple[int, int]]:
        """The offsets of sealed segments that the manifest still names and that somebody removed."""
        folder = self.folders[node]
        gone = self._without_file(folder, folder.first, folder.next)
        return [(segment.first, segment.next) for segment in gone if tells_of(folder.folder / segment.file)]

    def _without_file(self, folder: StreamFolder, first: int, next: int) -> list[Segment]:
        """Segments of these offsets whose file is missing, except those that the manifest lists as lost as a whole."""
        return [
            segment
            for segment in folder.segments_of(first, next)
            if isinstance(segment, Segment)
            and not is_gone(segment.first, segment.next, folder.missing)
            and not (folder.folder / segment.file).exists()
        ]

    def parts(
        self,
        start: Mapping[str, int],
        end: Mapping[str, int],
        *,
        may_lose: bool = False,
        continued: Container[str] = (),
    ) -> list[Part]:
        """The tasks that read each node from its start to its end. `continued` are nodes whose rows before the start were read: what is
        lost and begins before it was reported then. For the others it is reported from the start on.
        """
        parts: list[Part] = []
        for node, next in end.items():
            folder = self.folders.get(node)
            if folder is None and start.get(node) == next:
                continue
            if folder is None:
                raise JournalMissing(f"the journal of node {node} no longer exists: {self.paths}")
            first = start.get(node, folder.first)
            found = [replace(part, may_lose=may_lose) for part in self._parts_of(folder, first, next, may_lose)]
            parts += found if node in continued else _clip(found)
        return parts

    def _parts_of(self, folder: StreamFolder, first: int, next: int, may_lose: bool) -> list[Part]:
        if not may_lose:
            self._check_kept(folder, first, next)
        first = max(first, min(next, folder.first))
        parts: list[Part] = []
        covered = first
        for segment in folder.segments_of(first, next):
            if segment.first > covered and not is_gone(covered, min(next, segment.first), folder.missing):
                raise JournalBroken(
                    f"node {folder.node}: rows {covered} to {segment.first - 1} of {self.stream} are missing from all segments"
                )
            low, high = max(first, segment.first), min(next, segment.next)
            covered = high
            # Of what is gone as a whole there may be no file.
            if not is_gone(low, high, folder.missing):
                parts += self._cut(folder, segment, low, high)
        if covered < next and not is_gone(covered, next, folder.missing):
            raise JournalBroken(
                f"node {folder.node}: {self.stream} ends at {covered}, before {next} that was there: was the journal replaced?"
            )
        return parts

    def _cut(self, folder: StreamFolder, segment: Segment | OpenSegment, low: int, high: int) -> list[Part]:
        """Cut into tasks of equal size, as many as the size needs."""
        count = max(1, round((high - low) / self.rows_per_task))
        edges = [low + (high - low) * index // count for index in range(count + 1)]
        return [_part(folder, segment, *edge) for edge in itertools.pairwise(edges) if edge[0] < edge[1]]


def _clip(parts: list[Part]) -> list[Part]:
    """The parts, of which the first one does not leave an extent that begins before it to a task that is not there."""
    if not parts or parts[0].first <= parts[0].segment_first:
        return parts
    first = parts[0]
    return [replace(first, left_out=((first.segment_first, first.first),)), *parts[1:]]


def _part(folder: StreamFolder, segment: Segment | OpenSegment, first: int, next: int) -> Part:
    if isinstance(segment, Segment):
        return Part(
            folder=str(folder.folder),
            file=segment.file,
            node=folder.node,
            first=first,
            next=next,
            segment_first=segment.first,
            segment_next=segment.next,
            missing=tuple(span for span in folder.missing if span[0] < segment.next and span[1] > segment.first),
            time=segment.time_min or 0,
        )
    batches = segment.batches_of(first, next)
    return Part(
        folder=str(folder.folder),
        file=segment.path.name,
        node=folder.node,
        first=first,
        next=next,
        segment_first=segment.first,
        segment_next=segment.next,
        time=(times_of(segment) or (0, 0))[1] or segment.written_us,
        ranges=tuple((found.start, offset, found.rows) for found, offset in batches),
        lost=tuple(each for each in segment.lost() if each.first < next and each.next > first),
    )


def find_node_beside(folder: Path) -> str:
    """The node of a stream's folder, as the other streams of its journal name it; empty if none does."""
    for stream in ("runs", *SCHEMAS):
        beside = StreamFolder(folder.parent / stream, stream)
        if beside.folder == folder or not beside.folder.is_dir():
            continue
        try:
            beside.look()
        except (JournalBroken, JournalMissing):  # the job that reads that stream reports it
            continue
        if beside.node:
            return beside.node
    return ""


def check_named(folder: StreamFolder) -> None:
    """Raises JournalBroken where rows of a journal are to be read and nothing says which node wrote them."""
    if not folder.node and any(segment.batches for segment in folder.open):
        raise JournalBroken(
            f"{folder.folder}: none of its rows is sound, and no other stream of the journal says which node wrote it"
        )


def find_folders(paths: str, stream: str) -> list[Path]:
    """The stream's folders: each path a data directory or its journal, or a glob of them."""
    found: list[Path] = []
    for path in filter(None, (each.strip() for each in paths.split(","))):
        for journal in map(journal_of, match_path(path)):
            if (journal / stream).is_dir():
                found.append((journal / stream).absolute())
    return found


def check_paths(paths: Iterable[str]) -> None:
    """Raises JournalMissing for a path that is not a node's, and for a glob that matches nothing: a query that does not
    wait for a node would read nothing there.
    """
    for path in paths:
        matches = match_path(path)
        if not matches:
            raise JournalMissing(f"{path} matches no data directory of a node")
        if not any(is_journal(journal_of(match)) for match in matches):
            raise JournalMissing(f"{path} is not the data directory of a node: it has no folder `journal`")


def is_journal(folder: Path) -> bool:
    """True if the folder has the name that a node gives it, or has a folder of one of its streams."""
    return folder.name == "journal" or any((folder / stream).is_dir() for stream in SCHEMAS)


def match_path(path: str) -> list[Path]:
    """The folders of a path. One that is there is itself, whatever characters its name has; else it may be a glob."""
    if Path(path).exists() or not glob.has_magic(path):
        return [Path(path)]
    return [Path(each) for each in sorted(glob.glob(path))]


def journal_of(folder: Path) -> Path:
    """The journal of a data directory; the folder itself may be one."""
    journal = folder / "journal" if (folder / "journal").is_dir() else folder
    if not journal.is_dir():
        raise JournalMissing(f"{folder} is not the data directory of a node")
    return journal
