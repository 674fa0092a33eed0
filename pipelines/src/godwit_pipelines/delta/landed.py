"""Which row landed: looked up in a bronze table by the run and offset that it is known by."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .table_files import is_there, live_files, path_of

_COLUMNS = {"run": pa.string(), "journal_offset": pa.int64(), "crc": pa.int64()}


def find_crcs(path: str, run: str, offset: int) -> set[int]:
    """The checksums of the rows of a run and offset; none where the table has no such row."""
    found: set[int] = set()
    for file in live_files(path):
        if not (_may_hold(file, "run", run) and _may_hold(file, "journal_offset", offset) and is_there(path, file)):
            continue
        # a compacted file may hold views, which nothing filters
        rows = pq.read_table(
            path_of(path, file), columns=[*_COLUMNS], partitioning=None, coerce_int96_timestamp_unit="us"
        ).cast(pa.schema(_COLUMNS))
        is_row = pc.and_(pc.equal(rows.column("run"), run), pc.equal(rows.column("journal_offset"), offset))
        found |= set(rows.filter(is_row).column("crc").to_pylist())
    return found


def _may_hold(file: dict[str, Any], column: str, value: str | int) -> bool:
    low, high = file.get(f"min.{column}"), file.get(f"max.{column}")
    return low is None or high is None or low <= value <= high
