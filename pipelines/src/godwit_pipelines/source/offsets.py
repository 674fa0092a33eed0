"""The position of a streaming query in the journals: an offset for each node, and how many new rows it takes next.

Pure. An offset of a query is `{"stream": S, "nodes": {NODE: NEXT}, "runs": {NODE: [[RUN, NEXT, CRC], …]}}`: of every node the first row
that was not read yet, and the runs that it was read of, the last at the end, each with the offset after its last row and that row's
checksum (null where it is not known). `begun` is where the batch up to it began; a batch that is repeated is read from there.
`before`, of a first batch, is what had been read before it by a query whose checkpoint was lost. `tasks` says that ranges are handed on in
place of rows, and then `absent` how many of these do not come (missing, left out, lost files), `lost` how many rows of it, or before
it, were deleted by retention before they were read. `replaced` has the reason for each node that did not continue at its last offset.
Invariant: a share never goes past what is there, and of what is there the oldest rows are taken, whichever node's they are: who sums up
by time is not brought what is long past because one node has more to catch up with than another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import JournalBroken


class Passed(NamedTuple):
    """A run that was come past: the offset after the last of its rows that was read, and that row's checksum where it is known."""

    run: str
    next: int
    crc: int | None = None


RunsPassed = Mapping[str, Sequence[Passed]]
"""By node."""
_RUNS_MAX = 1000
"""Runs of a node that are kept, the latest. A journal that goes back further than so many starts is taken for another one."""


def to_offset(
    stream: str, nodes: Mapping[str, int], begun: Mapping[str, int] | None = None, runs: RunsPassed | None = None
) -> dict[str, Any]:
    offset: dict[str, Any] = {"stream": stream, "nodes": dict(sorted(nodes.items()))}
    if begun is not None:
        offset["begun"] = dict(sorted(begun.items()))
    if runs:
        offset["runs"] = {node: [[*each] for each in passed[-_RUNS_MAX:]] for node, passed in sorted(runs.items())}
    return offset


def from_offset(stream: str, offset: Mapping[str, Any]) -> dict[str, int]:
    """The nodes' offsets; raises JournalBroken for a checkpoint of something else."""
    if not isinstance(offset.get("stream"), str) or not isinstance(offset.get("nodes"), dict):
        raise JournalBroken(
            f"the checkpoint's offset for {stream} is damaged, or not of a Godwit journal: expected a stream and its nodes"
        )
    if offset["stream"] != stream:
        raise JournalBroken(
            f"the checkpoint is of the stream {offset['stream']}, not of {stream}: give it a folder of its own"
        )
    return {str(node): int(next) for node, next in offset["nodes"].items()}


def runs_of(offset: Mapping[str, Any], name: str = "runs") -> dict[str, list[Passed]]:
    """By node, the runs that were read. A checkpoint from before these were stored has the run of the last row, or none."""
    if name in offset:
        return {str(node): [Passed(*each) for each in passed] for node, passed in offset[name].items()}
    nodes = offset.get("nodes", {})
    return {str(node): [Passed(str(run), nodes[node], int(crc))] for node, (run, crc) in offset.get("last", {}).items()}


def reached_by_run(runs: RunsPassed) -> dict[str, int]:
    """The offset after the last row that was read, of each run, whatever the name under which its journal was read."""
    reached: dict[str, int] = {}
    for passed in runs.values():
        for each in passed:
            reached[each.run] = max(each.next, reached.get(each.run, 0))
    return reached


class Span(NamedTuple):
    """Offsets of a node, and the times of the first and the last (microseconds since 1970); between them time goes evenly."""

    first: int
    next: int
    begins_us: int
    ends_us: int


Spans = Callable[[str, int, int], Sequence[Span]]
"""The spans of a node's offsets from the one to the other, which follow each other, none earlier than the one before."""


def share(start: Mapping[str, int], ends: Mapping[str, int], rows_max: int, spans_of: Spans) -> dict[str, int]:
    """The end for each node of a batch with at most so many rows in all."""
    whole = {node: max(end, start.get(node, end)) for node, end in ends.items()}
    begun = {node: start.get(node, end) for node, end in ends.items()}
    if sum(whole.values()) - sum(begun.values()) <= rows_max:
        return whole
    ahead = {node: min(end, begun[node] + rows_max) for node, end in whole.items() if end > begun[node]}
    if len(ahead) == 1:
        return {**whole, **ahead}
    spans = {node: spans_of(node, begun[node], end) for node, end in ahead.items()}
    before = min(part[0].begins_us for part in spans.values()) - 1
    until = max(part[-1].ends_us for part in spans.values())
    while until - before > 1:
        middle = (before + until) // 2
        rows = sum(offset_at(part, middle) - part[0].first for part in spans.values())
        before, until = (middle, until) if rows <= rows_max else (before, middle)
    reached = {node: offset_at(part, before) for node, part in spans.items()}
    left = rows_max - sum(reached[node] - begun[node] for node in spans)
    for node, part in spans.items():  # of one moment
        more = min(left, offset_at(part, until) - reached[node])
        reached[node] += more
        left -= more
    return {**whole, **reached}


def offset_at(spans: Sequence[Span], time_us: int) -> int:
    """The first offset that is later."""
    index = bisect_right(spans, time_us, key=lambda span: span.ends_us)
    if index == len(spans):
        return spans[-1].next
    span = spans[index]
    if time_us < span.begins_us:
        return span.first
    return span.first + (span.next - span.first) * (time_us - span.begins_us + 1) // (span.ends_us - span.begins_us + 1)
