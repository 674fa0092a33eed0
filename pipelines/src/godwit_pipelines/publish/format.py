"""The format `godwit_publish`: publishes every row of a frame as a message on its subject, in batch and as a stream.

Options: url · token · timeoutS · messagesPerRequest · messagesPerSecond · ack: cached or disk · app and batch: of a batch write ·
refused: fail, or skip to count messages that the node refuses permanently and publish the rest · report: of a batch write, the file for
these counts, as JSON.

Columns: see commands.COLUMNS. Owns what Spark asks of a sink. A row that is written again after a crash has the same key, so the node
stores it once, for as long as it remembers keys (its limits idempotency_keys_max and idempotency_keys_age_ms_max).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid, PublishFailed
from ..source.worker import settle
from .commands import COLUMNS, Command, bodies_of, command_of, key_of
from .rest import Node

_REASONS = 20


@dataclass
class Published(WriterCommitMessage):
    """Counts of one task: messages sent, of these known to the node already, and messages refused and skipped, with their reasons."""

    count: int
    repeats: int
    refused: int
    reasons: dict[str, int]


class PublishFormat(DataSource):
    """The format `godwit_publish`; session.register_all registers it."""

    @classmethod
    def name(cls) -> str:
        return "godwit_publish"

    def schema(self) -> StructType:
        raise ConfigInvalid("format", "godwit_publish", "can only be written; read messages with format godwit")

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return PublishWriter(Publisher(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return PublishStreamWriter(Publisher(self.options, schema))


class Publisher:
    """The destination and pace of publishes, checked before anything is sent."""

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
        self.skips = options.get("refused", "fail") == "skip"
        self.report = options.get("report", "")
        Node(self.url)

    def publish(self, batches: Iterator[pa.RecordBatch]) -> Published:
        """One task's rows, in their order."""
        settle()
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId") or self.app
        batch = int(context.getLocalProperty("streaming.sql.batchId") or self.batch)
        if not query:
            raise ConfigInvalid("app", "", "must name the write, so that a repeated row is recognized")
        place = (query, batch, context.partitionId())
        node = Node(
            self.url, self.token, timeout_s=self.timeout_s, per_second=self.per_second, skips_refused=self.skips
        )
        count = 0
        try:
            for commands in bodies_of(self._commands(batches, place, node.refused), self.per_request):
                node.send(commands)
                count += len(commands)
        finally:
            node.close()
        refused = Counter(node.refused)
        return Published(count, node.repeats, refused.total(), dict(refused.most_common(_REASONS)))

    def _commands(
        self, batches: Iterator[pa.RecordBatch], place: tuple[str, int, int], refused: list[str]
    ) -> Iterator[Command]:
        row = 0
        for rows in batches:
            for each in rows.to_pylist():
                try:
                    yield command_of(each, key_of(*place, row), self.ack)
                except PublishFailed as error:
                    if not self.skips:
                        raise
                    refused.append(str(error))
                row += 1


class PublishWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.publisher.publish(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Write the results of the rows to a file: this is another process, and Spark does not pass results on."""
        if self.publisher.report:
            done = [message for message in messages if isinstance(message, Published)]
            reasons = sum((Counter(each.reasons) for each in done), Counter[str]())
            summary = {"refused": sum(each.refused for each in done), "reasons": reasons.most_common(_REASONS)}
            Path(self.publisher.report).write_text(json.dumps(summary), "utf-8")


class PublishStreamWriter(DataSourceStreamArrowWriter):
    """A stream's batches."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.publisher.publish(iterator)
