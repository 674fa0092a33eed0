"""The tables as jobs use them: read, streamed, appended, replaced or merged.

Owns names, paths and formats; tables/ owns what a table holds, delta/ how rows get into files. Invariant: rows appended here are in the
table once for each (query, batch), and a repeated merge changes nothing. A table that does not exist yet reads as an empty one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import ArrayType

from . import delta
from .errors import ConfigInvalid, LakeBusy
from .settings import Config
from .source.columns import FAULT
from .source.extents.bounds import find_bounds
from .source.kafka import kafka_messages
from .source.kafka_topics import find_topics
from .tables import DATE, TABLES, Table


class Refused(NamedTuple):
    """Messages that a node refused and that were skipped: how many, and of which subjects most, with the reasons and how many each."""

    messages: int
    reasons: tuple[tuple[str, int], ...]


class Lake:
    """The tables in one folder, and the journals that they come from."""

    def __init__(self, spark: SparkSession, config: Config) -> None:
        self.spark = spark
        self.config = config
        self.folder = Path(config.lake.path).absolute()

    def path(self, name: str) -> str:
        """The folder of a table, below the folder of its layer."""
        return str(self.folder.joinpath(*table_of(name).name.split(".")))

    def checkpoint(self, query: str) -> str:
        """The checkpoint of a query. A query whose plan changes gets a new name; reading again is safe, because the sinks ignore repeated
        batches.
        """
        return str(checkpoints_of(self.config) / query)

    def journal(self, stream: str, where: str = "", **options: str) -> DataFrame:
        """A table of the journals as a batch. `where` is a condition in SQL; files without such rows are not read."""
        if where:
            options["where"] = find_bounds(self.spark, where)
        reader = self.spark.read.format("godwit").options(**{**self._journal_options(stream), **options})
        return reader.load().where(where) if where else reader.load()

    def journal_stream(self, stream: str, **options: str) -> DataFrame:
        """A table of the journals as a stream."""
        return self.spark.readStream.format("godwit").options(**{**self._journal_options(stream), **options}).load()

    def kafka_stream(self) -> DataFrame:
        """Records of the Kafka topics as a stream, with the columns of the journal's `messages`."""
        return kafka_messages(self.spark, self.config.kafka, self.kafka_topics(), is_stream=True)

    def kafka_topics(self) -> dict[str, str]:
        """The ID of each Kafka topic. It changes if a topic is recreated."""
        return find_topics(self.spark, self.config.kafka)

    def _journal_options(self, stream: str) -> dict[str, str]:
        journal = self.config.journal
        if not journal.paths:
            raise ConfigInvalid("journal.paths", "", "must name a node's data directory", hint="--journal DATA")
        return {
            "path": ",".join(journal.paths),
            "stream": stream,
            "maxRowsPerBatch": str(journal.rows_per_batch),
            "rowsPerTask": str(journal.rows_per_task),
            "failOnDataLoss": str(journal.fail_on_data_loss).lower(),
            "verify": str(journal.verify).lower(),
        }

    def exists(self, name: str) -> bool:
        return delta.is_table(self.path(name))

    def read(self, name: str, *, is_partial: bool = False) -> DataFrame:
        """A table as a batch; empty if no job has written it yet. `is_partial` ignores files that no longer exist."""
        delta.add_columns(self.path(name), table_of(name).schema)
        return delta.read_table(self.spark, self.path(name), table_of(name).schema, is_partial=is_partial)

    def stream(self, name: str, *, rows_per_batch: int = 0) -> DataFrame:
        """A table as a stream: first its rows, then every appended row. Compacted rows are not repeated, and erased rows are left out."""
        rows = rows_per_batch or self.config.journal.rows_per_batch
        delta.add_columns(self.path(name), table_of(name).schema)
        reader = self.spark.readStream.format("godwit_delta").schema(table_of(name).schema)
        return reader.option("path", self.path(name)).option("maxRowsPerBatch", str(rows)).load()

    def appending(self, name: str, frame: DataFrame) -> DataStreamWriter:
        """Append a streaming frame to a table; pass the result to `Run.start`. Each batch is in the table once."""
        table = table_of(name)
        writer = shape(table, frame).writeStream.format("godwit_delta").outputMode("append")
        return writer.option("path", self.path(name)).option("partitions", ",".join(table.partitions))

    def landing(self, stream: str, frame: DataFrame) -> DataStreamWriter:
        """Append a streaming frame to the bronze table of its stream. Damaged rows go to the quarantine."""
        return self._landing(stream, shape(table_of(f"bronze.{stream}"), frame, FAULT))

    def landing_journal(self, stream: str, **options: str) -> DataStreamWriter:
        """Append a table of the journals to its bronze table. The tasks that write also read the rows, so that these do not pass through
        Java, which would be most of the cost.
        """
        writer = self._landing(stream, self.journal_stream(stream, asTasks="true", **options))
        return writer.option("asTasks", "true").option("verify", str(self.config.journal.verify).lower())

    def _landing(self, stream: str, frame: DataFrame) -> DataStreamWriter:
        table = table_of(f"bronze.{stream}")
        writer = frame.writeStream.format("godwit_delta").outputMode("append").option("stream", stream)
        writer = writer.option("quarantine", self.path("bronze.quarantine"))
        return writer.option("path", self.path(table.name)).option("partitions", ",".join(table.partitions))

    def publishing(self, frame: DataFrame) -> DataStreamWriter:
        """Publish a streaming frame; pass the result to `Run.start`. Columns: subject, content, and optionally kind, key, reply_to,
        retain, guaranteed. Each row is one message, also if its batch is repeated. After a shuffle, give rows a `key` or sort them
        within partitions: otherwise a repeated batch can have another order.
        """
        return (
            self._paced(frame).writeStream.format("godwit_publish").options(**self._node_options()).outputMode("append")
        )

    def publish(self, frame: DataFrame, *, app: str, batch: int = 0, skips_refused: bool = False) -> Refused:
        """Publish a batch frame, each row once for each (app, batch); in foreachBatch these are the query's name and the batch's ID. With
        `skips_refused`, messages that the node refuses permanently are skipped and returned; otherwise the first one raises
        PublishFailed.
        """
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.json")
            writer = self._paced(frame).write.format("godwit_publish").options(**self._node_options()).mode("append")
            writer = writer.option("app", app).option("batch", str(batch)).option("report", str(report))
            writer.option("refused", "skip" if skips_refused else "fail").save()
            if not report.exists():
                return Refused(0, ())
            content = json.loads(report.read_text("utf-8"))
            return Refused(content["refused"], tuple((why, number) for why, number in content["reasons"]))

    def _paced(self, frame: DataFrame) -> DataFrame:
        return frame.coalesce(1) if self.config.node.messages_per_second else frame  # a pace is kept by one task

    def _node_options(self) -> dict[str, str]:
        node = self.config.node
        return {
            "url": node.url,
            "token": node.token,
            "timeoutS": str(node.timeout_s),
            "messagesPerRequest": str(node.messages_per_request),
            "messagesPerSecond": str(node.messages_per_second),
            "ack": node.ack,
        }

    def append(self, name: str, frame: DataFrame, *, app: str = "", batch: int = -1) -> None:
        """Append a batch frame to a table. With `app` and `batch` (in foreachBatch: query name and batch ID) a repeated call changes
        nothing.
        """
        delta.append(self.path(name), shape(table_of(name), frame), table_of(name), app=app, batch=batch)

    def replace(self, name: str, frame: DataFrame) -> None:
        """Replace all rows of a table in one commit. Readers see the old rows or the new ones."""
        delta.replace(self.path(name), shape(table_of(name), frame), table_of(name))

    def replace_since(self, name: str, frame: DataFrame, since: datetime) -> None:
        """Replace the rows of the days from `since` on in one commit. The frame must not have earlier rows."""
        delta.replace_since(self.path(name), shape(table_of(name), frame), table_of(name), since)

    def merge(self, name: str, frame: DataFrame, *, app: str = "", batch: int = -1) -> None:
        """Merge a batch frame into a table by the table's key: existing rows are updated, others added. A repeated merge changes nothing.
        In foreachBatch give `app` (`Run.app`) and `batch`: then CheckpointOlder is raised if the checkpoint was restored from a copy.
        """
        delta.merge(self.path(name), shape(table_of(name), frame), table_of(name), app=app, batch=batch)


def checkpoints_of(config: Config) -> Path:
    """The folder of all checkpoints."""
    given = config.lake.checkpoints
    return Path(given).absolute() if given else Path(config.lake.path).absolute() / "_checkpoints"


@contextmanager
def holding(config: Config, jobs: Iterable[str]) -> Iterator[None]:
    """Hold the lock of these jobs on the lake while the block runs. Raises LakeBusy if another process holds one. The locks of a killed
    process are released. If the file system has no locks, Spark notices a second process only when both write the same batch.
    """
    folder = Path(config.lake.path).resolve() / "_locks"  # of the lake, whatever folder the checkpoints are in
    with ExitStack() as held:
        for job in jobs:
            folder.mkdir(parents=True, exist_ok=True)
            file = held.enter_context((folder / f"{job}.lock").open("a+"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                who = file.read().strip()
                raise LakeBusy(
                    f"{job} already runs on this lake: {who}; only one process can run a job on a lake at a time"
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.ENOLCK):
                    raise
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
        yield


def table_of(name: str) -> Table:
    if name not in TABLES:
        raise KeyError(f"{name} is not a table: expected one of: {', '.join(TABLES)}")
    return TABLES[name]


def shape(table: Table, frame: DataFrame, *more: str) -> DataFrame:
    """The frame with the columns and types of the table. A missing column is an error of Spark's analysis."""
    columns = [
        # a list read from a file may hold nulls for all that Spark knows, and is not cast to one that may not
        F.col(field.name) if isinstance(field.dataType, ArrayType) else F.col(field.name).cast(field.dataType)
        for field in table.columns
    ]
    columns = [column.alias(field.name) for column, field in zip(columns, table.columns, strict=True)]
    if table.day:
        columns.append(F.to_date(F.col(table.day)).alias(DATE))
    return frame.select(*columns, *more)
