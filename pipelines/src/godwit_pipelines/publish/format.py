"""The format `godwit_publish`: every row of a frame becomes a message on its subject, in batch and as a stream.

Options: url, token, timeoutS, messagesPerRequest, messagesPerSecond, ack (cached or disk), app and batch (of a batch write). Columns: see
commands.COLUMNS. Owns what Spark asks of a sink. A row that is written again, after a crash, has the key that it had: the node takes
it once, for as long as it remembers keys (its limits idempotency_keys_max and idempotency_keys_age_ms_max).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid
from ..source.worker import settle
from .commands import COLUMNS, Command, bodies_of, command_of, key_of
from .rest import Node


@dataclass
class Published(WriterCommitMessage):
    """How many messages a task published, and how many of them the node had already."""

    count: int
    repeats: int


class PublishFormat(DataSource):
    """`godwit_publish`, as session.register_all makes it known."""

    @classmethod
    def name(cls) -> str:
        return "godwit_publish"

    def schema(self) -> StructType:
        raise ConfigInvalid("format", "godwit_publish", "is written to; what was published is read with format godwit")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return PublishWriter(Publisher(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return PublishStreamWriter(Publisher(self.options, schema))


class Publisher:
    """Where rows go, and how; checked before anything is sent."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        unknown = [name for name in schema.names if name not in COLUMNS]
        if unknown or not {"subject", "content"} <= set(schema.names):
            raise ConfigInvalid(
                "columns", ", ".join(schema.names), f"must be subject, content and at most {', '.join(COLUMNS[2:])}"
            )
        self.url = options.get("url", "http://127.0.0.1:8800")
        self.token = options.get("token", "")
        self.timeout_s = float(options.get("timeoutS", "60"))
        self.per_request = int(options.get("messagesPerRequest", "500"))
        self.per_second = float(options.get("messagesPerSecond", "0"))
        self.ack = options.get("ack", "")
        self.app = options.get("app", "")
        self.batch = int(options.get("batch", "0"))
        Node(self.url)

    def publish(self, batches: Iterator[pa.RecordBatch]) -> Published:
        """One task's rows, in their order."""
        settle()
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId") or self.app
        batch = int(context.getLocalProperty("streaming.sql.batchId") or self.batch)
        if not query:
            raise ConfigInvalid("app", "", "must name the writing, so that a row written again is known again")
        node = Node(self.url, self.token, timeout_s=self.timeout_s, per_second=self.per_second)
        count = 0
        try:
            for commands in bodies_of(self._commands(batches, query, batch, context.partitionId()), self.per_request):
                node.send(commands)
                count += len(commands)
        finally:
            node.close()
        return Published(count, node.repeats)

    def _commands(self, batches: Iterator[pa.RecordBatch], query: str, batch: int, partition: int) -> Iterator[Command]:
        row = 0
        for rows in batches:
            for each in rows.to_pylist():
                yield command_of(each, key_of(query, batch, partition, row), self.ack)
                row += 1


class PublishWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.publisher.publish(iterator)


class PublishStreamWriter(DataSourceStreamArrowWriter):
    """A stream's batches."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.publisher.publish(iterator)
