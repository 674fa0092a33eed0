"""Lost rows of a journal: one row of the quarantine for each range, and a line of `reconcile`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import JOBS, Outcome, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import Config
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.source.test_recovery import ROWS, SEALED, batches_of, write
from tests.pipelines.test_rows import read as read_rows


def run(job: str, spark: SparkSession, lake: Lake) -> Outcome:
    given = Run(spark=spark, config=lake.config, lake=lake, job=job, options={}, say=lambda text: None)
    return JOBS[job].run(given) or Outcome()


@pytest.mark.parametrize("rows", [1_000_000, 7])
def test_a_lost_extent_is_one_row_however_it_is_cut_into_tasks_and_batches(
    tmp_path: Path, spark: SparkSession, config: Config, rows: int
) -> None:
    path = write(tmp_path / "node-1")
    batches = batches_of(path)
    content = bytearray(path.read_bytes())
    for start, _, _ in batches[4:6]:
        content[start : start + 8] = b"\x13" * 8
    content += b"\x13" * 24
    path.write_bytes(content)
    few = replace(config, journal=replace(config.journal, rows_per_batch=rows * 5, rows_per_task=rows))
    lake = Lake(spark, few)
    run("land", spark, lake)
    first, next = SEALED + 45, SEALED + 45 + sum(rows for _, _, rows in batches[4:6])
    size = batches[5][1] - batches[4][0]
    (lost,) = lake.read("bronze.quarantine").collect()
    assert (lost["journal_offset"], lost["next"], lost["bytes"]) == (first, next, size)
    landed = sorted(row["journal_offset"] for row in lake.read("bronze.messages").collect())
    assert landed == [at for at in range(ROWS) if not first <= at < next]
    outcome = run("reconcile", spark, lake)
    said = outcome.text.splitlines()
    assert outcome.found == 1
    assert (
        f"messages of node-a: {first} to {next - 1} LOST: damaged or removed before they could be read ({size:,} bytes of its file)"
        in said
    )
    assert f"messages of node-a: {first} to {next - 1} in quarantine" in said
    assert f"messages of node-a: {len(landed)} rows landed, none missing except those LOST" in said
    assert f"messages of node-a: 24 bytes after {ROWS} cannot be read yet" in said


def test_a_segment_that_somebody_removed_is_lost_and_not_behind_or_missing(
    tmp_path: Path, spark: SparkSession, config: Config
) -> None:
    path = write(tmp_path / "node-1")
    next(path.parent.glob("*-*.arrow")).unlink()
    lake = Lake(spark, replace(config, journal=replace(config.journal, fail_on_data_loss=False)))
    lost = f"messages of node-a: 0 to {SEALED - 1} LOST: damaged or removed before they could be read"
    before = run("reconcile", spark, lake)
    assert before.found == 1 and lost in before.text
    assert f"messages of node-a: {SEALED} to {ROWS - 1} not landed yet" in before.text
    run("land", spark, lake)
    after = run("reconcile", spark, lake)
    assert after.found == 1 and lost in after.text and "MISSING" not in after.text


def test_a_segment_that_somebody_removed_after_it_landed_is_no_matter(
    tmp_path: Path, spark: SparkSession, config: Config
) -> None:
    path = write(tmp_path / "node-1")
    lake = Lake(spark, config)
    run("land", spark, lake)
    next(path.parent.glob("*-*.arrow")).unlink()
    assert run("reconcile", spark, lake) == Outcome(f"messages of node-a: {ROWS} rows landed, none missing")


def test_a_sealed_file_that_cannot_be_read_is_one_row(tmp_path: Path, spark: SparkSession, config: Config) -> None:
    path = write(tmp_path / "node-1")
    sealed = next(path.parent.glob("*-*.arrow"))
    sealed.write_bytes(bytes(100))
    few = replace(config, journal=replace(config.journal, rows_per_batch=20, rows_per_task=7))
    lake = Lake(spark, few)
    run("land", spark, lake)
    (lost,) = lake.read("bronze.quarantine").collect()
    assert (lost["journal_offset"], lost["next"], lost["bytes"]) == (0, SEALED, 100)
    assert lake.read("bronze.messages").count() == ROWS - SEALED


@pytest.mark.parametrize("is_sealed", [True, False])
def test_rows_from_the_midst_of_a_lost_extent_are_named_from_there(tmp_path: Path, is_sealed: bool) -> None:
    writer = JournalWriter(tmp_path)
    for first in (0, 20):
        writer.write([message(offset) for offset in range(first, 20 + 4 * first)])
    path = writer.folder / f"{0:020}.arrows"
    start = batches_of(path)[1][0]
    if is_sealed:
        path = writer.seal()
        path.write_bytes(bytes(path.stat().st_size))
    else:
        writer.write([message(100)])
        writer.close()
        content = bytearray(path.read_bytes())
        content[start : start + 8] = b"\x13" * 8
        path.write_bytes(content)
    for tasks in (1_000_000, 7):
        rows = read_rows(tmp_path, 50, 100, tasks)
        assert [row["journal_offset"] for row in rows] == [*range(50, 100)] and all(row["fault"] for row in rows)


def test_a_query_that_begins_in_a_lost_extent_names_the_rest_of_it_once(
    tmp_path: Path, spark: SparkSession, config: Config
) -> None:
    writer = JournalWriter(tmp_path / "node-1")
    writer.write([message(offset) for offset in range(100)])
    path = writer.seal()
    path.write_bytes(bytes(path.stat().st_size))
    options = {"path": str(tmp_path / "node-1"), "stream": "messages", "startingOffsets": '{"node-a": 50}'}
    stream = spark.readStream.format("godwit").options(**options, maxRowsPerBatch="20").load()
    found: list[tuple[int, int]] = []
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "place"))
    writer = writer.foreachBatch(
        lambda rows, _: found.extend((row["journal_offset"], row["fault_next"]) for row in rows.collect())
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    assert found == [(50, 100)]
