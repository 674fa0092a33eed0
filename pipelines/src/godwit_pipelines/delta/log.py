"""Reads the batches of a query from the log of a table, the newest first.

Owns the names under which a commit records its number of rows, and their ranges in the journals. Invariant: entries that
a log no longer has are unknown, which is not the same as empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ..errors import TableBroken
from ..transforms.ranges import Range, merged, without
from .whole import is_whole

ROWS = "godwit.rows"
RANGES = "godwit.ranges"
_PUT_BACK = "put it back from a copy, or remove the table's folder and run its job with --rebuild"
_POINTER = "_last_checkpoint"
Stretch = tuple[str, str, int, int]
"""A node, its run, and offsets from the first up to, not including, the second."""
_COMMITS_MAX = 10_000


def open_table(path: str, version: int | None = None) -> DeltaTable:
    """The table as it is, or as it was. Raises TableBroken if its log cannot be read: a commit was cut short or deleted."""
    try:
        table = DeltaTable(path, version=version)
    except TableNotFoundError:
        raise
    except DeltaError as error:
        reason = str(error).splitlines()[0][:200]
        raise TableBroken(
            f"{path}: its log cannot be read: {find_cut(path) or find_bad_checkpoint(path) or reason}"
        ) from error
    if cut := find_cut(path, table.version()):
        raise TableBroken(f"{path}: its log cannot be read: {cut}")
    return table


def find_cut(path: str, version: int | None = None) -> str:
    """What is wrong with the commits since the last checkpoint, and the remedy, as text; empty if all are complete. After a
    power cut, a commit that was not on the disk yet is empty, and readers take it for one without rows.
    """
    log = Path(path, "_delta_log")
    names = [each.name for each in log.iterdir()] if log.is_dir() else []
    newest = max((int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()), default=-1)
    checkpoints = {name.partition(".")[0] for name in names if ".checkpoint" in name and name[:20].isdigit()}
    last = max([newest, *map(int, checkpoints)])
    for each in range(last if version is None else version, -1, -1):
        commit = log / f"{each:020}.json"
        is_kept = f"{each:020}" in checkpoints or f"{each + 1:020}" in checkpoints
        if not commit.exists():
            # A cleanup removes commits before a checkpoint, and never the newest.
            return "" if is_kept and each < newest else f"{commit.name} is missing: {_PUT_BACK}"
        if not is_whole(commit):
            remedy = _remedy_of(log, each, checkpoints, is_newest=each == newest)
            return f"{commit.name} is incomplete, as after a power cut: {remedy}"
        if f"{each:020}" in checkpoints:
            return ""
    return ""


def find_bad_checkpoint(path: str) -> str:
    """The checkpoint that cannot be read, or does not exist although `_last_checkpoint` names it, and the remedy, as text;
    empty if there is none. Its content is also in the checkpoint before it and the commits since.
    """
    log = Path(path, "_delta_log")
    found = sorted(log.glob("*.checkpoint*.parquet"), reverse=True)
    whole = {int(each.name[:20]) for each in found if each.name[:20].isdigit() and _is_parquet(each)}
    bad = next((each.name for each in found if not _is_parquet(each)), "")
    pointed = _pointed_at(log)
    if not bad and (pointed is None or pointed in whole):
        return ""
    at = int(bad[:20]) if bad and bad[:20].isdigit() else pointed if pointed is not None else 0
    base = max((version for version in whole if version < at), default=-1)
    numbers = sorted(int(each.stem) for each in log.glob("*.json") if each.stem.isdigit() and int(each.stem) > base)
    is_complete = numbers == [*range(base + 1, base + 1 + len(numbers))] and at in numbers
    can_go = is_complete and all(is_whole(log / f"{each:020}.json") for each in numbers)
    names = f"{bad} and {_POINTER}" if bad else _POINTER
    remedy = f"remove {names}: the commits hold everything that was in it" if can_go else _PUT_BACK
    return f"{bad} cannot be read: {remedy}" if bad else f"its checkpoint of version {at} is missing: {remedy}"


def _pointed_at(log: Path) -> int | None:
    """The version of the checkpoint in the log's pointer; None without a pointer, -1 if it cannot be read."""
    try:
        return int(json.loads((log / _POINTER).read_text("utf-8"))["version"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return -1


def _is_parquet(file: Path) -> bool:
    try:
        pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return False
    return True


def _remedy_of(log: Path, version: int, checkpoints: set[str], *, is_newest: bool) -> str:
    """The remedy for an incomplete commit. It can be removed if the table then opens and accepts commits. For the newest
    commit that fails if a checkpoint is of that version; for another commit it works only if a checkpoint is.
    """
    has_checkpoint = f"{version:020}" in checkpoints
    before = log / f"{version - 1:020}.json"
    can_go = not has_checkpoint and before.exists() and is_whole(before) if is_newest else has_checkpoint
    return f"remove it, and run the job again, or {_PUT_BACK}" if can_go else _PUT_BACK


class Batch(NamedTuple):
    """A batch of a query, with the data of its commit."""

    number: int
    info: Mapping[str, Any]


def batches_of(path: str, app: str) -> Iterator[Batch]:
    """The batches that a query committed, the newest first, as far back as the log goes."""
    version = open_table(path).version()
    for each in range(version, max(-1, version - _COMMITS_MAX), -1):
        try:
            lines = Path(path, "_delta_log", f"{each:020}.json").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return
        actions = [json.loads(line) for line in lines if line.strip()]
        info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        for action in actions:
            if action.get("txn", {}).get("appId") == app:
                yield Batch(int(action["txn"]["version"]), info)


def count_rows(path: str, app: str, after: int) -> int:
    """The number of rows that a query committed in its batches after one of them."""
    found = 0
    for batch in batches_of(path, app):
        if batch.number <= after:
            break
        found += int(batch.info.get(ROWS, 0))
    return found


def tell_ranges(stretches: list[Stretch]) -> str:
    """The ranges, in the form of a commit."""
    kept: dict[str, dict[str, list[Range]]] = {}
    for node, run, first, next in sorted(stretches):
        kept.setdefault(node, {}).setdefault(run, []).append((first, next))
    return json.dumps({node: {run: merged(of) for run, of in runs.items()} for node, runs in kept.items()})


def find_others(path: str, app: str, number: int, ranges: str) -> list[str]:
    """Which of the ranges a batch that was committed before does not have, as text; empty if the log does not show it."""
    batch = next((batch for batch in batches_of(path, app) if batch.number <= number), None)
    if batch is None or batch.number != number or RANGES not in batch.info or not ranges:
        return []
    before, found = json.loads(batch.info[RANGES]), list[str]()
    for node, runs in json.loads(ranges).items():
        for run, of in runs.items():
            known = [(first, next) for first, next in before.get(node, {}).get(run, [])]
            left = without([(first, next) for first, next in of], known)
            found += [f"rows {first} to {next - 1} of run {run} of node {node}" for first, next in left]
    return found
