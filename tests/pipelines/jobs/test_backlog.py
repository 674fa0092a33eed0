"""A backlog of hours is aggregated completely, in any number of batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import Config
from tests.pipelines.jobs.played import Play


class Slow(Play):
    """Every second takes eight minutes."""

    def at(self, second: float) -> datetime:
        return self.start + timedelta(minutes=8) * second


def sum_of(lake: Lake, table: str, column: str) -> int:
    return int(pc.sum(DeltaTable(lake.path(table)).to_pyarrow_table().column(column)).as_py())


@pytest.mark.long
def test_hours_of_nodes_of_which_one_began_later(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    for number, clients, seconds in ((1, 12, 30), (2, 3, 10)):
        play = Slow(tmp_path / f"node-{number}", seconds=seconds, clients=clients)
        play.start += timedelta(minutes=8) * (30 - seconds)
        for writer in play.writers.values():
            writer.node = f"n{number}"
        play.write()
    lake = Lake(spark, replace(config, journal=replace(config.journal, rows_per_batch=60, rows_per_task=30)))
    for job, options in (("land", {"streams": "deliveries,latency"}), ("delivery", {})):
        JOBS[job].run(Run(spark=spark, config=lake.config, lake=lake, job=job, options=options, say=lambda text: None))
    assert sum_of(lake, "gold.delivery_10s", "messages") == sum_of(lake, "bronze.deliveries", "count") > 500
    assert sum_of(lake, "gold.delivery_10s", "timed") == sum_of(lake, "bronze.latency", "count")
