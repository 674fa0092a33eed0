"""Where a streaming query stands in the journals: an offset for each node, and how much of what is new it takes next.

Pure. An offset of a query is `{"stream": S, "nodes": {NODE: NEXT}}`: of every node the first row that was not read yet. `begun`,
where it is there, is where the batch up to it began.
Invariant: a share never goes past what is there, and every node that has something new gets a share of each batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import JournalBroken


def to_offset(stream: str, nodes: Mapping[str, int], begun: Mapping[str, int] | None = None) -> dict[str, Any]:
    offset = {"stream": stream, "nodes": dict(sorted(nodes.items()))}
    return offset if begun is None else {**offset, "begun": dict(sorted(begun.items()))}


def from_offset(stream: str, offset: Mapping[str, Any]) -> dict[str, int]:
    """The nodes' offsets; raises JournalBroken for a checkpoint of something else."""
    if offset.get("stream") != stream or not isinstance(offset.get("nodes"), dict):
        raise JournalBroken(
            f"the checkpoint is of the stream {offset.get('stream')}, not of {stream}: give it a folder of its own"
        )
    return {str(node): int(next) for node, next in offset["nodes"].items()}


def share(start: Mapping[str, int], ends: Mapping[str, int], rows_max: int) -> dict[str, int]:
    """How far each node is read with at most so many rows in all: by lag, so that who is behind catches up."""
    lags = {node: max(0, end - start.get(node, end)) for node, end in ends.items()}
    total = sum(lags.values())
    if total <= rows_max:
        return {node: max(end, start.get(node, end)) for node, end in ends.items()}
    shares = {node: min(lag, max(1, rows_max * lag // total)) if lag else 0 for node, lag in lags.items()}
    left = rows_max - sum(shares.values())
    for node in sorted(lags, key=lambda each: shares[each] - lags[each]):
        more = max(0, min(left, lags[node] - shares[node]))
        shares[node] += more
        left -= more
    return {node: start.get(node, end) + shares[node] for node, end in ends.items()}
