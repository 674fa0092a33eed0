"""Files and commits on their way to the disk: a power cut takes nothing that a checkpoint says is in a table.

Owns the order. Rows' files are on the disk before the commit that names them is made, and that commit before its writer returns: only
then does Spark note the batch as done. Without it a commit is an empty file after a power cut, which readers take for one without rows.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Returns when a file's content, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path, root: Path) -> None:
    """A file and every folder from it up to the table's."""
    sync(path)
    folder = path.parent
    while folder != root and root in folder.parents:
        sync(folder)
        folder = folder.parent
    sync(root)


def sync_commits(table: str, after: int) -> None:
    """The commits of a table that are later than a version. Each had its files synced before."""
    log, version = Path(table, "_delta_log"), after + 1
    while (commit := log / f"{version:020}.json").exists():
        sync(commit)
        version += 1
    if version > after + 1:
        sync(log)
    if after < 0 and log.is_dir():
        for folder in (log, log.parent, log.parent.parent, log.parent.parent.parent):
            sync(folder)
