"""The format `godwit` in Spark: in batch with filters, as a stream with limits, restarts and losses."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.streaming.query import StreamingQuery

from godwit_pipelines.errors import ConfigInvalid, JournalMissing
from godwit_pipelines.jobs.job import run_to_end
from godwit_pipelines.lake import Lake
from godwit_pipelines.metrics import lost_rows, rows_taken
from godwit_pipelines.source.columns import stream_columns
from godwit_pipelines.source.journal import JournalStreamReader, Options
from godwit_pipelines.source.parts import find_folders
from godwit_pipelines.source.tasks import TASKS
from godwit_pipelines.source.worker import settle
from tests.pipelines.journals import message, write_messages

SCHEMA = "journal_offset long, node string, subject string, fault string"


def read(spark: SparkSession, data: Path, **options: str) -> DataFrame:
    return spark.read.format("godwit").option("path", str(data)).options(**options).load()


def test_two_filtered_frames_of_one_reader_meet_in_a_query_with_their_own_rows(tmp_path: Path, lake: Lake) -> None:
    write_messages(tmp_path / "node-a", 400, segments=3)
    rows = lake.journal("messages", "`journal_offset` < 200")
    low, high = rows.where("`journal_offset` < 10"), rows.where("`journal_offset` >= 190")
    assert sorted(row.journal_offset for row in low.union(high).select("journal_offset").collect()) == [
        *range(10),
        *range(190, 200),
    ]
    assert low.join(high, "node").count() == 100 and rows.count() == 200


def test_the_option_that_returned_wrong_rows_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    write_messages(tmp_path, 10)
    with pytest.raises(Exception, match="pushFilters"):
        read(spark, tmp_path, pushFilters="true").count()


def test_a_narrower_schema_is_read_with_every_row_still_checked(tmp_path: Path, spark: SparkSession) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    path = tmp_path / "journal/messages" / writer.segments[1]["file"]
    whole = path.read_bytes()
    at = whole.index(b"thermometer", len(whole) // 2)
    path.write_bytes(whole[:at] + b"T" + whole[at + 1 :])
    rows = spark.read.format("godwit").option("path", str(tmp_path)).schema(SCHEMA).load()
    assert rows.columns == ["journal_offset", "node", "subject", "fault"]
    assert rows.where("fault = 'crc'").count() == 1 and rows.count() == 400
    unchecked = (
        spark.read.format("godwit").option("path", str(tmp_path)).option("verify", "false").schema(SCHEMA).load()
    )
    assert unchecked.where("fault is not null").count() == 0


def progress(query: Any) -> list[tuple[int, dict[str, int]]]:
    """Rows and the end of each batch that had any."""
    recent = [each if isinstance(each, dict) else each.jsonValue for each in query.recentProgress]
    ends = [
        (each["numInputRows"], json.loads(each["sources"][0]["endOffset"])["nodes"])
        for each in recent
        if each["numInputRows"]
    ]
    return ends


def test_a_stream_takes_shares_goes_on_from_its_place_and_says_what_was_lost(
    tmp_path: Path, spark: SparkSession
) -> None:
    first = write_messages(tmp_path / "one", 400, node="one")
    write_messages(tmp_path / "two", 100, node="two")

    def run(**options: str) -> list[tuple[int, dict[str, int]]]:
        rows = (
            spark.readStream.format("godwit").option("path", f"{tmp_path}/one,{tmp_path}/two").options(**options).load()
        )
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "place"))
        return progress(run_to_end(writer, StreamingQuery.awaitTermination))

    batches = run(maxRowsPerBatch="250")
    assert [count for count, _ in batches] == [250, 250]
    assert batches[0][1] == {"one": 150, "two": 100} and batches[-1][1] == {"one": 400, "two": 100}
    first.write([message(offset) for offset in range(400, 410)])
    assert run() == [(10, {"one": 410, "two": 100})]
    first.seal()
    first.write([message(offset) for offset in range(410, 500)])
    first.seal()
    first.write([message(offset) for offset in range(500, 510)])
    first.retain(500)
    with pytest.raises(StreamingQueryException, match=r"rows 410 to 499 of messages"):
        run()
    assert run(failOnDataLoss="false") == [(10, {"one": 510, "two": 100})]


def test_rows_that_retention_let_go_of_are_not_counted_as_read(tmp_path: Path) -> None:
    journal = write_messages(tmp_path / "one", 400, node="one")
    journal.seal()
    journal.write([message(offset) for offset in range(400, 430)])
    journal.retain(400)
    options = {"path": str(tmp_path / "one"), "asTasks": "true", "failOnDataLoss": "false"}
    reader = JournalStreamReader(Options(options), TASKS)
    end = reader.latestOffset({"stream": "messages", "nodes": {"one": 100}}, ReadMaxRows(20))
    assert (end["begun"], end["nodes"], end["lost"]) == ({"one": 400}, {"one": 420}, 300) and "absent" not in end


def test_rows_that_are_gone_are_told_also_where_nothing_else_is_left_to_bring(tmp_path: Path) -> None:
    journal = write_messages(tmp_path / "one", 400, node="one")
    journal.seal()
    journal.retain(400)
    options = {"path": str(tmp_path / "one"), "asTasks": "true", "failOnDataLoss": "false"}
    start = {"stream": "messages", "nodes": {"one": 100}}
    end = JournalStreamReader(Options(options), TASKS).latestOffset(start, ReadMaxRows(20))
    row = {"numInputRows": 0, "sources": [{"startOffset": json.dumps(start), "endOffset": json.dumps(end)}]}
    assert (rows_taken(row), lost_rows(row)) == (0, 300)
    row["sources"][0]["startOffset"] = row["sources"][0]["endOffset"]
    assert lost_rows(row) == 0, "the next batch names the same journal_offset"


def test_rows_that_do_not_come_are_not_counted_and_lost_ones_are_told(tmp_path: Path) -> None:
    writer = write_messages(tmp_path / "one", 400, segments=3, node="one")
    options = {"path": str(tmp_path / "one"), "asTasks": "true", "leftOut": '{"one": {"": [[90, 110]]}}'}
    start = {"stream": "messages", "nodes": {"one": 0}}

    def batch(**more: str) -> tuple[int, int]:
        reader = JournalStreamReader(Options(options | more), TASKS)
        end = reader.latestOffset(start, ReadMaxRows(1000))
        row = {"numInputRows": 4, "sources": [{"endOffset": end}]}
        return rows_taken(row), lost_rows(row)

    assert batch() == (380, 0)
    (tmp_path / "one/journal/messages" / f"{100:020}-{200:020}.arrow").unlink()
    with pytest.raises(JournalMissing, match="100 to 199 of messages"):
        batch()
    assert batch(failOnDataLoss="false") == (290, 100)
    writer.close()


def test_a_worker_looks_no_more_through_what_is_loaded_but_through_what_comes_later() -> None:
    settle.cache_clear()
    try:
        settle()
        assert gc.get_freeze_count() > 10_000
        later: list[object] = []
        later.append(later)
        settle()
        assert any(each is later for each in gc.get_objects())  # get_objects() does not list frozen objects
        del later
        assert gc.collect() >= 1
    finally:
        gc.unfreeze()


def test_a_folder_that_is_there_is_itself_whatever_its_name_stands_for(tmp_path: Path) -> None:
    for name in ("n[1]", "n1", "n*"):
        write_messages(tmp_path / name, 10, node=name)
    assert [folder.parts[-3] for folder in find_folders(str(tmp_path / "n[1]"), "messages")] == ["n[1]"]
    assert [folder.parts[-3] for folder in find_folders(str(tmp_path / "n*"), "messages")] == ["n*"]
    assert [folder.parts[-3] for folder in find_folders(str(tmp_path / "n?"), "messages")] == ["n*", "n1"]


@pytest.mark.parametrize(
    ("starting", "why"),
    [
        ('{"nobody": 0}', "'nobody' is not a node under .*; there are node-a"),
        ('{"node-a": "5"}', "offsets by node"),
        ('{"node-a": 1.5}', "offsets by node"),
        ('{"node-a": true}', "offsets by node"),
        ('{"node-a": -1}', "offsets by node"),
        ('{"node-a": 11}', "11. is past the end of messages of node-a: 10"),
        ("5", "offsets by node"),
        ("[]", "offsets by node"),
    ],
)
def test_offsets_to_start_at_are_numbers_of_nodes_that_are_there(tmp_path: Path, starting: str, why: str) -> None:
    write_messages(tmp_path / "n", 10)
    with pytest.raises(ConfigInvalid, match=why):
        reader = JournalStreamReader(
            Options({"path": str(tmp_path / "n"), "startingOffsets": starting}), stream_columns("messages")
        )
        reader.initialOffset()
