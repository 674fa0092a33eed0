"""Rows taken out of a table for good: their files are written again without them.

Owns that nothing of what is taken out is left: no condition that names it stands in the log, and no bounds of the columns that
name persons do. Files are removed by a vacuum afterwards, which is maintain's to call.
"""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from ..tables.table import Table
from .columns import arrow_schema
from .commits import properties
from .files import FileWriter, remove_files
from .tail import Appended, read_file, snapshot_files


def erase_rows(path: str, table: Table, columns: tuple[str, ...], value: str) -> int:
    """Rows in which one of the columns is the value; returns how many there were. One commit takes all of them out."""
    there = DeltaTable(path)
    root, schema, removed = Path(path), arrow_schema(table.schema), 0
    actions: list[AddAction | RemoveAction] = []
    writer = FileWriter(root, schema, table.partitions)
    try:
        for file in snapshot_files(path, there.version()):
            found = count_rows(root / unquote(file.path), columns, value)
            if found:
                removed += found
                keep(writer, root, file, schema, columns, value)
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


def count_rows(path: Path, columns: tuple[str, ...], value: str) -> int:
    """How many rows of a file name the value; only these columns are read."""
    names = pq.read_schema(path).names
    rows = pq.read_table(path, columns=[name for name in columns if name in names], partitioning=None)
    return int(pc.sum(pc.fill_null(naming(rows, columns, value), False)).as_py() or 0)


def keep(
    writer: FileWriter, root: Path, file: Appended, schema: pa.Schema, columns: tuple[str, ...], value: str
) -> None:
    """The rows that do not name the value, written again."""
    for batch in read_file(root, file, schema):
        rest = batch.filter(pc.invert(pc.fill_null(naming(batch, columns, value), False)))
        if rest.num_rows:
            writer.write(rest)


def naming(rows: pa.Table | pa.RecordBatch, columns: tuple[str, ...], value: str) -> pa.Array:
    """For each row whether one of the columns is the value."""
    found = pa.array([False] * rows.num_rows)
    for name in columns:
        if name in rows.schema.names:
            found = pc.or_kleene(found, pc.equal(rows.column(name), value))
    return found
