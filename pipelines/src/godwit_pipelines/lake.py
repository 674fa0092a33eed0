"""The tables as the jobs see them: read as they stand, read as they grow, appended to, replaced, merged into.

Owns names, places and formats; what a table holds is tables/'s, how rows get into its files is delta/'s. Invariant: what is
appended through here is there once by (query, batch), what is merged changes nothing when it is merged again, and a table that is not
there yet reads as an empty one of its schema.
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
    """How many messages a node refused that were skipped, and why, of some."""

    messages: int
    reasons: tuple[str, ...]


class Lake:
    """The tables under one folder, and the journals they come from."""

    def __init__(self, spark: SparkSession, config: Config) -> None:
        self.spark = spark
        self.config = config
        self.folder = Path(config.lake.path).absolute()

    def path(self, name: str) -> str:
        """The folder of a table, layer by layer."""
        return str(self.folder.joinpath(*table_of(name).name.split(".")))

    def checkpoint(self, query: str) -> str:
        """Where a query keeps its place. A query whose plan changes takes a new name: the sinks make reading again safe."""
        return str(checkpoints_of(self.config) / query)

    def journal(self, stream: str, where: str = "", **options: str) -> DataFrame:
        """A stream of the journals as it stands, or the rows for which `where`, a condition in SQL, holds: files that cannot have such rows
        are not read.
        """
        if where:
            options["where"] = find_bounds(self.spark, where)
        reader = self.spark.read.format("godwit").options(**{**self._journal_options(stream), **options})
        return reader.load().where(where) if where else reader.load()

    def journal_stream(self, stream: str, **options: str) -> DataFrame:
        """A stream of the journals as it grows."""
        return self.spark.readStream.format("godwit").options(**{**self._journal_options(stream), **options}).load()

    def kafka_stream(self) -> DataFrame:
        """Messages of the Kafka topics as they come, with the columns of the journal's `messages`."""
        return kafka_messages(self.spark, self.config.kafka, self.kafka_topics(), is_stream=True)

    def kafka_topics(self) -> dict[str, str]:
        """The id of each topic of Kafka, which is another one when the topic is made again."""
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
        """A table as it stands; an empty one of its schema if no job has written it yet. `is_partial`: what is left of it, where files
        are gone.
        """
        delta.add_columns(self.path(name), table_of(name).schema)
        return delta.read_table(self.spark, self.path(name), table_of(name).schema, is_partial=is_partial)

    def stream(self, name: str, *, rows_per_batch: int = 0) -> DataFrame:
        """A table as it grows: first what is there, then every row that is appended. Rows that are compacted do not come
        again, and rows that are erased are not told.
        """
        rows = rows_per_batch or self.config.journal.rows_per_batch
        delta.add_columns(self.path(name), table_of(name).schema)
        reader = self.spark.readStream.format("godwit_delta").schema(table_of(name).schema)
        return reader.option("path", self.path(name)).option("maxRowsPerBatch", str(rows)).load()

    def appending(self, name: str, frame: DataFrame) -> DataStreamWriter:
        """A streaming frame on its way into a table, for `Run.start`: each batch exactly once."""
        table = table_of(name)
        writer = shape(table, frame).writeStream.format("godwit_delta").outputMode("append")
        return writer.option("path", self.path(name)).option("partitions", ",".join(table.partitions))

    def landing(self, stream: str, frame: DataFrame) -> DataStreamWriter:
        """Rows with the columns of a stream on their way into its bronze table; damaged rows go to the quarantine."""
        return self._landing(stream, shape(table_of(f"bronze.{stream}"), frame, FAULT))

    def landing_journal(self, stream: str, **options: str) -> DataStreamWriter:
        """A stream of the journals on its way into its bronze table. Rows land as they were read, so the tasks that write read them: they
        do not pass through Java, which is most of what landing would cost.
        """
        writer = self._landing(stream, self.journal_stream(stream, asTasks="true", **options))
        return writer.option("asTasks", "true").option("verify", str(self.config.journal.verify).lower())

    def _landing(self, stream: str, frame: DataFrame) -> DataStreamWriter:
        table = table_of(f"bronze.{stream}")
        writer = frame.writeStream.format("godwit_delta").outputMode("append").option("stream", stream)
        writer = writer.option("quarantine", self.path("bronze.quarantine"))
        return writer.option("path", self.path(table.name)).option("partitions", ",".join(table.partitions))

    def publishing(self, frame: DataFrame) -> DataStreamWriter:
        """A streaming frame on its way into subjects: columns subject, content, and if need be kind, key, reply_to, retain,
        guaranteed. Each row is one message, however often its batch runs. Where rows come out of a shuffle, give them a
        `key` or sort them within partitions: else a repeated batch may have them in another order.
        """
        return (
            self._paced(frame).writeStream.format("godwit_publish").options(**self._node_options()).outputMode("append")
        )

    def publish(self, frame: DataFrame, *, app: str, batch: int = 0, skips_refused: bool = False) -> Refused:
        """A batch frame into subjects, each row once per (app, batch): inside foreachBatch the query's name and the batch's id. Returns
        what was refused for good: with `skips_refused` the rest is published all the same, else that ends it.
        """
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.json")
            writer = self._paced(frame).write.format("godwit_publish").options(**self._node_options()).mode("append")
            writer = writer.option("app", app).option("batch", str(batch)).option("report", str(report))
            writer.option("refused", "skip" if skips_refused else "fail").save()
            if not report.exists():
                return Refused(0, ())
            told = json.loads(report.read_text("utf-8"))
            return Refused(told["refused"], tuple(told["reasons"]))

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
        """A batch frame into a table, once per (app, batch) when these are given (from foreachBatch: query name, batch id)."""
        delta.append(self.path(name), shape(table_of(name), frame), table_of(name), app=app, batch=batch)

    def replace(self, name: str, frame: DataFrame) -> None:
        """A batch frame in place of all that a table holds, in one step: readers see the old rows or the new ones."""
        delta.replace(self.path(name), shape(table_of(name), frame), table_of(name))

    def replace_since(self, name: str, frame: DataFrame, since: datetime) -> None:
        """A batch frame in place of the rows whose day's time is `since` or later, in one step. The frame has none that is earlier."""
        delta.replace_since(self.path(name), shape(table_of(name), frame), table_of(name), since)

    def merge(self, name: str, frame: DataFrame, *, app: str = "", batch: int = -1) -> None:
        """A batch frame into a table by its key: rows that are there are updated, others added. The same again changes nothing. From
        foreachBatch with the query's id and the batch's (`Run.app`): a checkpoint that was put back ends it.
        """
        delta.merge(self.path(name), shape(table_of(name), frame), table_of(name), app=app, batch=batch)


def checkpoints_of(config: Config) -> Path:
    """The folder of all queries' places."""
    given = config.lake.checkpoints
    return Path(given).absolute() if given else Path(config.lake.path).absolute() / "_checkpoints"


@contextmanager
def holding(config: Config, jobs: Iterable[str]) -> Iterator[None]:
    """While the block lasts no other process runs these jobs on the lake; raises LakeBusy where one does. A process that is
    killed holds nothing. Where files cannot be locked Spark finds out, in the midst of a batch.
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
    """The frame's columns as the table declares them: its contract. A missing column is an error of analysis."""
    columns = [
        # a list read from a file may hold nulls for all that Spark knows, and is not cast to one that may not
        F.col(field.name) if isinstance(field.dataType, ArrayType) else F.col(field.name).cast(field.dataType)
        for field in table.columns
    ]
    columns = [column.alias(field.name) for column, field in zip(columns, table.columns, strict=True)]
    if table.day:
        columns.append(F.to_date(F.col(table.day)).alias(DATE))
    return frame.select(*columns, *more)
