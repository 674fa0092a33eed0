"""Finds which of its node's runs wrote the rows of a journal, and where each begins and ends.

Owns distinguishing runs by the rows themselves. A run is a node's from one start to the next: a random number that every row bears, so
that rows of a replaced journal, or of one restored from a copy, are never taken for others with the same offsets. A run's rows
follow each other. What is damaged between two runs counts as the later one's. Invariant: the spans of a node follow each other from its
first offset to its last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from ..transforms.ranges import Range, clipped, merged
from .checksum import CHECKSUM
from .columns import FAULT, stream_schema
from .parts import Journals
from .rows import Part, Reading, read_part
from .segments import Segment, StreamFolder

_STEP_MAX = 1 << 16
_RUNS = "runs"
"""The stream in which a node records its runs."""


class RunSpan(NamedTuple):
    """Offsets from `first` up to, not including, `next`: all of one run."""

    run: str
    first: int
    next: int


class RunRow(NamedTuple):
    """A sound row: where it is, and by what it is known."""

    offset: int
    run: str
    crc: int


class Runs:
    """The runs of one stream in the journals of one or several nodes, as far as they were looked at."""

    def __init__(self, journals: Journals) -> None:
        self.journals = journals
        schema = stream_schema(journals.stream)
        names = ("journal_offset", "run", CHECKSUM)
        wanted = pa.schema([*(schema.field(name) for name in names), pa.field(FAULT, pa.string())])
        self._reading = Reading(schema, wanted)
        self._known: dict[str, dict[tuple[object, ...], list[RunSpan]]] = {}
        self._spans: dict[str, tuple[object, list[RunSpan]]] = {}

    def forget(self, node: str) -> None:
        """Forget what was looked at of a node."""
        self._known.pop(node, None)
        self._spans.pop(node, None)

    def spans(self, node: str) -> list[RunSpan]:
        """The runs of a node's journal, in order."""
        folder = self.journals.folders[node]
        signature, found = self._spans.get(node, (None, []))
        if signature != folder.signature:
            found = self._find_spans(node, folder)
            self._spans[node] = folder.signature, found
        return found

    def _find_spans(self, node: str, folder: StreamFolder) -> list[RunSpan]:
        known = self._known.get(node, {})
        found, named = list[RunSpan](), list[RunSpan]()
        kept: dict[tuple[object, ...], list[RunSpan]] = {}
        for key, first, next, known_run in _groups(folder):
            named += [RunSpan(known_run, first, next)] if known_run else []
            kept[key] = known[key] if key in known else self._spans_of(node, first, next, known_run)
            for span in kept[key]:
                if found and found[-1].run == span.run:
                    found[-1] = found[-1]._replace(next=span.next)
                else:
                    found.append(span)
        self._known[node] = kept
        return _joined(found or named, folder)  # where no row of the journal is sound the manifest names the runs

    def row_at(self, node: str, offset: int) -> RunRow | None:
        """The row of an offset, where it is there and sound."""
        folder = self.journals.folders.get(node)
        if folder is None or not folder.first <= offset < folder.next:
            return None
        return next(iter(self._read(node, offset, offset + 1)), None)

    def last_row(self, node: str, low: int, high: int) -> RunRow | None:
        """The last sound row from one offset up to, not including, another."""
        missing, width = self.journals.folders[node].missing, 1
        while high > low:
            span = next((span for span in missing if span[0] < high <= span[1]), None)
            if span is not None:
                high = span[0]
                continue
            begin = max(low, high - width)
            rows = self._read(node, begin, high)
            if rows:
                return rows[-1]
            high, width = begin, min(width * 16, _STEP_MAX)
        return None

    def _read(self, node: str, first: int, next: int) -> list[RunRow]:
        found: list[RunRow] = []
        for part in self.journals.parts({node: first}, {node: next}, may_lose=True):
            for batch in read_part(part, self._reading):
                rows = batch.to_pylist()
                found += [
                    RunRow(row["journal_offset"], row["run"], row[CHECKSUM]) for row in rows if row[FAULT] is None
                ]
        return found

    def _spans_of(self, node: str, low: int, high: int, known_run: str) -> list[RunSpan]:
        """The runs between two offsets; `known_run` is the run of the first row if it is known."""
        found: list[RunSpan] = []
        while (row := self.last_row(node, low, high)) is not None:
            first = low if row.run == known_run else self._begin_of(node, row, low)
            found.append(RunSpan(row.run, first, high))
            high = first
        return found[::-1]

    def _begin_of(self, node: str, row: RunRow, low: int) -> int:
        """The offset after the last sound row of another run before a row; `low` without one."""
        first = self._first_row(node, low, row.offset + 1) or row
        if first.run == row.run:
            return low
        begin, end, other = first.offset + 1, row.offset, first
        while begin < end:
            middle = (begin + end) // 2
            before = self.last_row(node, first.offset, middle + 1) or first
            if before.run == row.run:
                end = before.offset
            else:
                begin, other = middle + 1, before
        return other.offset + 1

    def _first_row(self, node: str, low: int, high: int) -> RunRow | None:
        missing, width = self.journals.folders[node].missing, 1
        while low < high:
            span = next((span for span in missing if span[0] <= low < span[1]), None)
            if span is not None:
                low = span[1]
                continue
            rows = self._read(node, low, min(high, low + width))
            if rows:
                return rows[0]
            low, width = low + width, min(width * 16, _STEP_MAX)
        return None


def _groups(folder: StreamFolder) -> Iterator[tuple[tuple[object, ...], int, int, str]]:
    """Stretches of a journal that are likely of one run: what they are known by, where they begin and end, and the run that the manifest
    names for the first row.
    """
    sealed: list[list[Segment]] = []
    for segment in folder.sealed:
        if segment.next <= folder.first:
            continue
        if sealed and segment.run and sealed[-1][-1].run == segment.run:
            sealed[-1].append(segment)
        else:
            sealed.append([segment])
    for group in sealed:
        first, next = max(group[0].first, folder.first), group[-1].next
        yield (group[0].file, group[-1].file, first), first, next, group[0].run
    for opened in folder.open:
        first, next = max(opened.first, folder.first), opened.next
        if first < next:
            yield (opened.path.name, opened.inode, opened.copies, first, next), first, next, ""


def _joined(spans: list[RunSpan], folder: StreamFolder) -> list[RunSpan]:
    """Spans that leave nothing out between the first and the last offset."""
    if not spans:
        return []
    begins = [folder.first, *(before.next for before in spans[:-1])]
    ends = [*begins[1:], folder.next]
    return [span._replace(first=first, next=next) for span, first, next in zip(spans, begins, ends, strict=True)]


def read_follows(paths: str) -> dict[str, str | None]:
    """For each run whose start the journals record, the run that it follows; None: it is the first of its journal."""
    journals, schema = Journals(paths, _RUNS), stream_schema(_RUNS)
    journals.look()
    wanted = pa.schema([*(schema.field(name) for name in ("run", "kind", "follows_run")), pa.field(FAULT, pa.string())])
    found: dict[str, str | None] = {}
    for part in journals.parts({}, journals.nexts(), may_lose=True):
        for batch in read_part(part, Reading(schema, wanted)):
            began = (row for row in batch.to_pylist() if row[FAULT] is None and row["kind"] == "began")
            found |= {row["run"]: row["follows_run"] for row in began}
    return found


RangesByRun = Mapping[str, Mapping[str, Sequence[Range]]]
"""Offsets by node and run. What is kept of no run, as older versions did, counts for every run of its node."""
_ANY = ""


def ranges_by_run(given: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]) -> dict[str, dict[str, list[Range]]]:
    """As they come from JSON, where ranges are lists."""
    return {
        node: {run: [(first, next) for first, next in ranges] for run, ranges in runs.items()}
        for node, runs in given.items()
    }


def ranges_of_run(ranges: RangesByRun, node: str, run: str) -> list[Range]:
    """The offsets of a run, under whatever name its journal is read, in order."""
    own = [each for runs in ranges.values() for each in runs.get(run, [])] if run != _ANY else []
    return merged([*own, *ranges.get(node, {}).get(_ANY, [])])


def ranges_in(ranges: RangesByRun, spans: Iterable[RunSpan], node: str) -> list[Range]:
    """The offsets of a journal that are in the ranges."""
    return [each for span in spans for each in clipped(ranges_of_run(ranges, node, span.run), span.first, span.next)]


def with_runs(part: Part, spans: Iterable[RunSpan], last_rows: Iterable[tuple[int, int]] = ()) -> Part:
    """A part that knows the runs of its rows, and the checksums of some of them."""
    within = (span._replace(first=max(span.first, part.first), next=min(span.next, part.next)) for span in spans)
    runs = tuple(span for span in within if span.first < span.next)
    return replace(part, runs=runs, last_rows=tuple(each for each in last_rows if part.first <= each[0] < part.next))
