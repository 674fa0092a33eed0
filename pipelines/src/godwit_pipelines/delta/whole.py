"""Checks that a commit has all of its lines: a power cut can end it anywhere, also between two lines.

Owns what the first line of a commit says of the others. Invariant: a commit that lost a line is never taken for a whole one where its
first line counts the files, or names the query whose transaction is the last line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

APP = "godwit.app"
"""The query of the commit, whose transaction is its last line."""
ADDED, REMOVED = "godwit.added_files", "godwit.removed_files"
"""How many files the commit adds and removes. Commits of explicit actions have no metrics of delta-rs."""

_COUNTS = {
    "add": ("num_added_files", "num_target_files_added", "numFilesAdded"),
    "remove": ("num_removed_files", "num_target_files_removed", "numFilesRemoved"),
}
"""The metrics of delta-rs for the same: of WRITE and DELETE, of MERGE, and of OPTIMIZE."""
_CHANGES = ("WRITE", "MERGE", "DELETE", "CREATE TABLE", "ADD COLUMN", "SET TBLPROPERTIES")
"""Operations of which one line alone is a commit cut short, unless it says that there are no files."""


def is_whole(commit: Path) -> bool:
    """True if the commit begins and ends with a whole line and has the lines that its first one announces."""
    lines = commit.read_bytes().rstrip().split(b"\n")
    if lines[0][:1] != b"{" or lines[-1][-1:] != b"}" or b"\0" in lines[0]:
        return False
    try:
        info = json.loads(lines[0]).get("commitInfo")
    except ValueError:
        return False
    if not isinstance(info, dict):  # a writer of another kind: its first line announces nothing
        return True
    metrics = info.get("operationMetrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    if len(lines) == 1 and info.get("operation") in _CHANGES and not metrics and ADDED not in info:
        return False
    if APP in info and not _count(lines, "txn"):
        return False
    announced = {"add": _announced(info, metrics, ADDED, "add"), "remove": _announced(info, metrics, REMOVED, "remove")}
    return all(_count(lines, action) >= files for action, files in announced.items())


def _announced(info: Mapping[str, Any], metrics: Mapping[str, Any], name: str, action: str) -> int:
    if name in info:
        return int(info[name])
    return max((each for metric in _COUNTS[action] if isinstance(each := metrics.get(metric), int)), default=0)


def _count(lines: list[bytes], action: str) -> int:
    begin = f'{{"{action}":'.encode()
    return sum(line.startswith(begin) for line in lines)
