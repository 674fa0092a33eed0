"""Rows into Parquet files of a table's folder, one for each task and day, with the statistics that the log keeps of them.

Owns the files until they are committed: those of a task that failed are removed again. Nothing here is part of the table yet.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .durable import sync_file
from .partitions import check_partitions, folder_of, split

_FILE_BYTES_MAX = 512 << 20
_STATISTICS_TEXT_MAX = 32  # longer texts would have to be cut with care, and tell little


@dataclass(frozen=True)
class Written:
    """A file that a commit can make part of the table."""

    path: str
    size: int
    rows: int
    partition: dict[str, str | None]
    modified_ms: int
    statistics: str


@dataclass
class _Open:
    path: Path
    partition: dict[str, str | None]
    writer: pq.ParquetWriter
    rows: int = 0


@dataclass
class FileWriter:
    """The files of one task, by the values of the partition columns."""

    root: Path
    schema: pa.Schema
    partitions: tuple[str, ...]
    open: dict[tuple[str | None, ...], _Open] = field(default_factory=dict)
    written: list[Written] = field(default_factory=list)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a batch in; its columns are those of the schema."""
        for values, rows in split(batch, self.partitions):
            opened = self.open.get(values) or self._begin(values)
            opened.writer.write_batch(rows)
            opened.rows += rows.num_rows
            if opened.path.stat().st_size > _FILE_BYTES_MAX:
                self._end(values)

    def close(self) -> list[Written]:
        for values in list(self.open):
            self._end(values)
        return self.written

    def discard(self) -> None:
        """Remove everything: the task failed."""
        for opened in self.open.values():
            opened.writer.close()
            opened.path.unlink(missing_ok=True)
        remove_files(self.root, self.written)

    def _begin(self, values: tuple[str | None, ...]) -> _Open:
        named = dict(zip(self.partitions, values, strict=True))
        folder = self.root / folder_of(named)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{uuid.uuid4().hex}.parquet"
        kept = pa.schema([field for field in self.schema if field.name not in self.partitions])
        # a dictionary of contents or of numbers, which hardly repeat, would be built and thrown away: a third of the time
        texts = [each.name for each in kept if pa.types.is_string(each.type)]
        writer = pq.ParquetWriter(path, kept, compression="zstd", compression_level=1, use_dictionary=texts)
        opened = _Open(path, named, writer)
        self.open[values] = opened
        return opened

    def _end(self, values: tuple[str | None, ...]) -> None:
        opened = self.open.pop(values)
        opened.writer.close()
        sync_file(opened.path, self.root)
        size = os.stat(opened.path).st_size
        path = str(opened.path.relative_to(self.root))
        made = statistics(opened.path, opened.rows)
        self.written.append(Written(path, size, opened.rows, opened.partition, int(time.time() * 1000), made))


def write_files(
    batches: Iterable[pa.RecordBatch], root: Path, schema: pa.Schema, partitions: tuple[str, ...]
) -> list[Written]:
    """All of a task's rows; on any failure nothing is left behind."""
    check_partitions(schema, partitions)
    writer = FileWriter(root, schema, partitions)
    try:
        for batch in batches:
            if batch.num_rows:
                writer.write(conform(batch, schema))
        return writer.close()
    except BaseException:
        writer.discard()
        raise


def remove_files(root: Path, files: Iterable[Written]) -> None:
    for each in files:
        (root / each.path).unlink(missing_ok=True)


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch's columns in the schema's order and types."""
    if batch.schema.equals(schema):
        return batch
    columns = [batch.column(field.name) for field in schema]
    return pa.RecordBatch.from_arrays(
        [
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def statistics(path: Path, rows: int) -> str:
    """Bounds and nulls of the columns whose bounds are short, from the file's own footer, as the log keeps them."""
    footer = pq.read_metadata(path)
    counted = set(bounded_columns(footer.schema.to_arrow_schema()))
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for index in range(footer.num_columns):
        found = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        name = found[0].path_in_schema if found else ""
        bounds = [column.statistics for column in found]
        if name not in counted or not bounds or not all(each is not None and each.has_null_count for each in bounds):
            continue
        nulls[name] = sum(each.null_count for each in bounds)
        valued = [each for each in bounds if each.has_min_max]
        low = [value for each in valued if (value := _short(each.min)) is not None]
        high = [value for each in valued if (value := _short(each.max)) is not None]
        if valued and len(low) == len(high) == len(bounds):
            least[name], most[name] = min(low), max(high)
    return json.dumps({"numRecords": rows, "minValues": least, "maxValues": most, "nullCount": nulls})


def bounded_columns(schema: pa.Schema) -> list[str]:
    """The columns whose bounds the log keeps: numbers and times, and of texts those that name machines. What persons are called
    has no place in a log that outlives them.
    """
    texts = ("node", "run")
    kinds = (pa.types.is_integer, pa.types.is_timestamp)
    return [field.name for field in schema if field.name in texts or any(is_kind(field.type) for is_kind in kinds)]


def _short(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat("T", "microseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, bool) or (isinstance(value, str) and len(value) > _STATISTICS_TEXT_MAX):
        return None
    return value if isinstance(value, int | str) else None
