"""Records which rows of the journals were erased from the bronze tables, so that they are not reported as missing and do not land again.

Owns ops.erased, by offsets, and for messages also by arrivals; it contains no names. Invariant: ranges are recorded
before their rows are removed, and count only if the rows were removed: the commit that removes them has the erasure's
name, and ops.erasures keeps it if the table is deleted.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..delta.appended import read_file, snapshot_files
from ..delta.columns import arrow_schema
from ..delta.commits import is_committed, is_table
from ..delta.erasing import Note
from ..delta.log import open_table
from ..delta.writing import write_rows
from ..lake import Lake
from ..tables import TABLES, Table
from ..transforms.ranges import Range, merged

_LANDS = "land"
_MESSAGES = "bronze.messages"


def noting(lake: Lake, table: Table, person: str, now: datetime) -> Note:
    """Record which rows of the journals are about to be removed from a table. Does nothing for tables without such rows."""
    erased = TABLES["ops.erased"]

    def note(rows: pa.Table) -> str:
        if table.job != _LANDS:
            return ""
        name = uuid.uuid4().hex
        if "stream" not in rows.schema.names:
            stream = pa.array([table.name.partition(".")[2]] * rows.num_rows, pa.string())
            rows = rows.append_column("stream", stream)
        about = {"erasure": name, "time": now, "person": person, "table_name": table.name}
        kept = [{**about, **each} for each in ranges_of(rows)]
        write_rows(lake.path(erased.name), pa.Table.from_pylist(kept, arrow_schema(erased.schema)), erased)
        return name

    return note


def ranges_of(rows: pa.Table) -> list[dict[str, object]]:
    """Rows as ranges of consecutive offsets of a stream, node and run, each with its number of rows; for messages also of
    one epoch and of consecutive arrivals.
    """
    found: list[dict[str, object]] = []
    lane = ["stream", "node", "run"]
    if "run" not in rows.schema.names:
        rows = rows.append_column("run", pa.nulls(rows.num_rows, pa.string()))
    if "arrival" in rows.schema.names:
        shift = pc.subtract(rows.column("arrival"), rows.column("journal_offset"))
        rows, lane = rows.append_column("shift", shift), [*lane, "epoch", "shift"]
    for group in rows.group_by(lane).aggregate([("journal_offset", "list")]).to_pylist():
        offsets, counts = np.unique(np.array(group["journal_offset_list"], np.int64), return_counts=True)
        begins = np.flatnonzero(np.diff(offsets, prepend=offsets[0] - 2) != 1)
        lasts = np.append(begins[1:], len(offsets)) - 1
        summed = np.add.reduceat(counts, begins)
        for first, last, count in zip(offsets[begins], offsets[lasts], summed, strict=True):
            place = {name: group[name] for name in lane if name != "shift"}
            if group.get("shift") is not None:
                place["arrival"] = int(first) + group["shift"]
            found.append({**place, "first": int(first), "next": int(last) + 1, "rows": int(count)})
    return found


def prove(lake: Lake, table: Table, person: str, now: datetime, removed: int) -> list[dict[str, object]]:
    """The rows of ops.erasures for removals that are not recorded there yet, from this run or one that was interrupted. If no offsets
    were recorded, they have the number of rows.
    """
    rows = list_unproven(lake, table, now)
    if not any(row["person"] == person for row in rows):
        version = open_table(lake.path(table.name)).version()
        about = {"time": now, "table_name": table.name, "version": version}
        rows.append({"person": person, "rows": removed, "erasure": None, **about})
    return rows


def list_unproven(lake: Lake, table: Table, now: datetime) -> list[dict[str, object]]:
    """The rows of ops.erasures for removals from a table that it does not have yet."""
    there, proven = open_table(lake.path(table.name)), names_proven(lake)
    noted = rows_of(lake, "ops.erased")
    noted = noted.filter(pc.equal(noted.column("table_name"), table.name))
    rows: list[dict[str, object]] = []
    for each in noted.group_by(["erasure", "person"]).aggregate([("rows", "sum")]).to_pylist():
        if each["erasure"] not in proven and is_committed(there, each["erasure"], 0):
            rows.append({"person": each["person"], "rows": each["rows_sum"], "erasure": each["erasure"]})
    return [{**row, "time": now, "table_name": table.name, "version": there.version()} for row in rows]


def erased_ranges(lake: Lake, stream: str) -> dict[str, dict[str, list[Range]]]:
    """The erased offsets of a stream, by node and run. Erasures of an older version have no run."""
    found: dict[str, dict[str, list[Range]]] = {}
    for row in noted_rows(lake, stream).select(["node", "run", "first", "next"]).to_pylist():
        found.setdefault(row["node"], {}).setdefault(row["run"] or "", []).append((row["first"], row["next"]))
    return {node: {run: merged(ranges) for run, ranges in runs.items()} for node, runs in found.items()}


def noted_rows(lake: Lake, stream: str) -> pa.Table:
    """The rows of ops.erased for a stream whose removal was committed."""
    noted = rows_of(lake, "ops.erased")
    noted = noted.filter(pc.equal(noted.column("stream"), stream))
    if not noted.num_rows:
        return noted
    proven = names_proven(lake)
    is_done: dict[str, bool] = {}
    for each in noted.group_by(["erasure", "table_name"]).aggregate([]).to_pylist():
        name, path = each["erasure"], lake.path(each["table_name"])
        is_done[name] = name in proven or (is_table(path) and is_committed(open_table(path), name, 0))
    done = pa.array([name for name, is_out in is_done.items() if is_out], pa.string())
    return noted.filter(pc.is_in(noted.column("erasure"), done))


def erased_arrivals(lake: Lake) -> tuple[DataFrame | None, int]:
    """The ranges of erased messages for the audit, and the number of erased messages without a known range. A range has `node`, `run`,
    `epoch`, `journal_offset` and `arrival` of its first message, and `rows`. None if no message was erased.
    """
    noted = noted_rows(lake, "messages")
    noted = noted.filter(pc.equal(noted.column("table_name"), _MESSAGES))
    is_placed = pc.is_valid(noted.column("arrival"))
    unplaced = pc.sum(noted.filter(pc.invert(is_placed)).column("rows")).as_py() or 0
    names = noted.filter(is_placed).column("erasure").unique().to_pylist()
    rows = lake.read("ops.erased").where(F.col("erasure").isin(names) & F.col("arrival").isNotNull())
    places = rows.selectExpr("node", "run", "epoch", "`first` as journal_offset", "arrival", "`next` - `first` as rows")
    return places if names else None, int(unplaced) + count_unplaced(lake, [_MESSAGES])


def count_unplaced(lake: Lake, tables: Sequence[str]) -> int:
    """Number of rows erased from these tables without a recorded offset, by a version before ops.erased."""
    rows = rows_of(lake, "ops.erasures")
    is_old = pc.and_(
        pc.is_null(rows.column("erasure")), pc.is_in(rows.column("table_name"), pa.array(tables, pa.string()))
    )
    return int(pc.sum(rows.filter(is_old).column("rows")).as_py() or 0)


def names_proven(lake: Lake) -> set[str]:
    """The erasures in ops.erasures."""
    return {*rows_of(lake, "ops.erasures").column("erasure").to_pylist()} - {None}


def rows_of(lake: Lake, name: str) -> pa.Table:
    """A small table with its current columns; empty if it does not exist."""
    path, schema = lake.path(name), arrow_schema(TABLES[name].schema)
    files = snapshot_files(path, open_table(path).version()) if is_table(path) else []
    return pa.Table.from_batches((batch for file in files for batch in read_file(Path(path), file, schema)), schema)
