"""Sums are merged by their key: a batch that is done again changes nothing, and a new checkpoint fills the table again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import Runs
from tests.pipelines.jobs.played import Play

MERGED = [("usage", "usage-hours", "gold.usage_1h"), ("sessions", "sessions", "silver.sessions")]


@pytest.mark.long
@pytest.mark.parametrize("job, query, table", MERGED)
def test_a_batch_and_a_whole_query_may_be_done_again(
    job: str, query: str, table: str, tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    Play(tmp_path / "node-1", seconds=2, clients=3).write()
    run_job("land", streams="messages,deliveries,access,runs")
    run_job(job)
    there = rows(lake, table)
    place = Path(lake.checkpoint(query))
    for kept in (*(place / "commits").iterdir(), *(place / "offsets").glob("*1*")):
        kept.unlink()  # killed after the table's commit and before Spark's
    run_job(job)
    assert there and rows(lake, table) == there
    DeltaTable(lake.path(table)).delete()
    shutil.rmtree(place)
    run_job(job)
    assert rows(lake, table) == there


def rows(lake: Lake, table: str) -> list[Any]:
    return sorted(map(repr, DeltaTable(lake.path(table)).to_pyarrow_table().to_pylist()))
