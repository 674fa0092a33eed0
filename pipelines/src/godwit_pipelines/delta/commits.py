"""Commits to a table's log: files become its rows, once for each (query, batch).

Owns the transaction: an identifier of the query and the number of the batch stand in the log beside the files, so that a batch that
is written again after a crash is known. Invariant: after a commit the batch is in the table once, and files that lost are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql.types import StructType

from .columns import arrow_schema, delta_schema
from .files import Written, bounded_columns, remove_files

_CONFIGURATION: dict[str, str | None] = {
    "delta.checkpointInterval": "50",
    "delta.logRetentionDuration": "interval 7 days",
}


def is_table(path: str) -> bool:
    return DeltaTable.is_deltatable(path)


def open_or_create(path: str, schema: StructType, partitions: Iterable[str]) -> DeltaTable:
    """The table; made if it is not there, given the columns that its schema has gained."""
    wanted = delta_schema(schema)
    if not is_table(path):
        Path(path).mkdir(parents=True, exist_ok=True)
        bounded = {"delta.dataSkippingStatsColumns": ",".join(bounded_columns(arrow_schema(schema)))}
        configuration = _CONFIGURATION | bounded
        DeltaTable.create(path, wanted, mode="ignore", partition_by=list(partitions), configuration=configuration)
    table = DeltaTable(path)
    present = {field.name for field in table.schema().fields}
    gained = [field for field in wanted.fields if field.name not in present]
    if gained:
        table.alter.add_columns(gained)
    return table


def is_committed(table: DeltaTable, app: str, batch: int) -> bool:
    done = table.transaction_version(app)
    return done is not None and batch <= done  # batch 0 is one, too


def properties(app: str, batch: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(app, batch)] if app else None, max_commit_retries=30)


def commit_files(
    path: str,
    schema: StructType,
    partitions: tuple[str, ...],
    files: list[Written],
    *,
    app: str = "",
    batch: int = -1,
    overwrite: bool = False,
) -> bool:
    """Make the files the table's; returns whether they were not yet. Files of a batch that is in the table already are removed."""
    table = open_or_create(path, schema, partitions)
    if app and is_committed(table, app, batch):
        remove_files(Path(path), files)
        return False
    actions: list[AddAction | RemoveAction] = [
        AddAction(each.path, each.size, dict(each.partition), each.modified_ms, True, each.statistics) for each in files
    ]
    table.create_write_transaction(
        actions,
        "overwrite" if overwrite else "append",
        table.schema(),
        partition_by=list(partitions),
        commit_properties=properties(app, batch),
    )
    return True
