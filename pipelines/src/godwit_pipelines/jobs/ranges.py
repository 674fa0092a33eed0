"""Compares ranges of offsets. Pure.

Owns the arithmetic of `reconcile`: what a journal holds, less its missing ranges, against what a table holds, what is in quarantine, and
what was erased. Invariant: every offset of the journal is in exactly one finding, except that quarantined and erased offsets lie between
others and are reported once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..source.extents.lost import Lost
from ..transforms.ranges import Range, clipped, count_offsets, merged, without
from ..words import counted


class Extent(NamedTuple):
    """Rows with offsets from `first` up to, but not including, `next`."""

    first: int
    next: int
    rows: int


class Finding(NamedTuple):
    """One row of ops.landing."""

    stream: str
    node: str
    kind: str
    first: int
    next: int
    rows: int
    run: str = ""
    """Of the first run."""
    bytes: int | None = None

    def describe(self, has_lost: bool = False) -> str:
        """`has_lost`: other rows of the stream and node are lost."""
        missing = "none missing except those LOST" if has_lost else "none missing"
        where = f"{self.stream} of {self.node}: {self.first:,} to {self.next - 1:,}"
        size = "" if self.bytes is None else f" ({counted(self.bytes, 'byte')} of its file)"
        return {
            "whole": f"{self.stream} of {self.node}: {counted(self.rows, 'row')} landed, {missing}",
            "behind": f"{where} not landed yet",
            "hole": f"{where} MISSING from bronze.{self.stream}",
            "repeat": f"{where} REPEATED in bronze.{self.stream} ({counted(self.rows, 'row')})",
            "quarantined": f"{where} in quarantine",
            "lost": f"{where} LOST: damaged or removed before they could be read{size}",
            "tail": f"{self.stream} of {self.node}: {counted(self.bytes or 0, 'byte')} after {self.first:,} cannot be read yet",
            "erased": f"{where}: {counted(self.rows, 'row')} ERASED on request",
        }[self.kind]


def extents_of(files: Iterable[dict[str, Any]], runs: Iterable[str] = ()) -> dict[str, list[Extent]]:
    """The files of a bronze table by run. For each of `runs`, a file of several runs or without bounds becomes an extent that is not
    plain.
    """
    found: dict[str, list[Extent]] = {}
    for file in files:
        low, high, rows = file.get("min.journal_offset"), file.get("max.journal_offset"), file.get("num_records") or 0
        is_known = low is not None and high is not None
        first, last = file.get("min.run"), file.get("max.run")
        extent = Extent(int(low or 0), int(high or 0) + 1, rows) if is_known and first == last else Extent(0, 0, -1)
        between = {run for run in runs if first != last and may_hold(file, run)}
        for run in {first, last, *between} - {None}:
            found.setdefault(str(run), []).append(extent)
    return found


def within(extents: Iterable[Extent], first: int, next: int) -> list[Extent]:
    """The parts of the extents between two offsets. An extent with more rows than offsets keeps its ratio."""
    found: list[Extent] = []
    for extent in extents:
        low, high = max(extent.first, first), min(extent.next, next)
        if low < high:
            found.append(Extent(low, high, extent.rows * (high - low) // (extent.next - extent.first)))
    return found


def reached_by(files: Iterable[dict[str, Any]], run: str) -> int:
    """The offset up to which a run's rows may have been in these files of a bronze table."""
    ends = [
        file["max.journal_offset"] + 1
        for file in files
        if may_hold(file, run) and file.get("max.journal_offset") is not None
    ]
    return max(ends, default=0)


def may_hold(file: dict[str, Any], run: str) -> bool:
    """Whether a file's bounds leave room for rows of the run."""
    return (file.get("min.run") or run) <= run <= (file.get("max.run") or run)


def compare(
    stream: str,
    node: str,
    held: Extent,
    missing: Sequence[tuple[int, int]],
    landed: Sequence[Extent],
    quarantined: Sequence[Lost],
    reached: int = 0,
    erased: Sequence[Range] = (),
) -> list[Finding]:
    """What became of a journal's rows. Extents in `landed` share no offset; one with more rows than offsets has repeats. Rows that landed
    and were then removed from the journal by retention are ignored. Up to `reached` rows have landed once, so missing rows there are
    not behind.
    """
    gone = without(clipped(erased, held.first, held.next), [(extent.first, extent.next) for extent in landed])
    ends = [*(extent.next for extent in landed), *(each.next for each in quarantined), *(next for _, next in gone)]
    far = max([reached, *ends])
    passed = [span for span in missing if far and span[0] <= far]  # what is beyond was not read yet
    known = [
        *(Extent(first, next, 0) for first, next in (*passed, *gone)),
        *(Extent(each.first, each.next, 0) for each in quarantined),
    ]
    damaged = merged((each.first, each.next) for each in quarantined)
    findings = [Finding(stream, node, "quarantined", first, next, next - first) for first, next in damaged]
    if gone:
        findings.append(Finding(stream, node, "erased", gone[0][0], gone[-1][1], count_offsets(gone)))
    at = held.first
    faults = [Finding(stream, node, "repeat", *extent) for extent in landed if extent.rows > extent.next - extent.first]
    for extent in sorted([*landed, *known]):
        if extent.first > at:
            faults.append(Finding(stream, node, "hole", at, extent.first, 0))
        at = max(at, extent.next)
    if at < min(reached, held.next):
        faults.append(Finding(stream, node, "hole", at, min(reached, held.next), 0))
        at = min(reached, held.next)
    if not faults and at > held.first:
        findings.append(Finding(stream, node, "whole", held.first, at, sum(extent.rows for extent in landed)))
    left = without([(at, held.next)] if at < held.next else [], missing)
    findings += [Finding(stream, node, "behind", first, next, 0) for first, next in left]
    return findings + faults


def find_lost(
    stream: str,
    node: str,
    held: Extent,
    lost: Sequence[Lost],
    landed: Sequence[Extent],
    quarantined: Sequence[Lost],
    erased: Sequence[Range] = (),
) -> list[Finding]:
    """The extents of rows that no file holds any more: those that the quarantine records, and those that the node lost or somebody
    removed. Rows that landed before, or were erased, are not among them.
    """
    sized = [each for each in quarantined if each.bytes is not None or each.next > each.first + 1]
    known = [
        *erased,
        *((each.first, each.next) for each in landed),
        *((each.first, each.next) for each in quarantined),
    ]
    gone = clipped(without([(each.first, each.next) for each in lost], known), held.first, held.next)
    found = [Finding(stream, node, "lost", first, next, 0) for first, next in gone]
    return [*(Finding(stream, node, "lost", each.first, each.next, 0, bytes=each.bytes) for each in sized), *found]
