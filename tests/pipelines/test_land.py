"""`land` and what keeps its tables right: they equal the journals, and `reconcile` confirms it or names what is missing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from godwit_pipelines.config import load_config
from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.files import Written, write_files
from godwit_pipelines.delta.table_files import live_files
from godwit_pipelines.errors import ConfigInvalid, TableMissing
from godwit_pipelines.jobs import JOBS, Outcome, Run
from godwit_pipelines.jobs.job import run_to_end
from godwit_pipelines.jobs.land import find_ends, keep_ends, take_topics
from godwit_pipelines.lake import Lake
from godwit_pipelines.metrics import rows_taken
from godwit_pipelines.progress import translate
from godwit_pipelines.settings import Config
from godwit_pipelines.source.kafka import from_records
from godwit_pipelines.tables import TABLES
from tests.pipelines.journals import START, JournalWriter, message, run_of, write_messages
from tests.pipelines.kafka.test_kafka import RECORD

Runs = Callable[..., Outcome]


def wrong_rows(lake: Lake) -> int:
    """Rows that are not what the writer made of their offset."""
    content = F.get_json_object(F.col("content").cast("string"), "$.n").cast("long")
    sequence = F.floor(F.col("journal_offset") / 10) + 1
    return (
        lake.read("bronze.messages")
        .where((content != F.col("journal_offset")) | (F.col("sequence") != sequence))
        .count()
    )


def landed(lake: Lake) -> dict[str, tuple[int, int]]:
    """Rows, and distinct offsets, of each node."""
    counts = (
        lake.read("bronze.messages").groupBy("node").agg(F.count("*"), F.count_distinct("journal_offset")).collect()
    )
    return {row[0]: (row[1], row[2]) for row in counts}


def test_days_that_are_let_go_of_are_not_missing(tmp_path: Path, config: Config, lake: Lake, run_job: Runs) -> None:
    now = datetime.now(UTC)
    writer = JournalWriter(tmp_path / "node-1", node="a")
    writer.write([message(offset, time=now - timedelta(days=9)) for offset in range(30)])
    writer.seal()
    writer.write([message(offset, time=now) for offset in range(30, 50)])
    run_job("land")
    keeping = replace(config, maintain=replace(config.maintain, keep_days={"bronze.messages": "5"}))

    def run(job: str) -> Outcome:
        given = Run(spark=lake.spark, config=keeping, lake=lake, job=job, say=lambda text: None)
        return JOBS[job].run(given) or Outcome()

    assert "30 rows of days before" in run("maintain").text
    assert run("reconcile").text == "messages of a: 20 rows landed, none missing"
    writer.seal()
    writer.write([message(offset, time=now) for offset in range(50, 53)])
    assert run("reconcile").text.endswith("messages of a: 50 to 52 not landed yet")
    keeping = replace(config, maintain=replace(config.maintain, keep_days={"bronze.quarantine": "5"}))
    assert "MISSING" not in run("reconcile").text, "they may have been damaged, and been let go of with the quarantine"
    assert "messages of a: 0 to 29 MISSING" in run_job("reconcile").text, "nobody said that they may go"


def test_every_row_lands_once_and_holes_repeats_and_damage_are_named(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    first = write_messages(tmp_path / "node-1", 1000, node="a")
    second = write_messages(tmp_path / "node-2", 300, node="b")
    path = tmp_path / "node-2/journal/messages" / second.segments[0]["file"]
    whole = path.read_bytes()
    at = whole.index(b"thermometer", len(whole) // 2)
    path.write_bytes(whole[:at] + b"T" + whole[at + 1 :])
    run_job("land")
    run_job("land")
    first.write([message(offset) for offset in range(1000, 1100)])
    shutil.rmtree(lake.checkpoint("land-messages"))  # what was lost there is found again in the table
    run_job("land")
    assert landed(lake) == {"a": (1100, 1100), "b": (299, 299)} and wrong_rows(lake) == 0
    damaged = lake.read("bronze.quarantine").collect()
    assert [(row["stream"], row["node"], row["fault"]) for row in damaged] == [("messages", "b", "crc")]
    assert "hermometer" in json.loads(damaged[0]["row"])["publisher"]

    first.write([message(offset) for offset in range(1100, 1110)])
    outcome = run_job("reconcile")
    assert outcome.found == 0
    assert "messages of a: 1,100 to 1,109 not landed yet" in outcome.text
    assert "messages of b: 299 rows landed, none missing" in outcome.text and "in quarantine" in outcome.text

    DeltaTable(lake.path("bronze.messages")).delete("node = 'a' AND journal_offset >= 40 AND journal_offset < 43")
    outcome = run_job("reconcile")
    assert outcome.found == 1 and "messages of a: 40 to 42 MISSING from bronze.messages" in outcome.text
    again = lake.read("bronze.messages").where("node = 'b' AND journal_offset IN (200, 201)").drop("date")
    lake.append("bronze.messages", again, app="by-hand", batch=0)
    lake.append("bronze.messages", again, app="by-hand", batch=0)
    outcome = run_job("reconcile")
    assert outcome.found == 2 and "messages of b: 200 to 201 REPEATED in bronze.messages (4 rows)" in outcome.text
    assert lake.read("ops.landing").where("kind = 'hole'").count() == 2


def test_a_lake_may_be_called_anything_that_the_system_allows(tmp_path: Path, spark: SparkSession) -> None:
    write_messages(tmp_path / "node-1", 20, node="a")
    folder = tmp_path / "lake ü {x,y} *?#"
    config = load_config(None, {}, {"journal.paths": str(tmp_path / "node-*"), "lake.path": str(folder)})
    lake = Lake(spark, config)
    for name in ("land", "reconcile"):
        JOBS[name].run(Run(spark, config, lake, job=name, say=lambda text: None))
    rows = lake.read("bronze.messages")
    assert rows.count() == 20 and {row["date"] for row in rows.select("date").collect()} == {START.date()}
    findings = lake.read("ops.landing")
    assert [row["kind"] for row in findings.collect()] == ["whole"]
    lake.merge("ops.landing", findings)
    lake.replace_since("ops.landing", findings, START)
    assert len(lake.read("ops.landing").collect()) == 1


def test_rows_of_a_file_that_somebody_removed_are_missing(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer = write_messages(tmp_path / "node-1", 30, node="a")
    for first in (30, 40):
        run_job("land")
        writer.write([message(offset) for offset in range(first, first + 10)])
    run_job("land")
    files = {
        file["min.journal_offset"]: Path(lake.path("bronze.messages"), file["path"])
        for file in live_files(lake.path("bronze.messages"))
    }
    for first in (30, 40):
        files[first].unlink(missing_ok=True)
    outcome = run_job("reconcile")
    assert outcome.found == 1 and "messages of a: 30 to 49 MISSING from bronze.messages" in outcome.text
    with pytest.raises(TableMissing, match="parquet"):
        try:
            run_job("audit")
        except Exception as error:
            raise translate(error) from error


@pytest.mark.long
def test_rows_land_as_ranges_day_by_day_after_those_of_a_checkpoint_that_knew_no_ranges(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    days = [
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2026, 11, 21, 12, tzinfo=UTC),
    ]
    writer = write_messages(tmp_path / "node-1", 30, node="a")
    through_spark = lake.landing("messages", lake.journal_stream("messages"))
    place = lake.checkpoint("land-messages")
    run_to_end(
        through_spark.queryName("land-messages").option("checkpointLocation", place), StreamingQuery.awaitTermination
    )
    assert landed(lake) == {"a": (30, 30)}
    writer.write([message(30 + number, time=time) for number, time in enumerate(days)])
    output = run_land(lake)
    assert [rows_taken(each) for each in output if rows_taken(each)] == [3] and landed(lake) == {"a": (33, 33)}
    assert [rows_taken(each) for each in run_land(lake) if rows_taken(each)] == [] and landed(lake) == {"a": (33, 33)}
    rows = lake.read("bronze.messages").where("journal_offset >= 30").orderBy("journal_offset").collect()
    assert [row["date"] for row in rows] == [day.date() for day in days] and wrong_rows(lake) == 0


def run_land(lake: Lake) -> list[dict[str, Any]]:
    """Land once more; what Spark says of the batches."""
    writer = lake.landing_journal("messages").option("checkpointLocation", lake.checkpoint("land-messages"))
    query = run_to_end(writer.queryName("land-messages"), StreamingQuery.awaitTermination)
    return [each if isinstance(each, dict) else each.jsonValue for each in query.recentProgress]


@pytest.mark.long  # what it puts together is tested part by part in test_delta.py
def test_maintain_compacts_erases_and_leaves_nothing_behind(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer = write_messages(tmp_path / "node-1", 30, node="a")
    for start in range(30, 60, 10):
        run_job("land")
        writer.write([message(offset, publisher="mallory") for offset in range(start, start + 10)])
    run_job("land")
    files = len(live_files(lake.path("bronze.messages")))
    orphan = Path(lake.path("bronze.messages"), "date=2026-11-21", "orphan.parquet")
    orphan.write_bytes(b"left by a crash")
    at_work = write_uncommitted(orphan.parents[1], [message(70), message(71, publisher="mallory")])
    assert files > 3
    stream = (
        lake.stream("bronze.messages").writeStream.format("noop").option("checkpointLocation", str(tmp_path / "place"))
    )

    def output() -> int:
        query = run_to_end(stream, StreamingQuery.awaitTermination)
        return sum(
            (each if isinstance(each, dict) else each.jsonValue)["numInputRows"] for each in query.recentProgress
        )

    assert output() == 60
    DeltaTable(lake.path("bronze.messages")).optimize.compact()
    assert len(live_files(lake.path("bronze.messages"))) < files and output() == 0
    outcome = run_job("maintain", erase="mallory")
    assert "bronze.messages: 30 rows removed" in outcome.text
    assert "2 files that no commit knows name the person, or cannot be read" in outcome.text and outcome.found == 2
    assert orphan.exists() and all((orphan.parents[1] / file.path).exists() for file in at_work)
    again = run_job("maintain", erase="mallory", alone="yes")
    assert again.found == 0 and not any((orphan.parents[1] / file.path).exists() for file in at_work)
    assert lake.read("bronze.messages").count() == 30 and output() == 0
    for path in Path(lake.path("bronze.messages")).rglob("*.parquet"):
        assert b"mallory" not in path.read_bytes()
    assert not orphan.exists() and lake.read("ops.erasures").where("rows = 30").count() == 1
    writer.write([message(60)])
    run_job("land")
    assert output() == 1


def write_uncommitted(path: Path, rows: list[dict[str, Any]]) -> list[Written]:
    """What a job at work has written and not yet committed."""
    table = TABLES["bronze.messages"]
    schema = arrow_schema(table.schema)
    whole = [{"node": "a", "journal_offset": 0, "crc": 0, "date": START.date(), **row} for row in rows]
    return write_files(pa.Table.from_pylist(whole, schema).to_batches(), path, schema, table.partitions)


def test_what_cannot_be_landed_is_said(tmp_path: Path, run_job: Runs) -> None:
    with pytest.raises(ConfigInvalid, match="mesages"):
        run_job("land", streams="mesages")
    assert "no node has written a journal" in run_job("land").text


def test_what_has_landed_of_kafka_stays_left_out_when_the_run_after_a_lost_checkpoint_is_cut_short(
    tmp_path: Path, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = tmp_path / "topic"  # read file by file, as a topic is read from its beginning
    for part in range(3):
        records = [("rooms", 0, offset, None, b"k", b"5", None) for offset in range(part * 10, part * 10 + 10)]
        spark.createDataFrame(records, RECORD).coalesce(1).write.mode("append").parquet(str(topic))
    files = sorted(topic.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    for age, file in enumerate(reversed(files)):
        os.utime(file, (START.timestamp() - age * 60,) * 2)
    whole = files[1].read_bytes()
    stream = spark.readStream.schema(RECORD).option("maxFilesPerTrigger", 1).parquet(str(topic))
    monkeypatch.setattr(Lake, "kafka_stream", lambda _: from_records(stream, {"rooms": "id"}))
    monkeypatch.setattr(Lake, "kafka_topics", lambda _: {"rooms": "id"})
    config = load_config(None, {}, {"kafka.topics": "rooms", "kafka.servers": "a:1", "lake.path": str(lake.folder)})

    def land() -> None:
        JOBS["land"].run(Run(spark, config, Lake(spark, config), job="land", say=lambda _: None))

    land()
    assert landed(lake) == {"rooms/0": (30, 30)}
    shutil.rmtree(lake.checkpoint("land-kafka"))
    files[1].write_bytes(b"cut short")
    os.utime(files[1], (START.timestamp() - 60,) * 2)
    with pytest.raises(Exception, match="parquet|Parquet"):
        land()
    files[1].write_bytes(whole)
    os.utime(files[1], (START.timestamp() - 60,) * 2)
    land()
    assert landed(lake) == {"rooms/0": (30, 30)}


def test_ends_of_kafka_are_kept_until_the_query_has_come_to_them(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    for number, rows in ((0, 20), (1, 10)):  # as if they were records of a topic with this id
        writer = JournalWriter(tmp_path / f"node-{number}", node=f"rooms/{number}")
        writer.write([message(offset, run="id", publisher=str(number)) for offset in range(rows)])
    run_job("land", streams="messages")
    topics = {"rooms": "id"}
    assert keep_ends(Run(lake.spark, lake.config, lake), "land-kafka", {}, {"rooms": "made again"}) == {}
    run = Run(lake.spark, lake.config, lake)
    checkpoint = Path(lake.checkpoint("land-kafka"))
    assert keep_ends(run, "land-kafka", {}, topics) == {"rooms/0": 20, "rooms/1": 10}
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir()
    for batch, place in enumerate(({"0": 7, "1": 10}, {"0": 20, "1": 12})):
        (checkpoint / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{json.dumps({'rooms': place})}")
        (checkpoint / "commits" / str(batch)).write_text("v1\n{}")
        (checkpoint / "offsets" / str(batch + 1)).write_text("v1\n{}\n{}")
        assert keep_ends(run, "land-kafka", {}, topics) == ({} if batch else {"rooms/0": 20})
    assert keep_ends(run, "land-kafka", {}, topics) == {}, "a topic that is made anew begins at 0 again"


def test_a_topic_that_was_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    checkpoint = tmp_path / "land-kafka"
    assert take_topics(checkpoint, {"rooms": "one", "halls": "two"}) == ""
    (checkpoint / "offsets").mkdir()
    assert take_topics(checkpoint, {"rooms": "one", "halls": "two"}) == "" and (checkpoint / "offsets").exists()
    assert take_topics(checkpoint, {"rooms": "one", "yards": "four"}) == "" and (checkpoint / "offsets").exists()
    said = take_topics(checkpoint, {"rooms": "one", "halls": "three"})
    assert said.startswith("land-kafka: halls was recreated") and not (checkpoint / "offsets").exists()
    assert take_topics(checkpoint, {"rooms": "one", "halls": "three"}) == ""


def test_a_table_that_somebody_removed_is_told_and_lands_again_without_its_checkpoint(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    write_messages(tmp_path / "node-1", 20, node="a")
    run_job("land", streams="messages")
    shutil.rmtree(Path(lake.path("bronze.messages"), "_delta_log"))
    found = run_job("reconcile")
    assert found.found == 1 and "messages of a: 0 to 19 MISSING from bronze.messages" in found.text
    with pytest.raises(
        TableMissing,
        match=r"bronze\.messages .*run land --rebuild --option streams=messages",
    ):
        run_job("land", streams="messages")
    shutil.rmtree(lake.checkpoint("land-messages"))
    run_job("land", streams="messages")
    assert landed(lake) == {"a": (20, 20)} and run_job("reconcile").found == 0


def test_a_table_that_somebody_removed_is_told_also_where_some_of_its_rows_were_erased(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    writer.write([message(offset, publisher="mallory" if offset < 5 else "ann") for offset in range(20)])
    run_job("land", streams="messages")
    run_job("maintain", erase="mallory")
    shutil.rmtree(lake.path("bronze.messages"))
    with pytest.raises(TableMissing, match=r"bronze\.messages "):
        run_job("land", streams="messages")
    writer.seal()
    writer.write([message(20, publisher="mallory")])
    writer.retain(20)
    shutil.rmtree(lake.checkpoint("land-messages"))
    run_job("land", streams="messages")
    assert landed(lake) == {"a": (1, 1)}
    run_job("maintain", erase="mallory")
    shutil.rmtree(lake.path("bronze.messages"))
    run_job("land", streams="messages")  # all that the journal holds was erased: nothing is there to land, or to miss


def test_what_a_query_at_work_keeps_its_place_in_is_missed(lake: Lake) -> None:
    run, place = Run(lake.spark, lake.config, lake), Path(lake.checkpoint("land-messages"))
    run.places.append(place)
    place.mkdir(parents=True)
    (place / "metadata").touch()
    run.check_places()
    shutil.rmtree(lake.checkpoint("land-messages"))
    with pytest.raises(TableMissing, match="land-messages "):
        run.check_places()


def test_nothing_is_begun_once_somebody_asked_to_end(tmp_path: Path, lake: Lake) -> None:
    write_messages(tmp_path / "node-1", 20, node="a")
    said = list[str]()
    run = Run(lake.spark, lake.config, lake, job="all", say=said.append, is_asked=lambda: len(said) > 0)
    assert JOBS["all"].run(run) and len(said) == 1 and said[0].startswith("1 of 7: land")
    JOBS["land"].run(run)
    assert run.queries == [] and not lake.exists("bronze.messages")


@pytest.mark.parametrize("query", ["land-messages", "land-kafka"])
def test_a_checkpoint_without_a_batch_is_none(query: str, tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    write_messages(tmp_path / "node-1", 20, node="a")
    run_job("land", streams="messages")
    shutil.rmtree(lake.checkpoint("land-messages"))
    Path(lake.checkpoint(query), "offsets").mkdir(parents=True)
    assert find_ends(Run(lake.spark, lake.config, lake), "messages", query, {}) == {"a": {run_of("a"): 20}}
