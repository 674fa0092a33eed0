"""Continuous landing keeps references: a reader of the tables never finds a delivery before its subscription."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import SCHEMAS
from godwit_pipelines.settings import Config
from godwit_pipelines.source.following import Following, Query, from_option, to_option
from godwit_pipelines.source.journal import JournalStreamReader, Options
from godwit_pipelines.source.tasks import TASKS
from tests.pipelines.journals import JournalWriter
from tests.pipelines.transforms.rows import NOTHING

ROWS = 400
"""Subscriptions, and a delivery right after each, that land while others are written."""
LAND_S = 900


def rows(writer: JournalWriter, count: int) -> list[dict[str, Any]]:
    """Rows of any stream, of which nothing but the offset matters."""
    fields = [field for field in SCHEMAS[writer.stream] if field.name not in ("node", "journal_offset", "crc")]
    row = {field.name: None if field.nullable else NOTHING[field.dataType.typeName()] for field in fields}
    return [row] * count


def land(checkpoint: Path, batch: int, begun: int, next: int, *, is_done: bool = True) -> None:
    """What Spark leaves of a batch of `access`."""
    offset = {"stream": "access", "nodes": {"a": next}, "begun": {"a": begun}, "runs": {"a": [["", next, None]]}}
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text("v1\n{}\n" + json.dumps(offset))
    if is_done:
        (checkpoint / "commits" / str(batch)).write_text("v1\n{}")


def test_a_stream_is_read_as_far_as_what_it_follows_has_landed(tmp_path: Path) -> None:
    checkpoint, data = tmp_path / "place", tmp_path / "node"
    access, deliveries = (JournalWriter(data, stream, node="a") for stream in ("access", "deliveries"))
    follows = to_option([Query("access", str(checkpoint), {}), Query("runs", str(tmp_path / "none"), {})])
    options = Options({"path": str(data), "stream": "deliveries", "follows": follows, "asTasks": "true"})
    reader = JournalStreamReader(options, TASKS)
    start = reader.initialOffset()

    def reached(limit: int = 1000) -> int:
        return int(reader.latestOffset(start, ReadMaxRows(limit))["nodes"].get("a", 0))

    access.write(rows(access, 2))
    deliveries.write(rows(deliveries, 5))
    assert reached() == 0, "nothing of access has landed"
    access.write(rows(access, 3))
    deliveries.write(rows(deliveries, 4))
    land(checkpoint, 0, 0, 2)
    assert reached() == 5, "as far as it reached when access reached what has landed"
    assert reached(3) == 3
    land(checkpoint, 1, 2, 5, is_done=False)
    assert reached() == 5, "a batch that was begun has not landed"
    land(checkpoint, 1, 2, 5)
    assert reached() == 9
    deliveries.write(rows(deliveries, 1))
    assert reached() == 10, "with nothing new of access it waits for nothing"
    access.seal()
    access.retain(5)
    again = Following(str(data), [Query("access", str(tmp_path / "lost"), {})])
    assert again.reach({"a": 10, "b": 3}) == {"a": 10, "b": 3}, "what retention has let go of does not land any more"
    access.write(rows(access, 1))
    again = Following(str(data), [Query("access", str(tmp_path / "lost"), {"a": {"": 6}})])
    assert again.reach({"a": 10}) == {"a": 10}, "a checkpoint was lost, and all had landed"
    assert Following(str(data), from_option(follows)).reach({"a": 10}) == {}


def test_a_journal_that_began_anew_has_not_landed_by_the_length_of_the_one_before(tmp_path: Path) -> None:
    checkpoint, data = tmp_path / "place", tmp_path / "node"
    access = JournalWriter(data, "access", node="a")
    access.write([{**row, "run": "b2"} for row in rows(access, 3)])
    offset: dict[str, Any] = {"stream": "access", "nodes": {"a": 90}, "runs": {"a": [["a1", 90, None]]}}
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text("v1\n{}\n" + json.dumps(offset))
    (checkpoint / "commits" / "0").write_text("v1\n{}")
    following = Following(str(data), [Query("access", str(checkpoint), {})])
    assert following.reach({"a": 10}) == {}
    offset["runs"]["a"].append(["b2", 3, None])
    (checkpoint / "offsets" / "0").write_text("v1\n{}\n" + json.dumps(offset))
    assert following.reach({"a": 10}) == {"a": 10}


def count(lake: Lake, stream: str) -> int:
    path = lake.path(f"bronze.{stream}")
    if not DeltaTable.is_deltatable(path):
        return 0
    return DeltaTable(path).to_pyarrow_table(columns=["journal_offset"]).num_rows


def test_deliveries_land_with_their_subscriptions(
    tmp_path: Path, spark: SparkSession, lake: Lake, config: Config
) -> None:
    access, deliveries = (JournalWriter(tmp_path / "node-a", each, node="a") for each in ("access", "deliveries"))
    given = Run(spark=spark, config=config, lake=lake, job="land", every_s=0.1, say=lambda text: None)
    given.options = {"streams": "deliveries,access"}
    JOBS["land"].run(given)
    landed, deadline = 0, time.monotonic() + LAND_S
    while landed < ROWS:
        assert time.monotonic() < deadline, "nothing lands"
        access.write(rows(access, 1))
        deliveries.write(rows(deliveries, 1))
        landed = count(lake, "deliveries")
        assert count(lake, "access") >= landed, "a delivery landed before its subscription"
        for query in given.queries:
            assert query.exception() is None
