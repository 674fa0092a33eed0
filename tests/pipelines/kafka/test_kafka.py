"""Messages from Kafka land as those of a journal do. A broker and the connector are fetched, so this is one of the long tests."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from godwit_pipelines.cluster import free_port
from godwit_pipelines.errors import KafkaFailed
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import KafkaSettings
from godwit_pipelines.source import kafka
from godwit_pipelines.source.columns import stream_columns
from godwit_pipelines.source.kafka import from_records, is_subject
from tests.pipelines.conftest import ROOT
from tests.pipelines.driven import run

JAVA = ["java", "-Xms32m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
RECORD = """topic string, partition int, offset long, timestamp timestamp, key binary, value binary,
    headers array<struct<key string, value binary>>"""
WRITER = """
import sys
from godwit_pipelines.session import build_session
from godwit_pipelines.settings import SparkSettings
from godwit_pipelines.source.kafka import connector_jars
from pyspark.sql import functions as F
jars, servers, first, next = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
spark = build_session(SparkSettings(master="local[1]"), life="once", extra={"spark.jars": connector_jars(jars)})
rows = spark.range(first, next).select(
    F.when(F.col("id") == next - 1, F.unhex(F.lit("FF"))).otherwise(F.concat(F.lit("room/"), F.col("id") % 10)).alias("key"),
    F.col("id").cast("string").alias("value"),
    F.array(F.struct(F.lit("godwit-kind").alias("key"), F.lit(b"json").alias("value"))).alias("headers"),
)
rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "rooms").option("includeHeaders", "true").save()
"""

REMOVER = """
import sys, time
from godwit_pipelines.session import build_session
from godwit_pipelines.settings import SparkSettings
from godwit_pipelines.source.kafka import connector_jars
spark = build_session(SparkSettings(master="local[1]"), life="once", extra={"spark.jars": connector_jars(sys.argv[1])})
jvm = spark._jvm
properties = jvm.java.util.Properties()
properties.put("bootstrap.servers", sys.argv[2])
client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
names = jvm.java.util.ArrayList()
names.add("rooms")
client.deleteTopics(names).all().get()
while client.listTopics().names().get().contains("rooms"):
    time.sleep(0.1)
"""

ABORTED = """
import sys
from godwit_pipelines.session import build_session
from godwit_pipelines.settings import SparkSettings
from godwit_pipelines.source.kafka import connector_jars
spark = build_session(SparkSettings(master="local[1]"), life="once", extra={"spark.jars": connector_jars(sys.argv[1])})
clients = spark._jvm.org.apache.kafka.clients.producer
properties = spark._jvm.java.util.Properties()
properties.put("bootstrap.servers", sys.argv[2])
properties.put("transactional.id", "aborted")
for side in ("key", "value"):
    properties.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer")
producer = clients.KafkaProducer(properties)
producer.initTransactions()
for number in (-1, -2):
    producer.beginTransaction()
    for partition in range(3):
        record = clients.ProducerRecord("rooms", partition, "room/0", str(number))
        producer.send(record).get()
    producer.commitTransaction() if number == -2 else producer.abortTransaction()
producer.close()
"""


def test_records_become_messages_by_key_and_headers(spark: SparkSession) -> None:
    headers = [("godwit-publisher", b"first"), ("godwit-publisher", b"eva"), ("godwit-kind", b"json"), ("other", b"x")]
    rows = [("rooms", 3, 7, None, b"k/1", b"5", headers), ("rooms", 0, 8, None, None, None, None)]
    found = from_records(spark.createDataFrame(rows, RECORD))
    assert found.columns == stream_columns("messages").names
    plain, bare = found.orderBy("journal_offset").collect()
    assert (plain["node"], plain["subject"], plain["sequence"], plain["kind"]) == ("rooms/3", "/rooms/k/1", 7, "json")
    assert (plain["publisher"], bytes(plain["content"]), plain["crc"]) == ("eva", b"5", None)
    assert (bare["subject"], bare["kind"], bytes(bare["content"]), bare["publisher"]) == ("/rooms", "bytes", b"", "")


@pytest.mark.parametrize(
    "key, headers, fault",
    [
        (b"k", [("godwit-kind", b"text")], "content"),
        (b"\xff\xfe", [], "subject"),
        (b"a//b", [], "subject"),
        (b"k", [("godwit-publisher", b"\xff")], "header godwit-publisher"),
        (b"k", [("godwit-sequence", b"third")], "header godwit-sequence"),
        (b"k", [("godwit-flags", b"99999999999")], "header godwit-flags"),
        (b"k", [("godwit-kind", b"xml")], "header godwit-kind"),
        (b"k", [("godwit-reply_to", b"back")], "header godwit-reply_to"),
    ],
)
def test_a_record_that_makes_no_message_is_one_with_a_fault(
    key: bytes, headers: list[tuple[str, bytes]], fault: str, spark: SparkSession
) -> None:
    sound = [("godwit-reply_to", b"/b"), ("godwit-kind", b"bytes")]
    rows = [("rooms", 0, 1, None, key, b"\xff", headers), ("rooms", 0, 2, None, b"k", b"\xff", sound)]
    found = from_records(spark.createDataFrame(rows, RECORD)).orderBy("journal_offset").toArrow().to_pylist()
    assert [str(row["fault"]).split(":")[0] for row in found] == [fault, "None"]
    assert (found[0]["node"], found[0]["journal_offset"], found[0]["content"]) == ("rooms/0", 1, b"\xff")


def test_records_of_transactions_that_were_not_committed_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        pass

    class Reader(dict[str, str]):
        def format(self, _: str) -> Reader:
            return self

        def option(self, name: str, value: str) -> Reader:
            self[name] = value
            return self

        def load(self) -> None:
            raise Asked

    monkeypatch.setattr(kafka, "reach", lambda _: None)
    settings = KafkaSettings(servers="127.0.0.1:9", topics=("rooms",))
    for is_stream in (True, False):
        reader = Reader()
        spark: Any = SimpleNamespace(read=reader, readStream=reader)
        with pytest.raises(Asked):
            kafka.kafka_messages(spark, settings, {}, is_stream=is_stream)
        assert reader["kafka.isolation.level"] == "read_committed"


def test_columns_know_the_subjects_that_nodes_take(spark: SparkSession) -> None:
    vectors = json.loads((ROOT / "protocol/vectors/subjects.json").read_text("utf-8"))
    texts = {**dict.fromkeys(vectors["valid_subjects"], True), **dict.fromkeys(vectors["invalid_subjects"], False)}
    frame = spark.createDataFrame(
        list({**texts, "/a/\u2028": True, "/a/*/\u2028x": False}.items()), "text string, is_one boolean"
    )
    assert frame.where(is_subject(F.col("text")) != F.col("is_one")).collect() == []


def fetch(pom: Path, folder: Path) -> Path:
    """The jars that a pom names."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no mvn, which fetches Kafka")
    words = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
    subprocess.run([*words, f"-DoutputDirectory={folder}"], check=True, stdin=subprocess.DEVNULL, timeout=300)
    return folder


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """One broker, controller and all; gives its address."""
    jars = fetch(ROOT / "tests/pipelines/kafka/broker.xml", tmp_path / "broker-jars")
    port, control = free_port(), free_port()
    properties = tmp_path / "server.properties"
    lines = ["process.roles=broker,controller", "node.id=1", f"controller.quorum.voters=1@127.0.0.1:{control}"]
    lines += [f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}"]
    lines += [f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}", "controller.listener.names=CONTROLLER"]
    lines += [f"log.dirs={tmp_path}/kafka", "offsets.topic.replication.factor=1", "num.partitions=3"]
    lines += [
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.min.isr=1",
        "log.cleaner.dedupe.buffer.size=4194304",
    ]
    properties.write_text("\n".join(lines))
    name = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
    java = [*JAVA, "-cp", f"{jars}/*"]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", name, "-c", str(properties)], check=True, timeout=120
    )
    with (tmp_path / "broker.log").open("wb") as log:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "broker.log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_topic_lands_once_over_restarts_and_a_lost_checkpoint(tmp_path: Path, broker: str, lake: Lake) -> None:
    import sys

    jars = fetch(ROOT / "deploy/spark/kafka-connector.xml", tmp_path / "jars")
    words = (
        "run",
        "land",
        "--once",
        "--lake",
        str(lake.folder),
        "--set",
        f"kafka.servers={broker}",
        "--set",
        "kafka.topics=rooms",
    )
    words = (*words, "--set", f"kafka.jars={jars}", "--set", "kafka.rows_per_batch=700")
    for times, (first, next) in enumerate(((0, 2000), (2000, 2500), (2500, 2600))):
        if times == 2:  # a checkpoint that was lost: what has landed does not land again
            shutil.rmtree(lake.checkpoint("land-kafka"))
        subprocess.run(
            [sys.executable, "-c", WRITER, str(jars), broker, str(first), str(next)], check=True, timeout=300
        )
        assert run(*words, log=tmp_path / "log") == 0, (tmp_path / "log").read_text()
        landed, refused = lake.read("bronze.messages"), lake.read("bronze.quarantine")
        number = F.col("content").cast("string").cast("long")
        wrong = landed.where(F.concat(F.lit("/rooms/room/"), (number % 10).cast("string")) != F.col("subject")).count()
        bad = times + 1  # each time's last record has a key that is no text
        assert (landed.count(), landed.select(number).distinct().count(), wrong) == (next - bad, next - bad, 0)
        assert (refused.count(), refused.where("fault like 'subject: %'").count()) == (bad, bad)
    subprocess.run([sys.executable, "-c", ABORTED, str(jars), broker], check=True, timeout=300)
    assert run(*words, log=tmp_path / "log") == 0, (tmp_path / "log").read_text()
    values = [row[0] for row in lake.read("bronze.messages").where(number < 0).select(number).collect()]
    assert values == [-2] * 3, "what a producer took back was never published"
    subprocess.run([sys.executable, "-c", REMOVER, str(jars), broker], check=True, timeout=300)
    subprocess.run([sys.executable, "-c", WRITER, str(jars), broker, "10000", "14000"], check=True, timeout=300)
    assert run(*words, log=tmp_path / "log") == 0, (tmp_path / "log").read_text()
    assert "land-kafka: rooms was recreated" in " ".join((tmp_path / "log").read_text().split())
    anew = lake.read("bronze.messages").where("cast(cast(content as string) as long) >= 10000")
    assert anew.count() == anew.select("node", "run", "journal_offset").distinct().count() == 3999
    assert lake.read("bronze.messages").count() == 2600 - 3 + 3 + 3999
    assert lake.read("bronze.messages").select("run").distinct().count() == 2
    assert run(*words, "--set", "kafka.topics=halls", log=tmp_path / "log") == KafkaFailed.exit_code
    assert "check its name in kafka.topics" in (tmp_path / "log").read_text()
