"""What is lost of a journal: one row of the quarantine for each extent, and a line of `reconcile`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import Config
from tests.pipelines.source.test_recovery import ROWS, SEALED, batches_of, write


def run(job: str, spark: SparkSession, lake: Lake) -> str:
    given = Run(spark=spark, config=lake.config, lake=lake, job=job, options={}, say=lambda text: None)
    return (JOBS[job].run(given) or pytest.fail()).text


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
    said = run("reconcile", spark, lake).splitlines()
    assert (
        f"messages of node-a: {first} to {next - 1} LOST: damaged before they could be read ({size:,} bytes of its file)"
        in said
    )
    assert f"messages of node-a: {first} to {next - 1} in quarantine" in said
    assert f"messages of node-a: {len(landed)} rows landed, none missing" in said
    assert f"messages of node-a: 24 bytes after {ROWS} cannot be read yet" in said


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
