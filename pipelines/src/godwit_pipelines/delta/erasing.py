"""Deletes rows of a table permanently: their files are written again without them.

Owns that nothing of the deleted value is left: the log has no condition with it, and no bounds of columns that name
persons. A later vacuum by the job maintain deletes the old files. Invariant: the deleted rows are recorded before they
are deleted, and the commit that deletes them has the name of that record.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from ..tables.table import Table
from .appended import Appended, read_file, snapshot_files
from .columns import arrow_schema
from .commits import properties
from .durable import sync_commits
from .files import FileWriter, remove_files
from .log import open_table

Note = Callable[[pa.Table], str]
"""Records rows that are about to be deleted, by the columns of `_PLACE` that their table has; returns the record's name, or none."""
_PLACE = ("stream", "node", "journal_offset", "run", "epoch", "arrival")
_NUMBERS = ("journal_offset", "epoch", "arrival")


def erase_rows(path: str, table: Table, value: str, note: Note = lambda _: "") -> int:
    """Delete the rows that have the value in a column that names persons; returns their number. One commit deletes all of them."""
    there = open_table(path)
    root, found = Path(path), list[tuple[Appended, pa.Table]]()
    for file in snapshot_files(path, there.version()):
        rows = named_rows(root / file.path, table, value)
        if rows.num_rows:
            found.append((file, rows))
    if not found:
        return 0
    rows = pa.concat_tables([rows for _, rows in found])
    account = note(rows.select([name for name in _PLACE if name in rows.schema.names]))
    replace_files(root, there, table, value, [file for file, _ in found], account)
    return int(rows.num_rows)


def replace_files(root: Path, there: DeltaTable, table: Table, value: str, files: list[Appended], account: str) -> None:
    """Write the files again without the rows that have the value, in one commit with the record's name."""
    schema = arrow_schema(table.schema)
    writer = FileWriter(root, schema, table.partitions)
    actions: list[AddAction | RemoveAction] = []
    try:
        for file in files:
            keep(writer, root, file, schema, table, value)
            size = (root / file.path).stat().st_size
            actions.append(RemoveAction(file.path, True, int(time.time() * 1000), size, dict(file.partition)))
        written = writer.close()
    except BaseException:
        writer.discard()
        raise
    actions += [
        AddAction(each.path, each.size, dict(each.partition), each.modified_ms, True, each.statistics)
        for each in written
    ]
    done, before = properties(account, 0), there.version()
    try:
        there.create_write_transaction(
            actions, "append", there.schema(), partition_by=list(table.partitions), commit_properties=done
        )
    except BaseException:
        remove_files(root, written)
        raise
    sync_commits(str(root), before)  # the files without the rows are not removed before


def named_rows(path: Path, table: Table, value: str) -> pa.Table:
    """The rows of a file that have the value: their indexes, and the columns with it. Only these columns are read."""
    names = pq.read_schema(path).names
    wanted = [name for name in (*_PLACE, *table.persons, *table.texts) if name in names]
    # a compacted file may hold views, which nothing filters
    kinds = pa.schema([pa.field(name, pa.int64() if name in _NUMBERS else pa.string()) for name in wanted])
    rows = pq.read_table(path, columns=wanted, partitioning=None, coerce_int96_timestamp_unit="us").cast(kinds)
    if "journal_offset" in names and "run" not in names:  # a quarantine's file from before it kept runs
        rows = rows.append_column("run", pa.nulls(rows.num_rows, pa.string()))
    return rows.filter(pc.fill_null(naming(rows, table, value), False))


def count_rows(path: Path, table: Table, value: str) -> int:
    """How many rows of a file have the value."""
    return int(named_rows(path, table, value).num_rows)


def keep(writer: FileWriter, root: Path, file: Appended, schema: pa.Schema, table: Table, value: str) -> None:
    """The rows without the value, written again."""
    for batch in read_file(root, file, schema):
        rest = batch.filter(pc.invert(pc.fill_null(naming(batch, table, value), False)))
        if rest.num_rows:
            writer.write(rest)


def naming(rows: pa.Table | pa.RecordBatch, table: Table, value: str) -> pa.Array:
    """For each row, whether a column that names persons equals the value, or a text has it as one of its values."""
    found = pa.array([False] * rows.num_rows)
    within = ": " + json.dumps(value, ensure_ascii=False)  # as quarantine.py writes a row
    for name in (*table.persons, *table.texts):
        if name in rows.schema.names:
            column = rows.column(name).cast(pa.string())  # a compacted file may hold views, which nothing compares
            named = pc.match_substring(column, within) if name in table.texts else pc.equal(column, value)
            found = pc.or_kleene(found, named)
    return found
