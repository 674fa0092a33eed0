"""The files that are a table's: all of a version, or those that one commit appended.

Owns which files a reader of a growing table receives. A commit that removes rows' files and adds others (an erasure, a
merge) adds nothing: its rows were read before; one that only moves rows (compaction) is skipped. A version whose files or
log were deleted raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import TableNotFoundError

from ..errors import TableBroken, TableMissing
from .partitions import parse_value
from .table_files import Values, live_files, name_of, values_of

_BATCH_ROWS = 65_536
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Appended:
    """A file whose rows are to be sent, and the times of the first and the last of them (microseconds since 1970; 0: not
    known). `path` is relative to the table, in the form of the file system, which the log uses too.
    """

    path: str
    rows: int
    partition: Values
    begins_us: int = 0
    ends_us: int = 0


def snapshot_files(path: str, version: int) -> list[Appended]:
    """The live files of a version, in an order that stays."""
    found = []
    try:
        files = live_files(path, version=version)
    except TableNotFoundError:
        raise _forgotten(path, version) from None
    for row in files:
        partition = tuple(sorted(values_of(row)))
        times = (_micros(row.get(f"{bound}.time")) for bound in ("min", "max"))
        found.append(Appended(name_of(row), row.get("num_records") or 0, partition, *times))
    return sorted(found, key=lambda file: file.path)


def appended_files(path: str, version: int) -> list[Appended]:
    """The files that a commit appended; none if it rewrote rows that were sent before."""
    commit = Path(path, "_delta_log", f"{version:020}.json")
    try:
        actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        raise _forgotten(path, version) from None
    if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
        return []
    added = [action["add"] for action in actions if "add" in action]
    return [_appended(add) for add in added if add.get("dataChange", True)]


def _forgotten(path: str, version: int) -> TableMissing:
    return TableMissing(
        f"{path}: version {version} is no longer in its log, so its new rows are unknown. Run the job with --rebuild, or use a new "
        "checkpoint for a query of your own"
    )


def _appended(add: dict[str, Any]) -> Appended:
    stats = json.loads(add.get("stats") or "{}")
    times = (_micros((stats.get(bounds) or {}).get("time")) for bounds in ("minValues", "maxValues"))
    partition = tuple(sorted(add.get("partitionValues", {}).items()))
    return Appended(name_of(add), int(stats.get("numRecords", 0)), partition, *times)


def _micros(time: datetime | str | None) -> int:
    """0 where the log does not know it."""
    found = datetime.fromisoformat(time) if isinstance(time, str) else time
    if not isinstance(found, datetime):
        return 0
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // timedelta(microseconds=1)


def read_file(root: Path, file: Appended, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A file's rows with the table's columns. Partition values are those of the log; a column that the file does not have is null."""
    try:
        # Spark writes times of 96 bits, which Arrow would take for nanoseconds: these end in the year 2262.
        with pq.ParquetFile(root / file.path, coerce_int96_timestamp_unit="us") as opened:
            for batch in opened.iter_batches(batch_size=_BATCH_ROWS):
                yield _with_partition(batch, schema, dict(file.partition))
    except FileNotFoundError:
        raise TableMissing(
            f"{root / file.path} was removed before it was read; keep files longer than the query is stopped (maintain.vacuum_hours)"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise TableBroken(f"{root / file.path} is damaged: {str(error).splitlines()[0]}") from error


def _with_partition(batch: pa.RecordBatch, schema: pa.Schema, values: dict[str, str | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_column(batch, field, values) for field in schema], schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, values: dict[str, str | None]) -> pa.Array:
    if field.name in values:
        return pa.array([parse_value(values[field.name], field.type)] * batch.num_rows, field.type)
    if batch.schema.get_field_index(field.name) < 0:
        return pa.nulls(batch.num_rows, field.type)
    return batch.column(field.name).cast(field.type)
