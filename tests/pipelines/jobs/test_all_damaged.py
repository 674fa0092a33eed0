"""Nodes whose messages cannot be read: their deliveries are audited, `reconcile` names the damage, and other nodes are audited as usual."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from godwit_pipelines.errors import TableMissing
from godwit_pipelines.jobs import quarantined
from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import DELIVERIES
from godwit_pipelines.tables import TABLES
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.transforms.checker import MICROS
from tests.pipelines.transforms.rows import frame

ROWS = 5


def write(data: Path, node: str, *, tells_run: bool = True, is_sealed: bool = False) -> Path:
    """A journal with one frame of messages."""
    writer = JournalWriter(data, node=node)
    writer.write([message(at, run=node, arrival=at + 1, subject="/x", sequence=at + 1) for at in range(ROWS)])
    if tells_run:
        began = {"run": node, "tenant": "", "time": message(0)["time"], "kind": "began", "epoch": 1}
        JournalWriter(data, "runs", node=node).write([began])
    return writer.seal() if is_sealed else writer.folder / f"{0:020}.arrows"


def damage_rows(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"thermometer", b"THERMOMETER"))


def damage_frame(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(b"thermometer")
    content[at - 400 : at] = b"\xff" * 400
    path.write_bytes(content)


def handed(node: str, offset: int, **place: Any) -> dict[str, Any]:
    whose = {"node": node, "run": node, "connection": 1, "gap_count": 0, "time": MICROS, "count": ROWS}
    return {**whose, "journal_offset": offset, **place}


def test_what_was_delivered_of_damaged_messages_is_judged(
    tmp_path: Path, spark: SparkSession, lake: Lake, run_job: Runs
) -> None:
    damage_rows(write(tmp_path / "node-1", "rows", is_sealed=True))
    damage_frame(write(tmp_path / "node-2", "frame"))
    pattern = {"selector": "/*", "is_pattern": True, "from_arrival": 1, "to_arrival": ROWS}
    subject = {"selector": "/x", "epoch": 1, "from_sequence": 1, "to_sequence": ROWS}
    rows = [
        row
        for node in ("rows", "frame", "sound")
        for row in (handed(node, 0, arrival_run=node, **pattern), handed(node, 1, **subject))
    ]
    lake.append("bronze.deliveries", frame(spark, DELIVERIES, rows[:4]))
    run_job("land", streams="messages,runs")
    assert not lake.exists("bronze.messages")
    assert run_job("audit").text.startswith("UNPROVEN: 1 of 4")
    write(tmp_path / "node-3", "sound")
    lake.append("bronze.deliveries", frame(spark, DELIVERIES, rows[4:]))
    run_job("land", streams="messages,runs")
    outcome = run_job("audit")
    assert outcome.found == 0 and outcome.text.startswith("UNPROVEN: 1 of"), outcome.text
    ranges = lake.read("gold.audit_ranges").collect()
    assert {row.node for row in ranges} == {"rows", "frame", "sound"}
    assert sum(row.messages for row in ranges) == len(rows) * ROWS
    verdicts = {(row.node, row.selector): row.verdict for row in lake.read("gold.audit_verdict").collect()}
    assert verdicts["rows", "/*"] == "unproven" and verdicts["sound", "/*"] == "proven"
    assert verdicts["frame", "/*"] == "proven", "what is not landed yet is not missing"
    said = run_job("reconcile").text
    assert f"messages of rows: 0 to {ROWS - 1} in quarantine" in said
    assert "messages of frame: " in said and "bytes after 0 cannot be read yet" in said
    shutil.rmtree(lake.path("bronze.messages"))
    with pytest.raises(TableMissing, match="bronze.messages is not in"):
        run_job("audit")


def test_bytes_of_a_journal_that_names_no_node_are_reported(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    path = write(tmp_path / "node-1", "unnamed", tells_run=False)
    damage_frame(path)
    run_job("land", streams="messages,runs")
    said = run_job("reconcile").text
    assert f"messages of {path.parent}: " in said and "bytes after 0 cannot be read yet" in said


def test_a_table_that_is_gone_is_missed_though_some_of_its_rows_are_in_quarantine(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    path = write(tmp_path / "node-1", "some", is_sealed=True)
    path.write_bytes(path.read_bytes().replace(b"thermometer", b"THERMOMETER", 1))
    run_job("land", streams="messages,runs")
    assert lake.read("bronze.quarantine").count() == 1 and lake.read("bronze.messages").count() == ROWS - 1
    shutil.rmtree(lake.path("bronze.messages"))
    with pytest.raises(TableMissing, match="bronze.messages is no longer in"):
        run_job("land", streams="messages,runs")


def test_what_is_collected_of_the_quarantine_is_bounded(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantined, "_STRETCHES_MAX", 3)
    places = [(0, 2), (2, 5), (4, 6), (7, 8), (1, 2), (9, 10), (11, 12), (13, 14)]
    about = {"stream": "messages", "node": "n", "run": "a", "fault": "crc", "row": ""}
    rows = [{**about, "journal_offset": first, "next": next, "time": MICROS} for first, next in places]
    lake.append("bronze.quarantine", frame(spark, StructType(TABLES["bronze.quarantine"].schema.fields[:-1]), rows))
    assert quarantined.damaged_ranges(lake, "messages") == {("n", "a"): [(0, 6), (7, 8), (9, 10)]}
    assert quarantined.damaged_ranges(lake, "access") == {}
