"""A table as a stream: first the rows that are there, then those of every commit that appends.

Owns the place of a reader: a version of the table and how many of its files are done. A commit that removes rows' files and adds
others (an erasure, a merge) is not told: its rows were; one that only moves rows (compaction) is passed over. Invariant: a row that was
appended comes once; a version whose files or log are gone raises, never passes in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid, TableMissing
from .commits import is_table
from .table_files import live_files

_ROWS_PER_BATCH = 1_000_000
_BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Appended:
    """A file whose rows are to be told."""

    path: str
    rows: int
    partition: tuple[tuple[str, str | None], ...]


@dataclass
class FileTask(InputPartition):
    """One file, as Spark hands it to a worker."""

    def __init__(self, file: Appended) -> None:
        super().__init__(None)
        self.file = file


class TailReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is `{"version": V, "files": N, "snapshot": B}`: N files of version V are done; of a snapshot all live files
    of V count, of later versions those that their commit appended. Version -1: the table is not there yet.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.options = dict(options)
        self.path = options.get("path", "")
        if not self.path:
            raise ConfigInvalid("path", "", "must name the table's folder")
        self.rows_per_batch = int(options.get("maxRowsPerBatch", str(_ROWS_PER_BATCH)))
        self.schema = schema
        self.last: int | None = None
        """The version at which an availableNow query ends."""
        self.newest = -1

    def initialOffset(self) -> dict[str, Any]:
        version = self._newest()
        return {"version": version, "files": 0, "snapshot": version >= 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.last = self._newest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        place, rows = dict(start), 0
        newest = self._newest() if self.last is None else self.last
        while True:
            files = self._files(place)
            for file in files[place["files"] :]:
                if rows_max is not None and rows and rows + file.rows > rows_max:
                    return place
                rows += file.rows
                place["files"] += 1
            if place["version"] >= newest:
                return place
            place = {"version": place["version"] + 1, "files": 0, "snapshot": False}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        tasks: list[InputPartition] = []
        place = dict(start)
        while True:
            is_last = place["version"] == end["version"] and place["snapshot"] == end["snapshot"]
            files = self._files(place)[place["files"] : end["files"] if is_last else None]
            tasks += [FileTask(file) for file in files]
            if is_last or place["version"] >= end["version"]:
                return tasks
            place = {"version": place["version"] + 1, "files": 0, "snapshot": False}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, FileTask):  # None: no partitions
            return iter(())
        return read_file(Path(self.path), partition.file, to_arrow_schema(self.schema, timezone="UTC"))

    def _newest(self) -> int:
        """The newest version; after the first look, commits are counted on from there."""
        if self.newest < 0:
            self.newest = DeltaTable(self.path).version() if is_table(self.path) else -1
        while self.newest >= 0 and Path(self.path, "_delta_log", f"{self.newest + 1:020}.json").exists():
            self.newest += 1
        return self.newest

    def _files(self, place: Mapping[str, Any]) -> list[Appended]:
        if place["version"] < 0:
            return []
        if place["snapshot"]:
            return snapshot_files(self.path, place["version"])
        return appended_files(self.path, place["version"])


def snapshot_files(path: str, version: int) -> list[Appended]:
    """The live files of a version, in an order that stays."""
    found = []
    for row in live_files(path, version=version):
        values = {
            name.removeprefix("partition."): value for name, value in row.items() if name.startswith("partition.")
        }
        partition = tuple(sorted((name, None if value is None else str(value)) for name, value in values.items()))
        found.append(Appended(row["path"], row.get("num_records") or 0, partition))
    return sorted(found, key=lambda file: file.path)


def appended_files(path: str, version: int) -> list[Appended]:
    """The files that a commit appended; none if it rewrote rows that were told before."""
    commit = Path(path, "_delta_log", f"{version:020}.json")
    try:
        actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        raise TableMissing(
            f"{path}: version {version} is no longer in its log, so what it appended cannot be told; give the query a new checkpoint"
        ) from None
    if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
        return []
    added = [action["add"] for action in actions if "add" in action]
    return [
        Appended(unquote(add["path"]), _rows(add), tuple(sorted(add.get("partitionValues", {}).items())))
        for add in added
        if add.get("dataChange", True)
    ]


def _rows(add: Mapping[str, Any]) -> int:
    return int(json.loads(add.get("stats") or "{}").get("numRecords", 0))


def read_file(root: Path, file: Appended, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A file's rows with the table's columns; those that the file does not have are its partition's, or null."""
    try:
        opened = pq.ParquetFile(root / file.path)
    except FileNotFoundError:
        raise TableMissing(
            f"{root / file.path} was removed before it was read: vacuum keeps files for longer than a query is away"
        ) from None
    values = dict(file.partition)
    with opened:
        for batch in opened.iter_batches(batch_size=_BATCH_ROWS):
            columns = []
            for field in schema:
                index = batch.schema.get_field_index(field.name)
                if index >= 0:
                    columns.append(batch.column(index).cast(field.type))
                else:
                    value = pa.scalar(values.get(field.name), pa.string())
                    columns.append(pa.array([value.as_py()] * batch.num_rows, pa.string()).cast(field.type))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
