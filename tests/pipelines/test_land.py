"""`land`: the bronze tables equal the journals, whatever happens on the way."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import functions as F

from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import message, write_messages


def test_every_row_of_every_node_lands_once_and_as_it_was(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    first = write_messages(tmp_path / "node-1", 1000, node="a")
    write_messages(tmp_path / "node-2", 300, node="b")
    run_job("land")
    run_job("land")
    first.write([message(offset) for offset in range(1000, 1100)])
    run_job("land")
    landed = lake.read("bronze.messages")
    assert {(row["node"], row["count"]) for row in landed.groupBy("node").count().collect()} == {
        ("a", 1100),
        ("b", 300),
    }
    wrong = landed.where(
        (F.get_json_object(F.col("content").cast("string"), "$.n").cast("long") != F.col("offset"))
        | (F.col("sequence") != F.floor(F.col("offset") / 10) + 1)
    )
    assert wrong.count() == 0 and lake.read("bronze.quarantine").count() == 0
