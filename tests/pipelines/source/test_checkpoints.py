"""A checkpoint and the table that its query writes are of the same moment, or nothing is written."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from godwit_pipelines.errors import CheckpointOlder, TableReplaced
from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.progress import watcher
from godwit_pipelines.schemas import ACCESS, DELIVERIES
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.transforms.checker import MICROS
from tests.pipelines.transforms.rows import frame


def test_a_checkpoint_that_was_put_back_ends_the_job_before_it_writes(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    checkpoint, copy = Path(lake.checkpoint("land-messages")), tmp_path / "copy"
    for first in (0, 10):
        writer.write([message(offset) for offset in range(first, first + 10)])
        run_job("land", streams="messages")
        if not first:
            shutil.copytree(checkpoint, copy)
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    writer.write([message(offset) for offset in range(20, 30)])
    with pytest.raises(CheckpointOlder, match=r"land-messages .*batch 0.*messages .*batch 1 "):
        run_job("land", streams="messages")
    assert lake.read("bronze.messages").count() == 20
    shutil.rmtree(checkpoint)
    run_job("land", streams="messages")
    assert sorted(row["journal_offset"] for row in lake.read("bronze.messages").collect()) == list(range(30))


def land_ten(writer: JournalWriter, run_job: Runs) -> None:
    writer.write([message(offset) for offset in range(writer.next, writer.next + 10)])
    run_job("land", streams="messages")


def test_a_table_that_was_put_back_ends_the_job_before_it_writes(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer, table = JournalWriter(tmp_path / "node-1", node="a"), Path(lake.path("bronze.messages"))
    land_ten(writer, run_job)
    shutil.copytree(table, tmp_path / "copy")
    land_ten(writer, run_job)
    shutil.rmtree(table)
    shutil.copytree(tmp_path / "copy", table)
    with pytest.raises(TableReplaced, match="after 0, .*land-messages .*batch 1:"):
        land_ten(writer, run_job)
    shutil.rmtree(lake.checkpoint("land-messages"))
    run_job("land", streams="messages")
    assert sorted(row["journal_offset"] for row in lake.read("bronze.messages").collect()) == list(range(30))


def test_the_line_of_a_query_counts_the_rows_that_it_committed(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer, said = JournalWriter(tmp_path / "node-1", node="a"), StringIO()
    land_ten(writer, run_job)
    checkpoint = Path(lake.checkpoint("land-messages"))
    for name in ("commits/0", "commits/.0.crc"):  # as if killed between the table's commit and the checkpoint's
        (checkpoint / name).unlink(missing_ok=True)
    watch = watcher(Console(file=said), {})
    JOBS["land"].run(Run(lake.spark, lake.config, lake, job="land", options={"streams": "messages"}, watch=watch))
    assert "land-messages: 0 rows in" in said.getvalue() and lake.read("bronze.messages").count() == 10


def come(lake: Lake, number: int, run_job: Runs, kind: str = "connected") -> None:
    row = {"node": "a", "run": "r", "journal_offset": number, "connection": number + 1, "kind": kind, "time": number}
    lake.append("bronze.access", frame(lake.spark, ACCESS, [row]), app="test", batch=number)
    run_job("sessions")


@pytest.mark.parametrize("is_removed", [True, False])
def test_a_table_that_was_put_back_or_removed_ends_a_job_that_merges(
    tmp_path: Path, lake: Lake, run_job: Runs, is_removed: bool
) -> None:
    table, copy = Path(lake.path("silver.sessions")), tmp_path / "copy"
    come(lake, 0, run_job)
    shutil.copytree(table, copy)
    come(lake, 1, run_job, "refused")  # which changes nothing, and is a batch
    come(lake, 2, run_job)
    shutil.rmtree(table)
    if not is_removed:
        shutil.copytree(copy, table)
    newest = -1 if is_removed else 0
    with pytest.raises(TableReplaced, match=f"after {newest}, .* batch 2:"):
        come(lake, 3, run_job)


@pytest.mark.parametrize("name", ["gold.delivery_1h", "gold.slo"])
def test_a_table_that_is_made_of_another_and_is_gone_ends_its_job(
    spark: SparkSession, lake: Lake, run_job: Runs, name: str
) -> None:
    """Only the windows that change are merged into it: all others would be missing."""

    def deliver(number: int) -> None:
        row = {"node": "n", "run": "a", "journal_offset": number, "selector": "/x", "count": 1, "to_sequence": number}
        time = MICROS + number * 3_600_000_000
        lake.append("bronze.deliveries", frame(spark, DELIVERIES, [{**row, "time": time}]))

    deliver(0)
    run_job("delivery")
    run_job("delivery")
    shutil.rmtree(lake.path(name))
    deliver(3)
    with pytest.raises(TableReplaced, match=f"{name.replace('.', '/')} .*--rebuild"):
        run_job("delivery")


def test_a_checkpoint_that_was_put_back_ends_a_job_that_merges(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    checkpoint, copy = Path(lake.checkpoint("sessions")), tmp_path / "copy"
    for number in range(2):
        come(lake, number, run_job)
        if not number:
            shutil.copytree(checkpoint, copy)
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    with pytest.raises(CheckpointOlder, match="batch 0.*sessions .*batch 1 "):
        run_job("sessions")
