"""The progress bar at a terminal: it grows with each batch, and is full at the end."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.progress import watcher
from godwit_pipelines.settings import Config
from tests.pipelines.jobs.played import Play

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BAR = re.compile(r"land-messages +([━╸╺ ]+) +(\d+%) +([\d,]+) rows +([\d,]+)/s +\d+:\d\d:\d\d")


def test_a_bar_grows_with_the_batches_and_is_full_at_the_end(
    spark: SparkSession, config: Config, tmp_path: Path
) -> None:
    play = Play(tmp_path / "node-1", seconds=12, clients=8)
    play.write()
    count = len(play.rows["messages"])
    small = replace(config, journal=replace(config.journal, rows_per_batch=count // 12))
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=120, color_system=None)
    run = Run(spark, small, Lake(spark, small), options={"streams": "messages"}, watch=watcher(console, {}))
    JOBS["land"].run(run)
    states = BAR.findall(ESCAPES.sub("", drawn.getvalue()))
    assert len(states) > 2, drawn.getvalue()
    parts = [int(part.rstrip("%")) for _, part, _, _ in states]
    rows = [int(done.replace(",", "")) for _, _, done, _ in states]
    assert parts == sorted(parts) and rows == sorted(rows)
    assert any(0 < part < 100 for part in parts), "it is seen under way"
    bar, part, _, rate = states[-1]
    assert (part, rows[-1]) == ("100%", count) and set(bar.strip()) == {"━"} and rate != "0"
