"""From journals to the report: all jobs in order, on a simulated node whose history is known."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import functions as F

from godwit_pipelines.lake import Lake
from godwit_pipelines.report import build_document, build_page
from tests.pipelines.conftest import Runs
from tests.pipelines.jobs.played import Play
from tests.pipelines.journals import START


@pytest.mark.long
def test_a_life_with_a_crash_is_proven_and_what_goes_wrong_is_found(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    play = Play(tmp_path / "node-1", seconds=12, clients=8)
    play.write()
    outcome = run_job("all")
    assert outcome.found == 0 and "audit: PROVEN" in outcome.text
    rows = play.rows
    delivered = sum(row["count"] for row in rows["deliveries"])
    for table, column in (
        ("gold.audit_verdict", "messages"),
        ("gold.usage_1h", "out_messages"),
        ("gold.delivery_1h", "messages"),
    ):
        assert lake.read(table).agg(F.sum(column)).first()[0] == delivered, table  # type: ignore[index]  # a sum has a row
    how = {row.end_state: row["count"] for row in lake.read("silver.sessions").groupBy("end_state").count().collect()}
    assert how == {"closed": 12, "lost with its node": 4}
    document = build_document(lake.folder, START + timedelta(hours=1))
    assert document["audit"]["state"] == "reported" and sum(count for _, count in document["published"]) == len(
        rows["messages"]
    )
    page = build_page(document)
    assert "PROVEN" in page and not re.search(r"https?://|<script|@import|url\(", page)


@pytest.mark.long
def test_the_audit_ends_with_what_nobody_was_told(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    play = Play(tmp_path / "node-1", seconds=8)
    play.wrong = ["lose", "repeat", "lose"]
    play.write()
    run_job("land")
    outcome = run_job("audit")
    assert outcome.found == 3 and "BROKEN" in outcome.text
    faults = lake.read("gold.audit_faults").filter("not declared")
    assert {(row.kind, row["count"]) for row in faults.groupBy("kind").count().collect()} == {
        ("hole", 2),
        ("repeat", 1),
    }
    page = build_page(build_document(lake.folder, START + timedelta(hours=1)))
    assert "BROKEN" in page and "delivered twice" in page


@pytest.mark.long
def test_rows_of_deliveries_that_are_not_there_make_no_fault(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    Play(tmp_path / "node-1", seconds=12).write()
    run_job("land")
    DeltaTable(lake.path("bronze.deliveries")).delete("journal_offset % 5 = 2")
    outcome = run_job("audit")
    assert outcome.found == 0 and outcome.text.startswith("UNPROVEN")
    assert "MISSING from bronze.deliveries" in run_job("reconcile").text
    assert "erased or never landed" in build_page(build_document(lake.folder, START + timedelta(hours=1)))
