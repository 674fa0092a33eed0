"""What the log of a table says of the batches of a query, the newest first.

Owns the names under which a commit keeps how many rows it brought, and from where in the journals. Invariant: what a log no longer has is
not known, which is not the same as nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deltalake import DeltaTable

from ..transforms.ranges import Range, merged, without

ROWS = "godwit.rows"
RANGES = "godwit.ranges"
Stretch = tuple[str, str, int, int]
"""A node, its run, and offsets from the first up to, not including, the second."""
_COMMITS_MAX = 10_000


class Batch(NamedTuple):
    """A batch of a query, and what its commit says of it."""

    number: int
    told: Mapping[str, Any]


def batches_of(path: str, app: str) -> Iterator[Batch]:
    """The batches that a query committed, the newest first, as far back as the log goes."""
    version = DeltaTable(path).version()
    for each in range(version, max(-1, version - _COMMITS_MAX), -1):
        try:
            lines = Path(path, "_delta_log", f"{each:020}.json").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return
        actions = [json.loads(line) for line in lines if line.strip()]
        told: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        for action in actions:
            if action.get("txn", {}).get("appId") == app:
                yield Batch(int(action["txn"]["version"]), told)


def count_rows(path: str, app: str, after: int) -> int:
    """How many rows a query committed in its batches after one of them."""
    found = 0
    for batch in batches_of(path, app):
        if batch.number <= after:
            break
        found += int(batch.told.get(ROWS, 0))
    return found


def tell_ranges(stretches: list[Stretch]) -> str:
    """As a commit keeps it."""
    kept: dict[str, dict[str, list[Range]]] = {}
    for node, run, first, next in sorted(stretches):
        kept.setdefault(node, {}).setdefault(run, []).append((first, next))
    return json.dumps({node: {run: merged(of) for run, of in runs.items()} for node, runs in kept.items()})


def find_others(path: str, app: str, number: int, ranges: str) -> list[str]:
    """What of the ranges a batch that was committed before did not bring, in words; nothing where the log does not tell."""
    batch = next((batch for batch in batches_of(path, app) if batch.number <= number), None)
    if batch is None or batch.number != number or RANGES not in batch.told or not ranges:
        return []
    before, found = json.loads(batch.told[RANGES]), list[str]()
    for node, runs in json.loads(ranges).items():
        for run, of in runs.items():
            known = [(first, next) for first, next in before.get(node, {}).get(run, [])]
            left = without([(first, next) for first, next in of], known)
            found += [f"rows {first} to {next - 1} of run {run} of node {node}" for first, next in left]
    return found
