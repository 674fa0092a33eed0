"""Writes batch frames into tables: appended, in place of rows, or merged by key.

Owns the writes of batch jobs and foreachBatch; streams write through the format.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame

from ..tables.table import Table
from .columns import arrow_schema
from .commits import check_batch, commit_files, is_repeated, is_table, open_or_create, properties
from .durable import sync_commits
from .files import write_files
from .log import open_table


def append(path: str, frame: DataFrame, table: Table, *, app: str = "", batch: int = -1) -> None:
    """Append rows. With `app` and `batch` a repeated call changes nothing."""
    check_batch(app, batch)
    if app and is_table(path) and is_repeated(open_table(path), path, app, batch):
        return
    writer = frame.write.format("godwit_delta").mode("append").option("path", path)
    writer = writer.option("partitions", ",".join(table.partitions))
    (writer.option("app", app).option("batch", str(batch)) if app else writer).save()


def replace(path: str, frame: DataFrame, table: Table) -> None:
    """Replace all rows in one commit."""
    writer = frame.write.format("godwit_delta").mode("overwrite").option("path", path)
    writer.option("partitions", ",".join(table.partitions)).save()


def replace_since(path: str, frame: DataFrame, table: Table, since: datetime) -> None:
    """Replace the rows whose `day` is `since` or later in one commit. The frame is collected to the driver, as in `merge`."""
    rows = frame.toArrow().cast(arrow_schema(table.schema))
    there = open_or_create(path, table.schema, table.partitions)
    at = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    write_deltalake(
        there,
        rows,
        mode="overwrite",
        predicate=f"`{table.day}` >= '{at}'",
        partition_by=list(table.partitions),
        commit_properties=properties("", -1),
    )
    sync_commits(path, there.version())


def merge(path: str, frame: DataFrame, table: Table, *, app: str = "", batch: int = -1) -> None:
    """Update rows by the table's key, and add new ones. The frame is collected to the driver: use it for aggregates, not for history. A
    repeated batch is merged again. Raises CheckpointOlder if the table has a later batch of `app`.
    """
    check_batch(app, batch)
    rows = frame.toArrow().cast(arrow_schema(table.schema))
    if app and is_table(path):
        is_repeated(open_table(path), path, app, batch)
    if not rows.num_rows and not app:
        return
    there = open_or_create(path, table.schema, table.partitions)
    before = there.version()
    if not rows.num_rows:  # the batch is kept all the same: a table without it is one that was put back
        parts, done = list(table.partitions), properties(app, batch)
        there.create_write_transaction([], "append", there.schema(), partition_by=parts, commit_properties=done)
        sync_commits(path, before)
        return
    same = " AND ".join(f"(t.`{name}` IS NOT DISTINCT FROM s.`{name}`)" for name in (*table.partitions, *table.key))
    merging = there.merge(rows, same, source_alias="s", target_alias="t", commit_properties=properties(app, batch))
    merging.when_matched_update_all().when_not_matched_insert_all().execute()
    sync_commits(path, before)


def write_rows(path: str, rows: pa.Table, table: Table, *, app: str = "", batch: int = -1) -> None:
    """Append a few rows that are in memory, such as a report's, without Spark."""
    files = write_files(rows.to_batches(), Path(path), arrow_schema(table.schema), table.partitions)
    if files:
        commit_files(path, table.schema, table.partitions, files, app=app, batch=batch)
