"""Erased identities stay erased: their rows are not reported missing, do not land again, and do not hide rows that are missing."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.table_files import live_files
from godwit_pipelines.delta.writing import write_rows
from godwit_pipelines.jobs import Outcome, maintain
from godwit_pipelines.jobs.erasures import erased_ranges, ranges_of
from godwit_pipelines.jobs.land import after, without_erased
from godwit_pipelines.lake import Lake
from godwit_pipelines.report import build_document, build_page
from godwit_pipelines.schemas import SCHEMAS
from godwit_pipelines.tables import TABLES
from tests.pipelines.journals import START, JournalWriter, message, micros, run_of, write_messages
from tests.pipelines.transforms.rows import frame

Runs = Callable[..., Outcome]
MALLORY = [(first, first + 1) for first in range(21, 30, 2)] + [(35, 40)]
"""Where this person's messages are: every second one for a while, and the last ones."""


@pytest.fixture
def writer(tmp_path: Path) -> JournalWriter:
    return write_mallory(tmp_path)


def write_mallory(folder: Path) -> JournalWriter:
    writer = write_messages(folder / "node-1", 20, node="a")
    theirs = {offset for first, next in MALLORY for offset in range(first, next)}
    writer.write(
        [message(offset, publisher="mallory" if offset in theirs else "ann") for offset in range(20, 40)],
    )
    return writer


def offsets(lake: Lake) -> list[int]:
    return sorted(row["journal_offset"] for row in lake.read("bronze.messages").select("journal_offset").collect())


def kept() -> list[int]:
    return [offset for offset in range(40) if not any(first <= offset < next for first, next in MALLORY)]


def remove(lake: Lake, *, table: bool) -> None:
    """The checkpoint is lost, or both are removed, as the runbook says."""
    shutil.rmtree(lake.checkpoint("land-messages"))
    if table:
        shutil.rmtree(lake.path("bronze.messages"))


def test_erased_rows_are_not_missing_and_a_missing_one_between_them_is_named(
    writer: JournalWriter, lake: Lake, run_job: Runs
) -> None:
    run_job("land")
    assert "bronze.messages: 10 rows removed" in run_job("maintain", erase="mallory").text
    assert erased_ranges(lake, "messages") == {"a": {run_of("a"): MALLORY}} and erased_ranges(lake, "access") == {}
    found = run_job("reconcile")
    assert found.found == 0 and "messages of a: 21 to 39: 10 rows ERASED on request" in found.text
    assert "messages of a: 30 rows landed, none missing" in found.text and "MISSING" not in found.text
    writer.write([message(offset) for offset in range(40, 45)])
    DeltaTable(lake.path("bronze.messages")).delete("journal_offset = 24")
    found = run_job("reconcile")
    assert found.found == 1 and "messages of a: 24 to 24 MISSING from bronze.messages" in found.text
    assert "10 rows ERASED" in found.text and "messages of a: 40 to 44 not landed yet" in found.text
    findings = lake.read("ops.landing").where("kind = 'erased' AND first = 21 AND next = 40 AND rows = 10")
    assert findings.count() == 2
    person = hashlib.sha256(b"mallory").hexdigest()
    assert lake.read("ops.erased").where(f"person = '{person}'").count() == len(MALLORY)
    assert not any(b"mallory" in path.read_bytes() for path in Path(lake.path("ops.erased")).rglob("*.*"))


def test_erased_rows_do_not_land_again(writer: JournalWriter, lake: Lake, run_job: Runs) -> None:
    run_job("land")
    run_job("maintain", erase="mallory")
    remove(lake, table=False)
    writer.write([message(offset) for offset in range(40, 45)])
    assert run_job("land").text == "", "what follows the last row that is there had landed, too"
    assert offsets(lake) == [*kept(), *range(40, 45)]
    remove(lake, table=True)
    assert run_job("land").text == "messages: 10 rows that were erased left out"
    assert offsets(lake) == [*kept(), *range(40, 45)] and run_job("land").text == ""
    found = run_job("reconcile")
    assert found.found == 0 and "10 rows ERASED" in found.text
    writer.seal()
    writer.write([message(offset) for offset in range(45, 50)])
    writer.retain(45)
    assert "ERASED" not in run_job("reconcile").text, "what retention let go of is no matter"
    assert run_job("land").text == ""


def test_who_is_erased_from_the_quarantine_does_not_come_back_into_it(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    damaged = {3: {"crc": 7, "publisher": "mallory"}, 4: {"crc": 7}}
    writer.write([message(offset, **damaged.get(offset, {})) for offset in range(6)])
    run_job("land")
    assert "bronze.quarantine: 1 row removed" in run_job("maintain", erase="mallory").text
    for again in (False, True):
        if again:
            remove(lake, table=True)
            shutil.rmtree(lake.path("bronze.quarantine"))
            assert run_job("land").text == "messages: 1 row that was erased left out"
        assert [row["journal_offset"] for row in lake.read("bronze.quarantine").collect()] == [4]
        found = run_job("reconcile")
        assert found.found == 0 and "messages of a: 3 to 3: 1 row ERASED" in found.text
        assert "messages of a: 4 to 4 in quarantine" in found.text


def test_an_erasure_that_is_cut_short_neither_invents_nor_loses_what_it_took(
    writer: JournalWriter, lake: Lake, run_job: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_job("land")

    def die(*_: object, **__: object) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr("godwit_pipelines.delta.erasing.replace_files", die)
        with pytest.raises(KeyboardInterrupt):
            run_job("maintain", erase="mallory")
    assert lake.read("ops.erased").count() == len(MALLORY) and erased_ranges(lake, "messages") == {}
    DeltaTable(lake.path("bronze.messages")).delete("journal_offset = 21")
    assert "messages of a: 21 to 21 MISSING" in run_job("reconcile").text
    assert offsets(lake) == [offset for offset in range(40) if offset != 21]
    with monkeypatch.context() as cut:
        cut.setattr(maintain, "vacuum", die)
        with pytest.raises(KeyboardInterrupt):
            run_job("maintain", erase="mallory")
    assert offsets(lake) == kept() and not lake.exists("ops.erasures")
    assert erased_ranges(lake, "messages") == {"a": {run_of("a"): MALLORY[1:]}}
    again = run_job("maintain", erase="nobody")
    assert "bronze.messages: 0 rows removed" in again.text and "names must match exactly" in again.text
    proof = lake.read("ops.erasures").where("table_name = 'bronze.messages'").orderBy("rows").collect()
    assert [(row["rows"], bool(row["erasure"])) for row in proof] == [(0, False), (9, True)]
    assert proof[0]["person"] != proof[1]["person"], "each has the proof of their own"
    shutil.rmtree(lake.path("bronze.messages"))
    assert erased_ranges(lake, "messages") == {"a": {run_of("a"): MALLORY[1:]}}, "the proof outlives the table"


def test_a_lake_of_which_rows_were_erased_before_says_what_it_does_not_know(
    writer: JournalWriter, lake: Lake, run_job: Runs
) -> None:
    run_job("land")
    old = {"person": ["x"], "table_name": ["bronze.messages"], "rows": [10], "version": [1]}
    write_deltalake(lake.path("ops.erasures"), pa.table(old))
    assert "were erased before" not in run_job("reconcile").text
    DeltaTable(lake.path("bronze.messages")).delete("journal_offset >= 21 AND journal_offset < 31")
    found = run_job("reconcile")
    assert found.found == 1 and "messages of a: 21 to 30 MISSING" in found.text
    assert "10 rows of bronze.messages or of the quarantine were erased before erasures recorded offsets" in found.text
    run_job("maintain", erase="mallory")
    assert erased_ranges(lake, "messages") == {"a": {run_of("a"): [(35, 40)]}}
    assert lake.read("ops.erasures").where("person = 'x' AND erasure IS NULL").count() == 1
    run_job("maintain")
    assert live_files(lake.path("ops.erased")), "what was erased is kept for as long as the lake is"


def test_an_audit_after_a_publisher_was_erased_finds_no_fault_and_proves_what_it_can(
    spark: SparkSession, lake: Lake, run_job: Runs
) -> None:
    def write(stream: str, rows: list[dict[str, Any]]) -> None:
        about = {"node": "n", "run": "r", "epoch": 1, "time": micros(START), "kind": "text"}
        whole = [{**about, "journal_offset": offset, **row} for offset, row in enumerate(rows)]
        lake.append(f"bronze.{stream}", frame(spark, SCHEMAS[stream], whole))

    subjects = ["/a/x" if n < 8 else "/b/y" for n in range(12)]
    places = [{"subject": subject, "sequence": n % 8 + 1, "arrival": n + 1} for n, subject in enumerate(subjects)]
    write("messages", [row | {"publisher": "mallory" if n in (0, 3, 4, 7) else ""} for n, row in enumerate(places)])
    pattern = {"arrival_run": "r", "is_pattern": True, "epoch": None}
    ranges = [("/a/*", 1, 6, 6), ("/a/*", 7, 12, 2), ("/a/x", 1, 4, 4), ("/a/x", 5, 8, 4), ("/b/y", 1, 4, 4)]
    handed = []
    for number, (selector, first, last, count) in enumerate(ranges):
        is_pattern = selector.endswith("*")
        kind = "arrival" if is_pattern else "sequence"
        place = {f"from_{kind}": first, f"to_{kind}": last, **(pattern if is_pattern else {})}
        handed.append({"selector": selector, "connection": number // 2, "count": count, **place})
    write("deliveries", handed)
    assert run_job("audit").text.startswith("PROVEN: 20 messages in 5 ranges were delivered in order")
    run_job("maintain", erase="mallory")
    after = run_job("audit")
    assert after.found == 0 and after.text == (
        "UNPROVEN: 2 of 3 hours of selectors may concern messages that were erased or never landed; they show no fault; "
        "of the others 4 messages in 1 range were delivered in order and once, without a loss"
    )
    verdicts = lake.read("gold.audit_verdict").select("selector", "verdict", "erased").orderBy("selector").collect()
    assert [tuple(row) for row in verdicts] == [("/a/*", "unproven", 4), ("/a/x", "unproven", 3), ("/b/y", "proven", 0)]
    assert not lake.read("gold.audit_faults").count()
    document = build_document(lake.folder, START + timedelta(minutes=30))
    assert document["audit"]["state"] == "unproven" and "UNPROVEN" in build_page(document)
    proof = TABLES["ops.erasures"]
    old = {"time": START, "person": "x", "table_name": "bronze.messages", "rows": 7, "version": 1}
    write_rows(lake.path(proof.name), pa.Table.from_pylist([old], arrow_schema(proof.schema)), proof)
    assert "\n7 messages were erased before erasures recorded positions" in run_job("audit").text


def test_records_of_kafka_that_were_erased_are_left_out(spark: SparkSession) -> None:
    records = spark.createDataFrame(
        [(node, "r", at) for node in ("t/0", "t/1") for at in range(6)], "node string, run string, journal_offset long"
    )
    assert without_erased(records, {}) is records
    left = without_erased(
        records, {"t/0": {"": [(1, 2), (4, 9)]}, "t/1": {"other": [(0, 9)], "r": [(5, 6)]}, "a": {"": [(0, 9)]}}
    ).collect()
    assert sorted((row["node"], row["journal_offset"]) for row in left) == [
        *(("t/0", at) for at in (0, 2, 3)),
        *(("t/1", at) for at in range(5)),
    ]


def test_rows_are_ranges_and_a_row_that_was_there_twice_counts_twice() -> None:
    rows = pa.table({"stream": ["m"] * 5, "node": ["a", "a", "b", "a", "a"], "journal_offset": [7, 5, 1, 6, 6]})
    arrivals = pa.array([17, 15, 1, 16, 18])
    placed = rows.append_column("run", pa.array(["r"] * 5)).append_column("epoch", pa.array([1] * 5))
    placed = placed.set_column(2, "journal_offset", pa.array([7, 5, 1, 6, 8])).append_column("arrival", arrivals)
    place = {"stream": "m", "run": "r", "epoch": 1}
    assert ranges_of(placed) == [
        place | {"node": "a", "first": 5, "next": 9, "rows": 4, "arrival": 15},
        place | {"node": "b", "first": 1, "next": 2, "rows": 1, "arrival": 1},
    ]
    about = {"stream": "m", "node": "a", "run": None, "first": 5, "next": 8, "rows": 4}
    assert ranges_of(rows) == [about, about | {"node": "b", "first": 1, "next": 2, "rows": 1}]
    assert [after(at, [(3, 5), (5, 6)]) for at in (2, 3, 5, 6)] == [2, 6, 6, 6]
