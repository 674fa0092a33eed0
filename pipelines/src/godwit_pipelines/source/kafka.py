"""Messages from Kafka with the columns of the journal's stream `messages`, so that every job reads them as it reads a node's.

A subject `/topic/k/e/y` is the topic `topic` with the key `k/e/y`; a message's position is its offset. What Kafka has no place for
comes from headers, `godwit-` and the column's name; a header that is not there leaves what a plain producer means. `node` is the topic
and partition, within which offsets are unique. There is no checksum of ours: Kafka has its own. Pure but for reading.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from ..errors import ConfigInvalid
from ..settings import KafkaSettings
from .columns import stream_columns


def kafka_messages(spark: SparkSession, settings: KafkaSettings, *, is_stream: bool) -> DataFrame:
    """The topics as they stand, or as they grow."""
    if not settings.servers or not settings.topics:
        raise ConfigInvalid("kafka.servers", settings.servers, "and kafka.topics must both be set")
    reader = (spark.readStream if is_stream else spark.read).format("kafka")
    reader = reader.option("kafka.bootstrap.servers", settings.servers).option("subscribe", ",".join(settings.topics))
    reader = reader.option("startingOffsets", "earliest").option("includeHeaders", "true")
    if is_stream:
        reader = reader.option("maxOffsetsPerTrigger", str(settings.rows_per_batch))
    return from_records(reader.load())


def from_records(records: DataFrame) -> DataFrame:
    """Kafka's records as messages."""
    key = F.col("key").cast("string")
    known: dict[str, Column] = {
        "node": F.concat_ws("/", "topic", F.col("partition").cast("string")),
        "run": F.lit(""),
        "tenant": F.coalesce(header("tenant"), F.lit("")),
        "offset": F.col("offset"),
        "time": F.col("timestamp"),
        "subject": F.concat(
            F.lit("/"), F.col("topic"), F.when(key.isNull() | (key == ""), "").otherwise(F.concat(F.lit("/"), key))
        ),
        "epoch": F.coalesce(header("epoch").cast("long"), F.lit(0)),
        "sequence": F.coalesce(header("sequence").cast("long"), F.col("offset")),
        "arrival": F.col("offset"),
        "kind": F.coalesce(header("kind"), F.lit("bytes")),
        "content": F.coalesce(F.col("value"), F.lit(b"")),
        "publisher": F.coalesce(header("publisher"), F.lit("")),
        "key": header("key").cast("binary"),
        "flags": F.coalesce(header("flags").cast("int"), F.lit(4)),
        "reply_to": header("reply_to"),
        "expiry_s": header("expiry_s").cast("long"),
    }
    columns = stream_columns("messages")
    missing = F.lit(None)
    return records.select(*(known.get(field.name, missing).cast(field.dataType).alias(field.name) for field in columns))


def header(name: str) -> Column:
    """The last header of a name, as text; null if there is none."""
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
            hint="the guide says how to fetch them",
        )
    return ",".join(jars)
