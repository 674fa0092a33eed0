"""Commits to a table's log. They make files part of the table, once for each (query, batch).

Owns the transaction: the log keeps the query's ID and the batch number with the files, so that a batch that is written again after a
crash is recognized. Invariant: after a commit the batch is in the table once, and the files of a refused repeat are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.types import StructType

from ..errors import CheckpointOlder, ConfigInvalid, TableMismatch
from .columns import arrow_schema, check_columns, delta_schema
from .durable import sync_commits
from .files import Written, bounded_columns, remove_files
from .log import RANGES, ROWS, find_others, open_table
from .partitions import check_partitions
from .whole import ADDED, APP, REMOVED

_READER_FEATURES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""The table features that readers must support. Without deletionVectors, rows that others marked as deleted would be read."""

PUT_BACK = "For `land`, remove the checkpoint: it continues after the last row of the table. Any other job: `run JOB --rebuild`"
"""The remedy."""
_CONFIGURATION: dict[str, str | None] = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 7 days",
}


def is_table(path: str) -> bool:
    return DeltaTable.is_deltatable(path)


def open_or_create(path: str, schema: StructType, partitions: Iterable[str]) -> DeltaTable:
    """Open a table. Create it if it does not exist, and add the columns that its schema has gained. Raises TableMismatch if rows of this
    schema would make it unreadable.
    """
    wanted, partitions = delta_schema(schema), tuple(partitions)
    check_partitions(arrow_schema(schema), partitions)
    if not is_table(path):
        Path(path).mkdir(parents=True, exist_ok=True)
        bounded = {"delta.dataSkippingStatsColumns": ",".join(bounded_columns(arrow_schema(schema)))}
        configuration = _CONFIGURATION | bounded
        DeltaTable.create(path, wanted, mode="ignore", partition_by=list(partitions), configuration=configuration)
    table = open_table(path)
    if gained := check_fit(table, path, wanted, partitions):
        table.alter.add_columns(gained)
    return table


def add_columns(path: str, schema: StructType) -> None:
    """Add to a table the columns that its schema has gained. Call it before the table is read."""
    if is_table(path) and (gained := check_table(open_table(path), path, delta_schema(schema))):
        open_table(path).alter.add_columns(gained)


def check_table(table: DeltaTable, path: str, wanted: Schema) -> list[Field]:
    """The columns that the table lacks. Raises TableMismatch if it has a column with another type, or needs a reader feature that we
    lack.
    """
    needed = table.protocol().reader_features or []
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if unknown := sorted(set(needed) - _READER_FEATURES) or ([f"columnMapping {mode}"] if mode != "none" else []):
        raise TableMismatch(f"{path}: needs {', '.join(unknown)} of its readers, which is not supported")
    return check_columns(path, wanted, table.schema())


def check_fit(table: DeltaTable, path: str, wanted: Schema, partitions: tuple[str, ...]) -> list[Field]:
    """The columns that the table would gain. Raises TableMismatch if rows of this schema would make it unreadable."""
    gained = check_table(table, path, wanted)
    there = tuple(table.metadata().partition_columns)
    if there != partitions:
        raise TableMismatch(f"{path}: is partitioned by {named(there)}; expected {named(partitions)}")
    if never_null := [field.name for field in table.schema().fields if not field.nullable]:
        raise TableMismatch(f"{path}: {named(never_null)} may not be null; expected columns that may")
    return gained


def named(columns: Iterable[str]) -> str:
    return ", ".join(columns) or "nothing"


def is_committed(table: DeltaTable, app: str, batch: int) -> bool:
    done = table.transaction_version(app)
    return done is not None and batch <= done  # batch 0 is one, too


def is_repeated(table: DeltaTable, path: str, app: str, batch: int, ranges: str = "") -> bool:
    """True if the table has this batch. Raises CheckpointOlder if it has a later batch of the query, or other rows of this batch: then
    the checkpoint was restored from a copy.
    """
    done = table.transaction_version(app)
    if done is None or done < batch:
        return False
    if done > batch:
        raise CheckpointOlder(
            f"{path} holds batch {done} of this query, which is about to write its batch {batch}: its checkpoint was restored from a copy. "
            + PUT_BACK
        )
    if others := find_others(path, app, batch, ranges):
        raise CheckpointOlder(
            f"{path} holds batch {batch} of this query without {others[0]}: its checkpoint was restored from a copy. "
            + PUT_BACK
        )
    return True


def check_batch(app: str, batch: int) -> None:
    """Raises ConfigInvalid unless `app` and `batch` are given together: with one alone a write would look like a repeat and write
    nothing.
    """
    if bool(app) != (batch >= 0):
        raise ConfigInvalid("batch", batch, f"does not fit app={app!r}: give both, a batch of 0 or more, or neither")


def properties(app: str, batch: int, details: Mapping[str, str] | None = None) -> CommitProperties:
    done = [Transaction(app, batch)] if app else None
    info = {**(details or {}), **({APP: app} if app else {})}
    return CommitProperties(info, max_commit_retries=30, app_transactions=done)


def commit_files(
    path: str,
    schema: StructType,
    partitions: tuple[str, ...],
    files: list[Written],
    *,
    app: str = "",
    batch: int = -1,
    overwrite: bool = False,
    ranges: str = "",
) -> bool:
    """Make files part of the table; returns whether they were new. The files of a batch that the table already has are removed. `ranges`
    names the rows of the journals that they hold, in the form of log.py.
    """
    check_batch(app, batch)
    before = open_table(path).version() if is_table(path) else -1
    table = open_or_create(path, schema, partitions)
    try:
        is_there = bool(app) and is_repeated(table, path, app, batch, ranges)
    except CheckpointOlder:
        remove_files(Path(path), files)
        raise
    if is_there:
        sync_commits(path, table.version() - 1)  # whoever made it may have been killed before
        remove_files(Path(path), files)
        return False
    details = {ADDED: str(len(files)), REMOVED: str(len(table.file_uris()) if overwrite else 0)}
    if app:
        details |= {ROWS: str(sum(each.rows for each in files)), **({RANGES: ranges} if ranges else {})}
    actions: list[AddAction | RemoveAction] = [
        AddAction(each.path, each.size, dict(each.partition), each.modified_ms, True, each.statistics) for each in files
    ]
    table.create_write_transaction(
        actions,
        "overwrite" if overwrite else "append",
        table.schema(),
        partition_by=list(partitions),
        commit_properties=properties(app, batch, details),
    )
    sync_commits(path, before)
    return True
