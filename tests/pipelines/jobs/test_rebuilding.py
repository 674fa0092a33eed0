"""`--rebuild`: a job's results are removed completely and computed again, and nothing is removed that cannot be computed again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from godwit_pipelines.errors import ConfigInvalid
from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.jobs.rebuilding import (
    check_rebuild,
    finish_rebuild,
    list_removal,
    marker_of,
    rebuild,
    write_marker,
)
from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import ACCESS, MESSAGES
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.transforms.rows import frame


class Said(Run):
    """A run of a job whose lines are kept."""

    def __init__(self, lake: Lake, job: str, **options: str) -> None:
        self.lines: list[str] = []
        super().__init__(lake.spark, lake.config, lake, job=job, options=options, say=self.lines.append)

    def rebuild(self) -> list[str]:
        job = JOBS[self.job]
        rebuild(self, job, [each for each in JOBS.values() if each is not job])
        job.run(self)
        return self.lines


def write(data: Path, rows: int, **fields: object) -> JournalWriter:
    writer = JournalWriter(data, node="a")
    writer.write([message(offset, **fields) for offset in range(rows)])
    return writer


def come(lake: Lake, number: int) -> None:
    row = {
        "node": "a",
        "run": "r",
        "journal_offset": number,
        "connection": number + 1,
        "kind": "connected",
        "time": number,
    }
    lake.append("bronze.access", frame(lake.spark, ACCESS, [row]), app="test", batch=number)


def test_a_job_is_made_again_from_a_table_that_was(lake: Lake, run_job: Runs) -> None:
    for number in range(3):
        come(lake, number)
        run_job("sessions")
    shutil.rmtree(lake.path("bronze.access"))
    for number in range(2):
        come(lake, number)
    with pytest.raises(Exception, match="--rebuild"):
        run_job("sessions")
    said = Said(lake, "sessions").rebuild()
    assert lake.read("silver.sessions").count() == 2 and not marker_of(lake, JOBS["sessions"]).exists()
    assert said == ["sessions: silver.sessions, gold.concurrency_1m and their checkpoints removed"]


def test_what_was_cut_short_is_finished_by_the_next_run(lake: Lake, run_job: Runs) -> None:
    come(lake, 0)
    run_job("sessions")
    run, job = Said(lake, "sessions"), JOBS["sessions"]
    write_marker(lake, job, list_removal(lake, job, {}))
    shutil.rmtree(lake.path("silver.sessions"))  # and then the power went
    finish_rebuild(run, job)
    assert not Path(lake.checkpoint("sessions")).exists() and not lake.exists("gold.concurrency_1m")
    finish_rebuild(run, job)
    run_job("sessions")
    assert lake.read("silver.sessions").count() == 1 and len(run.lines) == 1


def test_land_is_made_again_without_what_was_erased_and_says_who_reads_it(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    write(tmp_path / "node-1", 20)
    access = JournalWriter(tmp_path / "node-1", "access", node="a")
    access.write(
        [
            {
                "tenant": "",
                "time": message(0)["time"],
                "kind": "connected",
                "connection": 1,
                "identity": "mallory",
                "client": "",
                "address": "",
                "protocol": "json",
            }
        ]
    )
    run_job("land")
    run_job("maintain", erase="mallory")
    said = Said(lake, "land").rebuild()
    assert lake.read("bronze.messages").count() == 20 and lake.read("bronze.access").count() == 0
    assert any("delivery, sessions, usage have read these tables: run each with --rebuild" in line for line in said)
    assert any("audit, capacity: run again" in line for line in said)
    assert run_job("reconcile").found == 0


def test_a_table_is_kept_whose_rows_the_journals_let_go_of(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer = write(tmp_path / "node-1", 20)
    writer.seal()
    writer.write([message(offset) for offset in range(20, 30)])
    writer.seal()
    run_job("land")
    writer.retain(20)
    with pytest.raises(ConfigInvalid, match="bronze.messages .* 0 to 29 "):
        Said(lake, "land").rebuild()
    assert lake.read("bronze.messages").count() == 30
    lake.config = replace(lake.config, journal=replace(lake.config.journal, fail_on_data_loss=False))
    Said(lake, "land").rebuild()
    assert lake.read("bronze.messages").count() == 10


def test_a_stream_alone_keeps_what_is_in_quarantine_of_others(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    path = write(tmp_path / "node-1", 20).seal()
    content = path.read_bytes()
    at = content.index(b"thermometer")
    path.write_bytes(content[:at] + b"T" + content[at + 1 :])
    run_job("land")
    other = lake.read("bronze.quarantine").withColumn("stream", F.lit("access"))
    lake.append("bronze.quarantine", other, app="test", batch=0)
    Said(lake, "land", streams="messages").rebuild()
    found = sorted(row["stream"] for row in lake.read("bronze.quarantine").collect())
    assert found == ["access", "messages"] and lake.read("bronze.messages").count() == 19


@pytest.mark.parametrize("job", ["all", "maintain", "replay", "reconcile"])
def test_a_job_that_fills_no_tables_from_others_is_refused(job: str) -> None:
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--rebuild"):
        check_rebuild(JOBS[job])


def test_every_query_that_fills_a_table_is_removed_with_it(lake: Lake, run_job: Runs, tmp_path: Path) -> None:
    write(tmp_path / "node-1", 5)
    come(lake, 0)
    for name in ("land", "delivery", "sessions", "usage", "ohlc"):
        run_job(name)
    there = {path.name for path in (lake.folder / "_checkpoints").iterdir() if path.is_dir()}
    assert there <= {query for job in JOBS.values() for query in job.queries}


def test_bars_of_values_that_the_journals_let_go_of_are_kept(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer = write(tmp_path / "node-1", 20)
    writer.seal()
    run_job("ohlc", field="$.n")
    writer.write([message(20)])
    writer.retain(20)
    with pytest.raises(ConfigInvalid, match="row 20 of messages"):
        Said(lake, "ohlc").rebuild()


def test_days_that_the_read_tables_let_go_of_are_removed_only_when_asked_for(lake: Lake, run_job: Runs) -> None:
    come(lake, 0)  # in 1970
    row = {"node": "a", "run": "r", "journal_offset": 1, "connection": 2, "kind": "connected", "tenant": ""}
    now = [{**row, "time": int(datetime.now(UTC).timestamp() * 1_000_000)}]
    lake.append("bronze.access", frame(lake.spark, ACCESS, now), app="test", batch=1)
    for name in ("sessions", "usage"):
        run_job(name)
    lake.config = replace(lake.config, maintain=replace(lake.config.maintain, keep_days={"bronze.access": "30"}))
    JOBS["maintain"].run(Said(lake, "maintain"))
    assert lake.read("bronze.access").count() == 1
    for name, table in (("sessions", "silver.sessions"), ("usage", "gold.usage_1h")):
        kept = lake.read(table).count()
        with pytest.raises(ConfigInvalid, match=f"{table} has 1970-01-01.*--option forget=yes"):
            Said(lake, name).rebuild()
        assert lake.read(table).count() == kept > 0
        Said(lake, name, forget="yes").rebuild()
    assert lake.read("silver.sessions").count() == 1


def test_days_that_one_of_several_read_tables_let_go_of_are_not_lost(lake: Lake, run_job: Runs) -> None:
    """The other one still has them: without what was in the first they would come again with less."""
    now = int(datetime.now(UTC).timestamp() * 1_000_000)
    said = {
        "run": "r",
        "tenant": "",
        "identity": "",
        "client": "",
        "address": "",
        "protocol": "json",
        "kind": "connected",
    }
    sent = {"run": "r", "tenant": "", "subject": "/a", "content": b"1", "publisher": "", "kind": "json"}
    for offset, time in enumerate((0, now)):
        row = {"node": "a", "journal_offset": offset, "time": time}
        access, messages = frame(lake.spark, ACCESS, [said | row | {"connection": offset + 1}]), [sent | row]
        lake.append("bronze.access", access, app="test", batch=offset)
        lake.append("bronze.messages", frame(lake.spark, MESSAGES, messages), app="test", batch=offset)
    run_job("usage")
    kept = lake.read("gold.usage_1h").count()
    lake.config = replace(lake.config, maintain=replace(lake.config.maintain, keep_days={"bronze.access": "30"}))
    JOBS["maintain"].run(Said(lake, "maintain"))
    assert lake.read("bronze.access").count() == 1 and lake.read("bronze.messages").count() == 2
    with pytest.raises(ConfigInvalid, match=r"gold.usage_1h has 1970-01-01, bronze.access does not.*forget=yes"):
        Said(lake, "usage").rebuild()
    assert lake.read("gold.usage_1h").count() == kept > 0
