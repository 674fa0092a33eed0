"""Finds where a query continues in a journal: after the last row that it read. If that row no longer exists, it continues with the
first row that it has not read, by its run.

Owns the difference between a journal that continued and one that was replaced, restored from an older copy, or renamed. Rows are
known by run and offset. A copy shares all of its beginning with what it was copied from, so that what comes before the last run that was
read has been read, too. Invariant: no row that was not read is passed over in silence: it is read, or reported, or the query ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from ..errors import JournalBroken, JournalReplaced
from ..transforms.ranges import count_offsets, without
from ..words import counted
from .offsets import Passed, RunsPassed, reached_by_run
from .parts import GO_ON, Journals
from .runs import RunRow, Runs, RunSpan, read_follows
from .segments import StreamFolder, is_gone

FindCrcs = Callable[[str, int], Collection[int]]
"""The checksums of the rows of a run and offset that landed, if they are known."""


class Begin(NamedTuple):
    """The offset where a node is read on, and the reason if it is not the saved one."""

    offset: int
    why: str = ""


class Positions:
    """The state of the journals that a query compares its saved positions with."""

    def __init__(self, journals: Journals, *, may_lose: bool = False, find_crcs: FindCrcs = lambda *_: ()) -> None:
        self.journals = journals
        self.runs = Runs(journals)
        self.may_lose = may_lose
        self.find_crcs = find_crcs

    def reopen(self, node: str) -> None:
        """Forget what is known of a node's files, and look at them."""
        self.runs.forget(node)
        self.journals.reopen(node)

    def begin(self, node: str, at: int | None, runs: RunsPassed) -> Begin:
        """The offset where a node is read on that had been read up to `at`; None: it had not been read."""
        folder = self.journals.folders[node]
        if at is None:
            return self._begin_of_new(folder, runs)
        last = runs[node][-1] if runs.get(node) else None
        if last is None or last.next != at:
            return self._begin_of_unknown(folder, at)
        row = self.runs.row_at(node, at - 1)
        if row is not None and row.run == last.run:
            if last.crc in (None, row.crc):
                return Begin(at)
            raise JournalReplaced(self._other_rows(folder, row))
        self.runs.forget(node)  # what is known of its runs may be of another journal
        spans = self.runs.spans(node)
        if row is None and folder.first < at <= folder.next and run_at(spans, at - 1) == last.run:
            return Begin(at)  # the row is damaged
        if not spans:
            return Begin(at)
        reached = reached_by_run(runs)
        known = _last_known(spans, reached)
        if known is None:
            return self._begin_of_anew(folder, at, spans[0].run, reached)
        return self._begin_of_other(folder, at, last, known, reached[known.run])

    def _begin_of_new(self, folder: StreamFolder, runs: RunsPassed) -> Begin:
        """For a node that was not read. Another may have the same rows, if one is a copy of the other."""
        reached = reached_by_run(runs)
        for other in self.journals.folders:
            if other != folder.node and (other in runs or other < folder.node):
                for span in self.runs.spans(other):
                    reached[span.run] = max(span.next, reached.get(span.run, 0))
        known = _last_known(self.runs.spans(folder.node), reached) if reached else None
        begin = 0 if known is None else min(reached[known.run], known.next)
        if known is None or begin <= folder.first or not self._is_copied(folder.node, known.run, begin - 1, runs):
            return Begin(folder.first)
        if known.run in {each.run for each in runs.get(folder.node, ())}:
            return Begin(begin)  # of a query whose checkpoint was lost
        return Begin(
            begin, f"its rows up to offset {begin - 1}, of run {known.run}, were already read under another name"
        )

    def _is_copied(self, node: str, run: str, offset: int, runs: RunsPassed) -> bool:
        """True if the row was also read under another name. Copies of one row have one checksum."""
        row = self.runs.row_at(node, offset)
        if row is None or row.run != run:
            return True
        passed = [each.crc for of in runs.values() for each in of if (each.run, each.next) == (run, offset + 1)]
        others = [
            found for other in self.journals.folders if other != node and (found := self.runs.row_at(other, offset))
        ]
        crcs = {*passed, *(found.crc for found in others if found.run == run)} - {None}
        crcs = crcs or {*self.find_crcs(run, offset)}
        return not crcs or row.crc in crcs

    def _begin_of_unknown(self, folder: StreamFolder, at: int) -> Begin:
        """For a position whose run was not saved."""
        if at > folder.next and not self.may_lose:
            raise JournalBroken(
                f"node {folder.node}: {self.journals.stream} ends at {folder.next}, before {at} that was read: was the journal replaced?"
            )
        return Begin(at)

    def _begin_of_other(self, folder: StreamFolder, at: int, last: Passed, known: RunSpan, to: int) -> Begin:
        """For a position before which another row is than the one that was read. Rows of the run `known` were read up to `to`."""
        begin, spans = min(to, known.next), self.runs.spans(folder.node)
        row = self.runs.row_at(folder.node, begin - 1)
        if row is not None and row.run == known.run:
            landed = self.find_crcs(row.run, row.offset)
            if landed and row.crc not in landed:
                raise JournalReplaced(self._other_rows(folder, row))
        if to > known.next and known is spans[-1]:
            if self.may_lose:
                return Begin(at)
            raise JournalReplaced(
                f"node {folder.node}: {self.journals.stream} ends at {known.next} in run {known.run}, and rows up to {to - 1} of it were "
                "read: it was restored from a copy. Start the node: the rows of its next run are read"
            )
        if (known.run == last.run and begin >= at) or is_gone(min(begin, at), max(begin, at), folder.missing):
            return Begin(max(begin, at))
        if begin >= folder.next:
            return Begin(begin)
        return Begin(
            begin,
            f"the journal continues from a copy: {self._count(folder, begin)} from offset {begin} on, of run "
            f"{run_at(spans, begin)}, are read in addition to those read up to offset {at - 1} of run {last.run}",
        )

    def _begin_of_anew(self, folder: StreamFolder, at: int, run: str, reached: Mapping[str, int]) -> Begin:
        """Where to continue if the journal, which begins with `run`, has no run that was read: it was replaced, or retention
        deleted them."""
        if folder.first >= at:
            is_same = follows(run, reached, read_follows(self.journals.paths))
            if is_same or (is_same is None and (folder.first == at or self.may_lose)):
                return Begin(at)
            if is_same is None:
                raise JournalReplaced(
                    f"node {folder.node}: {self.journals.stream} begins at {folder.first} with run {run}, and rows up to {at - 1} were "
                    f"read of other runs: retention removed the rows that would show whether this is the same journal; {GO_ON}"
                )
        gone = (
            f"; its offsets up to {folder.first - 1} were removed by retention before they were read"
            if folder.first
            else ""
        )
        return Begin(
            folder.first,
            f"the journal began again: {self._count(folder, folder.first)} from offset {folder.first} on, of run {run}, "
            f"are read in addition to those of the earlier journal{gone}",
        )

    def _count(self, folder: StreamFolder, begin: int) -> str:
        return counted(count_offsets(without([(begin, folder.next)], folder.missing)), "row")

    def _other_rows(self, folder: StreamFolder, row: RunRow) -> str:
        return (
            f"node {folder.node}: row {row.offset} of {self.journals.stream} differs from the row that was read there, "
            f"and is of the same run {row.run}: {folder.folder} is from a machine resumed from an image, or from a node that "
            "was running when it was restored. Rows of one run and offset cannot be distinguished: nothing was read. Stop the "
            "node, move its data directory away, and start it: its new journal is read from the first row, and the old one can "
            "be landed in another lake"
        )

    def passed(self, runs: RunsPassed, begun: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, list[Passed]]:
        """The runs that are come past once each node has been read from where it begins to where it ends."""
        found, reached = {node: [*passed] for node, passed in runs.items()}, reached_by_run(runs)
        for node, next in ends.items():
            if node not in self.journals.folders or begun[node] >= next:
                continue
            mine = {each.run: each for each in found.get(node, [])}
            for span in self.runs.spans(node):
                end = min(span.next, next)
                if end <= begun[node] and span.run in reached:  # it was read before, perhaps under another name
                    mine.setdefault(span.run, Passed(span.run, max(end, reached[span.run])))
                elif span.first < next and end > begun[node]:
                    mine.pop(span.run, None)
                    row = self.runs.row_at(node, end - 1)
                    mine[span.run] = Passed(span.run, end, None if row is None or row.run != span.run else row.crc)
            found[node] = [*mine.values()]
        return found


def follows(run: str, reached: Collection[str], before: Mapping[str, str | None]) -> bool | None:
    """True if a run follows one of the others, by the run that each names before it; None if that is not known."""
    seen = set[str]()
    while run not in seen:
        seen.add(run)
        if run in reached:
            return True
        if run not in before:
            return None
        earlier = before[run]
        if earlier is None:
            return False
        run = earlier
    return None


def run_at(spans: Sequence[RunSpan], offset: int) -> str:
    """The run of an offset; empty where it is in none."""
    return next((span.run for span in spans if span.first <= offset < span.next), "")


def _last_known(spans: Sequence[RunSpan], reached: Collection[str]) -> RunSpan | None:
    return next((span for span in reversed(spans) if span.run in reached), None)
