"""The report's page: shows what its document has, loads nothing from the network, and escapes names."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row

from godwit_pipelines.config import load_config
from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.writing import write_rows
from godwit_pipelines.errors import TableMissing
from godwit_pipelines.jobs.audit import say_verdict
from godwit_pipelines.report import build_document, build_page
from godwit_pipelines.report.charts import TICK_STEPS, Chart, Series
from godwit_pipelines.report.command import write_report
from godwit_pipelines.report.document import _audit, _faults_over_time, _reported, read_quantile
from godwit_pipelines.tables import DATE, TABLES
from tests.pipelines.journals import START
from tests.pipelines.test_delta import write

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_document(folder: Path, **audit: Any) -> dict[str, Any]:
    document = build_document(folder, NOW)
    document["audit"] |= {"state": "proven", "messages": 1_234, "ranges": 5, "selectors": 1, **audit}
    return document


def test_a_lake_without_tables_makes_a_page_that_says_so(tmp_path: Path) -> None:
    page = build_page(build_document(tmp_path, NOW))
    assert "NOTHING YET" in page and "Run land, then audit" in page


def test_what_was_audited_before_the_time_of_the_report_is_told(tmp_path: Path) -> None:
    table, hour = TABLES["gold.audit_verdict"], datetime(2026, 11, 19, 23, tzinfo=UTC)
    row = {field.name: 0 for field in table.schema} | {"hour": hour, "node": "n", "tenant": "", "selector": "/a"}
    row |= {"is_pattern": False, "verdict": "proven", "ranges": 1, DATE: hour.date()}
    write_rows(str(tmp_path / "gold/audit_verdict"), pa.Table.from_pylist([row], arrow_schema(table.schema)), table)
    said = "the last audited hour is 2026-11-19 23:00 UTC"
    assert said in build_page(build_document(tmp_path, NOW)) and said not in build_page(
        build_document(tmp_path, NOW, 72)
    )
    config = load_config(None, {}, {"lake.path": str(tmp_path)})
    now_and_then = [write_report(config, tmp_path / "page.html", None, hours) for hours in (0.01, 24 * 366)]
    assert now_and_then[0].startswith(f"nothing of the last 0.01 hours was audited; {said}, see --hours: file:")
    assert now_and_then[1].startswith("PROVEN: file:")


@pytest.mark.parametrize("damaged", ["_delta_log/*.json", "date=*/*.parquet"])
def test_a_table_that_cannot_be_read_is_named(damaged: str, tmp_path: Path) -> None:
    table = tmp_path / "bronze" / "messages"
    write(table, range(5))
    document = build_document(tmp_path, START + timedelta(hours=1))
    assert not document["empty"]
    files = list(table.glob(damaged))
    for file in files:
        file.unlink()
    with pytest.raises(TableMissing, match=r"^bronze\.messages "):
        build_document(tmp_path, START + timedelta(hours=1))
    assert files


def test_the_verdict_is_a_sentence(tmp_path: Path) -> None:
    proven = build_page(a_document(tmp_path))
    assert "PROVEN" in proven and "1,234 messages were delivered" in proven and "BROKEN" not in proven
    reported = build_page(a_document(tmp_path, state="reported") | {"reported": {"gaps": 2, "messages": 7}})
    assert "7 messages could not be delivered" in reported and "gaps reported, with 7 messages" in reported
    excused = build_page(a_document(tmp_path, state="reported", excused=3))
    assert "3 cannot be judged" in excused and "each client that missed one" not in excused
    assert "all in order" not in excused and "All others were delivered in order" in excused
    early = build_page(a_document(tmp_path, not_landed=5, unwritten=2))
    assert "could not be delivered" not in early and "not landed yet: 5" in early
    assert "on the disk of a run that crashed: 2" in early
    unproven = build_page(a_document(tmp_path, state="unproven", unproven=2))
    assert "cannot be judged" not in unproven
    assert "UNPROVEN" in unproven and "2 hours of these may concern messages" in unproven
    broken = build_page(a_document(tmp_path, state="broken", faults=2, holes=1))
    assert "BROKEN" in broken and "Twice a fault was not reported" in broken and "✗ 1" in broken


SUMS = (
    "messages ranges reported excused faults broken rows unproven sure_messages sure_ranges sure_reported sure_excused"
)
NOTHING = dict.fromkeys(SUMS.split(), 0)


@pytest.mark.parametrize(
    ("sums", "said"),
    [
        ({"messages": 1, "ranges": 1}, "PROVEN: 1 message in 1 range was delivered in order and once, without a loss"),
        (
            {"messages": 2_000, "ranges": 2},
            "PROVEN: 2,000 messages in 2 ranges were delivered in order and once, without a loss",
        ),
        (
            {"messages": 1, "ranges": 1, "faults": 1, "broken": 1, "rows": 1},
            "BROKEN: 1 undeclared fault in 1 of 1 hour of selectors; see gold.audit_faults",
        ),
        (
            {"messages": 2, "ranges": 2, "unproven": 1, "rows": 2, "sure_messages": 1, "sure_ranges": 1},
            "UNPROVEN: 1 of 2 hours of selectors may concern messages that were erased or never landed; they show no fault; "
            "of the others 1 message in 1 range was delivered in order and once, without a loss",
        ),
    ],
)
def test_a_count_of_one_is_singular_in_the_sentence_of_the_audit(sums: dict[str, int], said: str) -> None:
    assert say_verdict(Row(**(NOTHING | sums))).text == said


@pytest.mark.parametrize(
    ("p99_ms", "said"),
    [(0.0005, "0.5 µs"), (0.999_6, "1 ms"), (12.34, "12.3 ms"), (999.7, "1 s"), (123_456.0, "123 s"), (5e6, "5,000 s")],
)
def test_a_latency_is_told_in_its_unit(p99_ms: float, said: str, tmp_path: Path) -> None:
    document = a_document(tmp_path)
    document["selectors"] = [{"selector": "/a", "messages": 7, "bytes": 1, "missed": 0, "p99_ms": p99_ms}]
    assert f">{said}</td>" in build_page(document)


def test_what_has_not_landed_yet_is_not_told_to_be_missing() -> None:
    fault = {"declared": True, "messages": 3, "cause": "not landed yet", "kind": "unpublished", "time": NOW}
    hour = {"hour": NOW, "selector": "/a", "ranges": 1, "messages": 9, "reported": 5, "verdict": "reported"}
    hour |= dict.fromkeys(
        ("conflated", "gaps", "holes", "repeats", "reorders", "regressions", "others", "excused", "faults"), 0
    )
    reported = fault | {"kind": "gap", "cause": "reported", "messages": 5}
    audit = _audit([hour], [fault, reported])
    assert (audit["reported"], audit["not_landed"], audit["unwritten"], audit["state"]) == (5, 3, 0, "reported")
    assert _audit([hour | {"reported": 0}], [fault])["state"] == "proven"
    repeat = fault | {"kind": "repeat", "cause": "the journal lost rows"}
    excused = _audit([hour | {"reported": 0, "excused": 3}], [repeat])
    assert (excused["reported_gaps"], excused["state"]) == (0, "reported")
    assert _faults_over_time([], [repeat], 10) == []
    assert _audit([hour, hour | {"verdict": "unproven"}], [])["state"] == "unproven"
    older = {name: value for name, value in hour.items() if name != "excused"}
    assert _audit([older, hour | {"excused": None}], [])["excused"] == 0, "the column is younger than the table"
    assert [reported for _, reported, _ in _faults_over_time([], [fault, reported], 10)] == [5]


def test_what_clients_were_told_of_the_time_before_they_came_back_is_told_too() -> None:
    windows = [
        {"window_start": NOW + timedelta(seconds=10 * n), "gaps": 2, "missed": missed}
        for n, missed in enumerate((0, 9))
    ]
    gap = {"declared": True, "messages": 5, "cause": "reported", "kind": "gap", "time": NOW + timedelta(seconds=10)}
    assert _reported(windows, {"reported_gaps": 1, "reported": 5}) == {"gaps": 4, "messages": 9}
    assert _reported([], {"reported_gaps": 1, "reported": 5}) == {"gaps": 1, "messages": 5}
    at = int(NOW.timestamp())
    wrong = gap | {"declared": False, "messages": 1, "time": NOW + timedelta(seconds=40)}
    assert _faults_over_time(windows, [gap, wrong], 10) == [(at + 10, 9, 0), (at + 40, 0, 1)]


def test_names_are_text_and_nothing_is_fetched(tmp_path: Path) -> None:
    document = a_document(tmp_path)
    document["selectors"] = [
        {"selector": "/<script>alert(1)</script>", "messages": 1, "bytes": 1, "missed": 0, "p99_ms": None}
    ]
    document["tenants"] = [
        dict.fromkeys(("in_messages", "in_bytes", "out_messages", "out_bytes", "connects", "refusals"), 1)
    ]
    document["tenants"][0]["tenant"] = '"><img src=x>'
    page = build_page(document)
    assert not re.search(r"https?://|<script|<img|@import|url\(|<link", page)
    assert "&lt;script&gt;" in page


def test_a_quantile_of_a_histogram_is_within_its_bucket() -> None:
    buckets = [0] * 40
    buckets[8], buckets[12] = 90, 10  # 128 to 256, and 2,048 to 4,096 microseconds
    assert 128 <= read_quantile(buckets, 0.5) <= 256
    assert 2_048 <= read_quantile(buckets, 0.99) <= 4_096
    assert read_quantile([0] * 40, 0.5) == 0


def test_a_line_is_broken_where_nothing_was_measured() -> None:
    points = [(0.0, 1.0), (10.0, 2.0), (400.0, 2.0), (410.0, 1.0), (900.0, 3.0)]

    def shapes(join_s: float) -> tuple[int, int]:
        drawn = Chart("Latency", "ms", 0.0, 1_000.0, [Series("p50", "up", points, join_s=join_s)]).draw()
        drawn = drawn.partition('class="narrow"')[0]
        return drawn.count("<polyline"), drawn.count("<circle")

    assert (shapes(0.0), shapes(25.0)) == ((1, 0), (2, 1))


@pytest.mark.parametrize("span", [*(step * 3 + 1 for step in TICK_STEPS[4:-1]), 366 * 86_400])
@pytest.mark.parametrize(("size", "room"), [("broad", 570), ("narrow", 300)])
def test_letters_of_a_chart_are_as_large_on_a_phone_and_stand_apart(size: str, room: int, span: int) -> None:
    """`room` is what a chart has on a screen of 1200, and of 360; a letter is 10 high and at most 6.4 wide in the drawing."""
    points = [(at * span / 9, float(at)) for at in range(10)]
    page = Chart("Latency", "ms", 0.0, float(span), [Series("p50", "up", points)]).draw()
    drawn = re.search(rf'<svg class="{size}" viewBox="0 0 (\d+) .*?</svg>', page)
    assert drawn and 10 * room / int(drawn[1]) > 9.5
    ticks = re.findall(r'x="([\d.]+)" y="\d+" text-anchor="middle">([\d:-]+)<', drawn[0])
    assert len({label for _, label in ticks}) == len(ticks) or span < 7 * 86_400
    edges = [(float(x) - 3.2 * len(label), float(x) + 3.2 * len(label)) for x, label in ticks]
    assert edges and all(a[1] < b[0] for a, b in itertools.pairwise(edges))
    assert edges[0][0] >= 0 and edges[-1][1] <= int(drawn[1]) + 1


def test_a_table_of_many_columns_names_them_in_each_line_for_a_phone(tmp_path: Path) -> None:
    document = a_document(tmp_path)
    document["selectors"] = [{"selector": "/a", "messages": 7, "bytes": 1, "missed": 0, "p99_ms": None}]
    page = build_page(document)
    assert '<td class="number" data-name="delivered">7</td>' in page and page.count('<table class="many">') == 1
