"""The format `godwit_delta`: Spark writes a Delta table exactly once, in batch and as a stream, and reads it as a stream.

Options: path · partitions: columns, separated by commas · app and batch: of a batch write that may be repeated · quarantine: another
table, for rows whose `fault` is not null · stream: the name that the quarantine gives these rows · asTasks: true if the frame has ranges
of that stream of the journals; the rows are read here · verify: check the rows' checksums · maxRowsPerBatch: when reading.

Owns what Spark asks of a format; files.py owns the files, commits.py and tail.py the log. Invariant: a batch of a query is in the table
once, however often Spark runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid
from ..source.tasks import read_tasks
from ..source.worker import settle
from ..tables import DATE, TABLES
from ..tables.bronze import QUARANTINE
from .columns import arrow_schema, delta_schema
from .commits import check_batch, check_fit, commit_files, is_table
from .files import Written, remove_files, write_files
from .log import Stretch, open_table, tell_ranges
from .partitions import check_partitions
from .quarantine import BYTES, FAULT, NEXT, Sorter
from .tail import TailReader


@dataclass
class FilesWritten(WriterCommitMessage):
    """The message of a task to the driver: the files that it wrote, by table, and its query."""

    query: str
    files: dict[str, list[Written]]
    ranges: list[Stretch] = field(default_factory=list)
    """The journal rows that ranges were read in place of."""


class DeltaFormat(DataSource):
    """The format `godwit_delta`; session.register_all registers it."""

    @classmethod
    def name(cls) -> str:
        return "godwit_delta"

    def schema(self) -> StructType:
        raise ConfigInvalid("schema", "", "must be given: the columns of a table are declared")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return TailReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return DeltaWriter(Target(self.options, schema), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DeltaStreamWriter:
        return DeltaStreamWriter(Target(self.options, schema, is_stream=True))


class Target:
    """The destination of rows, checked before anything is written."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, is_stream: bool = False) -> None:
        self.is_stream = is_stream
        """A batch write inside foreachBatch is known by its own app: the query may write to a table more than once."""
        self.path = options.get("path", "")
        if not self.path:
            raise ConfigInvalid("path", "", "must name the table's folder")
        self.schema = schema
        self.partitions = tuple(name for name in options.get("partitions", "").split(",") if name)
        self.app = options.get("app", "")
        batch = options.get("batch", "")
        if batch and not (batch.isascii() and batch.isdigit()):
            raise ConfigInvalid("batch", batch, "must be a whole number of 0 or more")
        self.batch = int(batch or -1)
        check_batch(self.app, self.batch)
        self.quarantine = options.get("quarantine", "")
        self.stream = options.get("stream", "")
        self.as_tasks = options.get("asTasks") == "true"
        self.verify = options.get("verify", "true") == "true"
        if self.as_tasks:
            self.schema = TABLES[f"bronze.{self.stream}"].schema
        elif self.quarantine:
            self.schema = StructType([field for field in schema if field.name not in (FAULT, NEXT, BYTES)])
        self.check()

    def check(self) -> None:
        """Rows that would make the table unreadable are refused before any file is written."""
        wanted = delta_schema(self.schema)
        check_partitions(arrow_schema(self.schema), self.partitions)
        if is_table(self.path):
            check_fit(open_table(self.path), self.path, wanted, self.partitions)

    def write(self, batches: Iterator[pa.RecordBatch]) -> FilesWritten:
        """One task's rows. The query's id stays the same over restarts, unlike a run's."""
        settle()
        context = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId") if context is not None and self.is_stream else None
        sorter, ranges = Sorter(self.stream) if self.quarantine else None, list[Stretch]()
        rows = self.read(batches, ranges) if self.as_tasks else batches
        rows = sorter.sort(rows) if sorter else rows
        files = {self.path: write_files(rows, Path(self.path), arrow_schema(self.schema), self.partitions)}
        if sorter and sorter.damaged:
            schema = arrow_schema(QUARANTINE.schema)
            damaged = pa.Table.from_pylist(sorter.damaged, schema).to_batches()
            files[self.quarantine] = write_files(damaged, Path(self.quarantine), schema, QUARANTINE.partitions)
        return FilesWritten(query or self.app, files, ranges)

    def read(self, tasks: Iterator[pa.RecordBatch], ranges: list[Stretch]) -> Iterator[pa.RecordBatch]:
        """The rows of the ranges, with their day. Which ranges they are is added to `ranges`."""
        for batch in read_tasks(tasks, self.stream, ranges, verify=self.verify):
            day = pc.cast(batch.column(TABLES[f"bronze.{self.stream}"].day), pa.date32())
            yield batch.append_column(DATE, day)

    def commit(self, messages: list[WriterCommitMessage | None], batch: int, *, overwrite: bool = False) -> None:
        """The batch becomes part of the table, the damaged rows first: were there a crash between, both are written again."""
        written = [message for message in messages if isinstance(message, FilesWritten)]
        stretches = [each for message in written for each in message.ranges]
        ranges = tell_ranges(stretches) if stretches else ""
        if self.quarantine:
            query, files = files_of(messages, self.quarantine)
            if files:
                schema, partitions = QUARANTINE.schema, QUARANTINE.partitions
                commit_files(self.quarantine, schema, partitions, files, app=query, batch=batch, ranges=ranges)
        query, files = files_of(messages, self.path)
        if files or overwrite:  # a batch without rows leaves nothing: were it written again, it would again
            schema, partitions = self.schema, self.partitions
            commit_files(
                self.path, schema, partitions, files, app=query, batch=batch, overwrite=overwrite, ranges=ranges
            )

    def discard(self, messages: list[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, FilesWritten):
                for path, files in message.files.items():
                    remove_files(Path(path), files)


def files_of(messages: list[WriterCommitMessage | None], path: str) -> tuple[str, list[Written]]:
    """The files that the tasks of a batch wrote for a table, and the query."""
    written = [message for message in messages if isinstance(message, FilesWritten)]
    return (written[0].query if written else ""), [each for message in written for each in message.files.get(path, [])]


class DeltaWriter(DataSourceArrowWriter):
    """A batch write, which appends rows or replaces all of them."""

    def __init__(self, target: Target, overwrite: bool) -> None:
        self.target = target
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.target.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.target.commit(messages, self.target.batch, overwrite=self.overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.target.discard(messages)


class DeltaStreamWriter(DataSourceStreamArrowWriter):
    """A stream's batches. `commit` runs in a process of its own with a new writer: all it knows is in the messages."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.target.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.target.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.target.discard(messages)
