"""A table as a stream: first the rows that are there, then those of every commit that appends.

Owns the place of a reader: a version of the table and how many of its files are done, the oldest first. Which files those are is
appended.py's. Invariant: a row that was appended comes once; and where a batch ends the rest of what there is then is newer, or little
older, whatever nodes and days the files are of: who sums up by time is not brought what is long past.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid, TableReplaced
from .appended import Appended, appended_files, read_file, snapshot_files
from .commits import is_table
from .log import open_table
from .table_files import check_readable

_ROWS_PER_BATCH = 1_000_000
_APART_US = 30 * 60 * 1_000_000
"""How much older than what a batch brings the rest may be: half of what the least patient query waits."""
_DAY_US = 24 * 3600 * 1_000_000
_NEVER_US = 1 << 62
_REBUILD = "it was recreated, or restored from a copy. Run the job that reads it with --rebuild"


@dataclass
class FileTask(InputPartition):
    """One file, as Spark hands it to a worker."""

    def __init__(self, file: Appended) -> None:
        super().__init__(None)
        self.file = file


class TailReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is `{"version": V, "files": N, "snapshot": B, "by_time": true}`: N files of version V are done; of a
    snapshot all live files of V count, of later versions those that their commit appended. Version -1: the table is not
    there yet. `table` is the identifier of the table that was read; a recreated table has another one. `digest` is that
    of version V's entry in the log; after a copy was restored and continued differently, it is another one. `by_time` is
    missing in checkpoints from before files were sent oldest first: they keep their order to the version's end.
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
        self.identity = ""
        self.oldest: dict[int, int] = {}
        """The time of the oldest row that a version appended, of those to come that were looked at."""

    def initialOffset(self) -> dict[str, Any]:
        version = self._newest()
        return {"version": version, "files": 0, "snapshot": version >= 0, "by_time": True}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self.last = self._newest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self._check_same(start)
        place = self._advance(start, limit)
        is_moved = any(place[name] != start[name] for name in ("version", "files", "snapshot"))
        if not is_moved or place["version"] < 0:
            return dict(start)
        known = {name: value for name, value in place.items() if name != "digest"}
        digest = self._digest(place["version"])
        return {**known, "table": self._identity(), **({"digest": digest} if digest else {})}

    def _check_same(self, start: Mapping[str, Any]) -> None:
        """Raises TableReplaced if the table is not the one of the saved position: its versions are numbers of another log."""
        if start["version"] < 0:
            return
        if self._newest() < start["version"]:
            raise TableReplaced(
                f"{self.path} is at version {self.newest}, and version {start['version']} was read: {_REBUILD}"
            )
        if "table" in start and start["table"] != self._identity():
            raise TableReplaced(
                f"{self.path} is the table {self._identity()}, and {start['table']} was read: {_REBUILD}"
            )
        digest = self._digest(start["version"])
        if digest and start.get("digest", digest) != digest:
            raise TableReplaced(
                f"version {start['version']} of {self.path} is {digest}, and {start['digest']} was read: {_REBUILD}"
            )

    def _identity(self) -> str:
        """The identifier that the table was given when it was made; looked at once for as long as the query runs."""
        if not self.identity:
            self.identity = str(open_table(self.path).metadata().id)
        return self.identity

    def _digest(self, version: int) -> str:
        """That of a version's entry in the log; empty where the log no longer has it."""
        try:
            entry = Path(self.path, "_delta_log", f"{version:020}.json").read_bytes()
        except FileNotFoundError:
            return ""
        return hashlib.sha256(entry).hexdigest()[:32]

    def _advance(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch."""
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        place, rows, newest_us = dict(start), 0, 0
        newest = self._newest() if self.last is None else self.last
        ahead_us = time.time_ns() // 1000 + _DAY_US  # by a clock that was wrong: nothing is old beside it
        while True:
            later_us = None
            for file in self._files(place)[place["files"] :]:
                if rows_max is not None and rows and rows + file.rows > rows_max:
                    later_us = self._oldest_after(place["version"], newest) if later_us is None else later_us
                    if min(file.begins_us, later_us) >= newest_us - _APART_US:
                        return place
                rows += file.rows
                newest_us = max(newest_us, file.ends_us if file.ends_us < ahead_us else file.begins_us)
                place["files"] += 1
            if place["version"] >= newest:
                return place
            place = _after(place)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        tasks: list[InputPartition] = []
        place = dict(start)
        while True:
            is_last = place["version"] == end["version"] and place["snapshot"] == end["snapshot"]
            files = self._files(end if is_last else place)[place["files"] : end["files"] if is_last else None]
            tasks += [FileTask(file) for file in files]
            if is_last or place["version"] >= end["version"]:
                return tasks
            place = _after(place)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, FileTask):  # None: no partitions
            return iter(())
        return read_file(Path(self.path), partition.file, to_arrow_schema(self.schema, timezone="UTC"))

    def _newest(self) -> int:
        """The newest version; after the first look, commits are counted on from there. That look compares the columns."""
        if self.newest < 0 and is_table(self.path):
            table = open_table(self.path)
            check_readable(table, self.path, self.schema)
            self.newest = table.version()
        while self.newest >= 0 and Path(self.path, "_delta_log", f"{self.newest + 1:020}.json").exists():
            self.newest += 1
        return self.newest

    def _oldest_after(self, version: int, newest: int) -> int:
        """The time of the oldest row that was appended after a version. Each is looked at once."""
        known = self.oldest
        self.oldest = {
            later: known[later] if later in known else self._oldest_of(later)
            for later in range(version + 1, newest + 1)
        }
        return min(self.oldest.values(), default=_NEVER_US)

    def _oldest_of(self, version: int) -> int:
        return min((file.begins_us for file in appended_files(self.path, version)), default=_NEVER_US)

    def _files(self, place: Mapping[str, Any]) -> list[Appended]:
        if place["version"] < 0:
            return []
        list_files = snapshot_files if place["snapshot"] else appended_files
        files = list_files(self.path, place["version"])
        return sorted(files, key=lambda file: (file.begins_us, file.path)) if place.get("by_time") else files


def _after(place: Mapping[str, Any]) -> dict[str, Any]:
    """The beginning of the next version."""
    return {"version": place["version"] + 1, "files": 0, "snapshot": False, "by_time": True}
