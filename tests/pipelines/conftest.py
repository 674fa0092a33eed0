"""Fixtures of the pipelines' tests: one Spark session for all of them, and a separate lake for each.

The session is tuned for a fast start. It uses the Java class archive of `make` (.make/spark.jsa). If the archive is missing, the end of a
run writes it, except under CI, which starts one session only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.config import build_config
from godwit_pipelines.jobs import JOBS, Outcome, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.session import build_session
from godwit_pipelines.settings import Config, SparkSettings

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / ".make" / "spark.jsa"
INTERPRETED = {  # compiling a plan costs more than running it over a handful of rows: half the time of a test
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SETTINGS = SparkSettings(master="local[2]", driver_memory="1g", conf=INTERPRETED)
hypothesis.settings.register_profile("godwit", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("godwit")
Runs = Callable[..., Outcome]


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Java process; tests take `spark`."""
    extra = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    is_kept = ARCHIVE.exists() or ("CI" not in os.environ and ARCHIVE.parent.is_dir())
    settings = replace(SETTINGS, class_archive=str(ARCHIVE) if is_kept else "")
    built = build_session(settings, name="tests", life="once", extra=extra)
    yield built
    built.stop()


@pytest.fixture
def spark(session: SparkSession) -> Iterator[SparkSession]:
    """The session, left without running queries, views and cached tables for the next test."""
    yield session
    for query in session.streams.active:
        query.stop()
    for view in session.catalog.listTables():
        session.catalog.dropTempView(view.name)
    session.catalog.clearCache()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Journals of nodes under tmp_path/node-*, tables under tmp_path/lake."""
    values = {"journal.paths": (str(tmp_path / "node-*"),), "lake.path": str(tmp_path / "lake")}
    return build_config({key: (value, "test") for key, value in values.items()})


@pytest.fixture
def lake(spark: SparkSession, config: Config) -> Lake:
    return Lake(spark, config)


@pytest.fixture
def run_job(spark: SparkSession, lake: Lake, config: Config) -> Runs:
    """Run a job to its end, as `godwit-pipelines run JOB --once` does: `run_job("land", streams="messages")`."""

    def run(name: str, **options: str) -> Outcome:
        job = JOBS[name]
        given = Run(spark=spark, config=config, lake=lake, job=name, options=options, say=lambda text: None)
        return job.run(given) or Outcome()

    return run
