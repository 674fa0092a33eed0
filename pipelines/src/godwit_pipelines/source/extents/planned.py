"""Compares the rows with which a batch was planned and the rows that exist when it is read.

Owns the detection of a journal that was replaced in between, for example by a copy: its files may have the same names and
numbers of rows. Rows are distinguished by their runs, and the last row of each run by its checksum. Invariant: rows that
were not planned are never returned in place of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import JournalReplaced
from ...transforms.ranges import Range, merged
from ..checksum import CHECKSUM
from ..columns import FAULT
from ..offsets import runs_of

if TYPE_CHECKING:
    from ..rows import Part
    from ..runs import Runs

_REMEDY = (
    "its rows can no longer be read. For `land`, remove the checkpoint: it continues after the last row of the table. Any other job: "
    "`run JOB --rebuild`"
)


class Planned(NamedTuple):
    """Offsets of one run in a batch, and the checksum of the last row if it is known."""

    run: str
    first: int
    next: int
    crc: int | None


def find_planned(
    start: Mapping[str, Any], end: Mapping[str, Any], begun: Mapping[str, int]
) -> dict[str, list[Planned]]:
    """The runs of each node in a batch, from its offsets: those that were not complete before."""
    before, found = runs_of(start), dict[str, list[Planned]]()
    for node, passed in runs_of(end).items():
        known, at = {*before.get(node, ())}, begun.get(node)
        for each in passed:
            if at is not None and each not in known and each.next > at:
                found.setdefault(node, []).append(Planned(each.run, at, each.next, each.crc))
                at = each.next
    return found


def find_others(planned: Iterable[Planned], runs: Runs, node: str) -> list[Range]:
    """The offsets at which a node's journal now has other rows."""
    found: list[Range] = []
    for each in planned:
        row = None if each.crc is None else runs.row_at(node, each.next - 1)
        if row is not None and row.run != each.run:
            runs.forget(node)  # what is known of its runs is of the rows that were there before
        spans = [(span.run, max(span.first, each.first), min(span.next, each.next)) for span in runs.spans(node)]
        found += [(first, next) for run, first, next in spans if run != each.run and first < next]
        if row is not None and row.run == each.run and row.crc != each.crc:
            found.append((each.first, each.next))
    return merged(sorted(found))


def refuse(node: str, stream: str, others: Sequence[Range]) -> JournalReplaced:
    """The error for a batch that cannot be read as it was planned."""
    first, next = others[0][0], others[-1][1]
    return JournalReplaced(
        f"node {node}: rows {first} to {next - 1} of {stream} are others than when this batch was planned: the journal was replaced "
        f"before they were read, and {_REMEDY}"
    )


def check_read(rows: pa.RecordBatch, offsets: np.ndarray[Any, np.dtype[np.int64]], part: Part) -> None:
    """Raises JournalReplaced for intact rows that are not those with which the part was planned."""
    is_sound = pc.is_null(rows.column(FAULT))
    for run, first, next in part.runs:
        low, high = np.searchsorted(offsets, (first, next))
        if low < high:
            is_other = pc.not_equal(rows.column("run").slice(low, high - low), run)
            if pc.any(pc.and_(is_other, is_sound.slice(low, high - low))).as_py():
                raise _changed(part)
    for offset, crc in part.last_rows:
        low, high = np.searchsorted(offsets, (offset, offset + 1))
        if low < high and is_sound[low].as_py() and rows.column(CHECKSUM)[low].as_py() != crc:
            raise _changed(part)


def _changed(part: Part) -> JournalReplaced:
    return JournalReplaced(
        f"node {part.node}: {part.folder}/{part.file} has other rows than when it was looked at: the journal was replaced while it was "
        "being read. Run the job again"
    )
