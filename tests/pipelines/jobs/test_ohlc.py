"""The table of bars has every value once, for any batches of any nodes' journals."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.jobs.ohlc import pick
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import Config
from tests.pipelines.journals import START, JournalWriter, message, run_of

ROWS, A_MINUTE = 24, 6
"""Rows of each node, and rows within a bar."""


def values_of(node: int) -> list[int]:
    return [(node * 7 + number * 13) % 50 for number in range(ROWS)]


def write(folder: Path, node: int) -> None:
    rows = [
        message(
            number,
            time=START + timedelta(minutes=1) * number / A_MINUTE,
            subject="/a",
            content=str(value).encode(),
            kind="text",
        )
        for number, value in enumerate(values_of(node))
    ]
    JournalWriter(folder / f"node-{node}", node=f"n{node}").write(rows)


def expected(node: int) -> list[list[Any]]:
    parts = [(last, values_of(node)[last + 1 - A_MINUTE : last + 1]) for last in range(A_MINUTE - 1, ROWS, A_MINUTE)]
    return [
        [f"n{node}", part[0], max(part), min(part), part[-1], A_MINUTE, [(run_of(f"n{node}"), last)]]
        for last, part in parts
    ]


def kept(lake: Lake) -> list[list[Any]]:
    table = DeltaTable(lake.path("gold.ohlc")).to_pyarrow_table()
    table = table.sort_by([("node", "ascending"), ("window_start", "ascending")])
    names = ["node", "open", "high", "low", "close", "count", "to_offsets"]
    return [[row[name] for name in names] for row in table.to_pylist()]


def test_bars_are_made_of_all_but_bars(spark: SparkSession) -> None:
    subjects = ["/prices/eur", "/p/prices/eur", "/p", "/pa/x", "/quotes"]
    rows = spark.createDataFrame([(subject,) for subject in subjects], "subject string")
    assert [row.subject for row in pick(rows, "/p", "/p").collect()] == ["/prices/eur", "/p", "/pa/x"]


@pytest.mark.long
def test_a_node_whose_values_come_late_counts_whole(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    config = replace(config, journal=replace(config.journal, rows_per_batch=9))  # some end within a bar
    lake = Lake(spark, config)

    def bars() -> list[list[Any]]:
        options = {"width": "1 minute", "subjects": "/a"}
        JOBS["ohlc"].run(Run(spark=spark, config=config, lake=lake, job="ohlc", options=options, say=lambda text: None))
        return kept(lake)

    write(tmp_path, 1)
    assert bars() == expected(1)
    write(tmp_path, 2)
    assert bars() == expected(1) + expected(2)
    place = Path(lake.checkpoint("bars-kept"))
    for end in sorted((place / "commits").glob("[0-9]*"))[-2:]:
        end.unlink()  # killed after the table's commit and before Spark's
    assert bars() == expected(1) + expected(2)
    shutil.rmtree(place)
    assert bars() == expected(1) + expected(2)
