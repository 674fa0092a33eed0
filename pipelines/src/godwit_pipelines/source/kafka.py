"""Messages from Kafka with the columns of the journal's stream `messages`, so that every job reads them as it reads a node's.

A subject `/topic/k/e/y` is the topic `topic` with the key `k/e/y`; a message's position is its offset. Columns that Kafka
does not have come from headers, named `godwit-` and the column; a missing header means the default of a plain producer.
`node` is the topic and partition, `run` the topic's id, within which offsets are unique: a recreated topic starts again
at offset 0. There is no checksum, because Kafka has its own. Pure, except for reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from ..errors import ConfigInvalid
from ..settings import KafkaSettings
from ..subject import BYTES_MAX, NO_SUBJECT
from .columns import FAULT, stream_columns
from .kafka_faults import reach

_LONG = 2**63 - 1
_NUMBERS = {"epoch": _LONG, "sequence": _LONG, "flags": 15, "expiry_s": 2**32 - 1}
"""Headers that are numbers, and their bounds."""
_TEXTS = ("tenant", "publisher")


def kafka_messages(
    spark: SparkSession, settings: KafkaSettings, topics: Mapping[str, str], *, is_stream: bool
) -> DataFrame:
    """The topics as they are, or as they grow; `topics` are their ids."""
    if not settings.servers or not settings.topics:
        raise ConfigInvalid("kafka.servers", settings.servers, "and kafka.topics must both be set")
    reach(settings.servers)
    reader = (spark.readStream if is_stream else spark.read).format("kafka")
    reader = reader.option("kafka.bootstrap.servers", settings.servers).option("subscribe", ",".join(settings.topics))
    reader = reader.option("startingOffsets", "earliest").option("includeHeaders", "true")
    # What a producer's transaction took back was never published; offsets of such records are not missing ones.
    reader = reader.option("kafka.isolation.level", "read_committed")
    reader = reader.option("failOnDataLoss", str(settings.fail_on_data_loss).lower())
    if is_stream:
        reader = reader.option("maxOffsetsPerTrigger", str(settings.rows_per_batch))
    return from_records(reader.load(), topics)


def from_records(records: DataFrame, topics: Mapping[str, str] | None = None) -> DataFrame:
    """Kafka's records as messages with their topic's id. Anybody may produce to a topic: a record that is not a valid
    message becomes a row with a fault.
    """
    pairs = [F.lit(each) for pair in (topics or {"": ""}).items() for each in pair]
    ids = F.create_map(*pairs)
    key = F.col("key").cast("string")
    subject = F.concat(
        F.lit("/"), "topic", F.when(F.coalesce(key, F.lit("")) == "", "").otherwise(F.concat(F.lit("/"), key))
    )
    known: dict[str, Column] = {
        "node": F.concat_ws("/", "topic", F.col("partition").cast("string")),
        "run": F.coalesce(ids[F.col("topic")], F.lit("")),
        "tenant": F.coalesce(text("tenant"), F.lit("")),
        "journal_offset": F.col("offset"),
        "time": F.col("timestamp"),
        "subject": F.make_valid_utf8(subject),
        "epoch": F.coalesce(number("epoch"), F.lit(0)),
        "sequence": F.coalesce(number("sequence"), F.col("offset")),
        "arrival": F.col("offset"),
        "kind": F.coalesce(text("kind"), F.lit("bytes")),
        "content": F.coalesce(F.col("value"), F.lit(b"")),
        "publisher": F.coalesce(text("publisher"), F.lit("")),
        "key": header("key").cast("binary"),
        "flags": F.coalesce(number("flags"), F.lit(4)),
        "reply_to": text("reply_to"),
        "expiry_s": number("expiry_s"),
        FAULT: find_fault(subject),
    }
    columns = stream_columns("messages")
    missing = F.lit(None)
    return records.select(*(known.get(field.name, missing).cast(field.dataType).alias(field.name) for field in columns))


def find_fault(subject: Column) -> Column:
    """Null for a valid record; otherwise the part of it that is not valid."""
    fault = F.when(~is_subject(subject), "subject: topic and key do not form a valid subject")
    for name in _NUMBERS:
        fault = fault.when(
            header(name).isNotNull() & number(name).isNull(), f"header godwit-{name}: not a valid number"
        )
    for name in _TEXTS:
        fault = fault.when(~F.is_valid_utf8(header(name)), f"header godwit-{name}: not valid UTF-8")
    fault = fault.when(
        ~header("kind").isin("json", "text", "bytes"), "header godwit-kind: expected json, text or bytes"
    )
    fault = fault.when(~is_subject(header("reply_to")), "header godwit-reply_to: not a valid subject")
    is_text = header("kind").isin("json", "text")
    return fault.when(is_text & ~F.is_valid_utf8(F.col("value").cast("string")), "content: not valid UTF-8")


def is_subject(name: Column) -> Column:
    """True if a text is a subject by the rules of nodes (protocol.md, chapter 1); null for null."""
    return F.is_valid_utf8(name) & (F.octet_length(name) <= BYTES_MAX) & ~F.make_valid_utf8(name).rlike(NO_SUBJECT)


def number(name: str) -> Column:
    """A header as a number; null if it is missing, not a number, or out of bounds."""
    found = header(name).try_cast("long")
    return F.when(found.between(0, _NUMBERS[name]), found)


def text(name: str) -> Column:
    """A header as text, with any bytes."""
    return F.make_valid_utf8(header(name))


def header(name: str) -> Column:
    """The last header of a name, unchanged; null without one."""
    found = F.filter("headers", lambda each: each["key"] == f"godwit-{name}")
    return F.try_element_at(found, F.lit(-1))["value"].cast(StringType())


def connector_jars(folder: str) -> str:
    """The connector's files, for spark.jars: deploy/spark/kafka-connector.xml fetches them."""
    jars = sorted(str(path.absolute()) for path in Path(folder).glob("*.jar"))
    if not jars:
        raise ConfigInvalid(
            "kafka.jars",
            folder,
            "is a folder without the connector's jars",
            hint="the pipelines guide shows how to fetch them",
        )
    return ",".join(jars)
