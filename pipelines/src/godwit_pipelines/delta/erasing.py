"""Rows taken out of a table for good: their files are written again without them.

Owns that nothing of what is taken out is left: no condition that names it stands in the log, and no bounds of the columns that
name persons do. Files are removed by a vacuum afterwards, which is maintain's to call.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from ..tables.table import Table
from .appended import Appended, read_file, snapshot_files
from .columns import arrow_schema
from .commits import properties
from .files import FileWriter, remove_files


def erase_rows(path: str, table: Table, value: str) -> int:
    """Rows that name the value where the table names persons; returns how many there were. One commit takes all of them out."""
    there = DeltaTable(path)
    root, schema, removed = Path(path), arrow_schema(table.schema), 0
    actions: list[AddAction | RemoveAction] = []
    writer = FileWriter(root, schema, table.partitions)
    try:
        for file in snapshot_files(path, there.version()):
            found = count_rows(root / unquote(file.path), table, value)
            if found:
                removed += found
                keep(writer, root, file, schema, table, value)
                size = (root / unquote(file.path)).stat().st_size
                actions.append(RemoveAction(file.path, True, int(time.time() * 1000), size, dict(file.partition)))
        written = writer.close()
    except BaseException:
        writer.discard()
        raise
    if not actions:
        return 0
    actions += [
        AddAction(each.path, each.size, dict(each.partition), each.modified_ms, True, each.statistics)
        for each in written
    ]
    try:
        there.create_write_transaction(
            actions, "append", there.schema(), partition_by=list(table.partitions), commit_properties=properties("", -1)
        )
    except BaseException:
        remove_files(root, written)
        raise
    return removed


def count_rows(path: Path, table: Table, value: str) -> int:
    """How many rows of a file name the value; only these columns are read."""
    names = pq.read_schema(path).names
    rows = pq.read_table(
        path, columns=[name for name in (*table.persons, *table.texts) if name in names], partitioning=None
    )
    return int(pc.sum(pc.fill_null(naming(rows, table, value), False)).as_py() or 0)


def keep(writer: FileWriter, root: Path, file: Appended, schema: pa.Schema, table: Table, value: str) -> None:
    """The rows that do not name the value, written again."""
    for batch in read_file(root, file, schema):
        rest = batch.filter(pc.invert(pc.fill_null(naming(batch, table, value), False)))
        if rest.num_rows:
            writer.write(rest)


def naming(rows: pa.Table | pa.RecordBatch, table: Table, value: str) -> pa.Array:
    """For each row whether a column that names persons is the value, or a text has it as one of its values."""
    found = pa.array([False] * rows.num_rows)
    within = ": " + json.dumps(value, ensure_ascii=False)  # as quarantine.py writes a row
    for name in (*table.persons, *table.texts):
        if name in rows.schema.names:
            column = rows.column(name).cast(pa.string())  # a compacted file may hold views, which nothing compares
            named = pc.match_substring(column, within) if name in table.texts else pc.equal(column, value)
            found = pc.or_kleene(found, named)
    return found
