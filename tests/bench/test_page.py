"""benchmarks/: the page and its charts are generated from the results, are current, and distinguish met goals from missed ones."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

from benchmarks.charts import draw_chart
from benchmarks.goals import GOALS
from benchmarks.million import describe_sizes, draw_memory, draw_spread
from benchmarks.page import HERE, build_files, build_page
from benchmarks.pipelines.page import describe_pipelines
from benchmarks.planning import describe_checks, settle
from benchmarks.run import AGAINST
from godwit.bench.loads import LOADS
from godwit.plan.check import Compared


def outcome(**medians: dict[str, float]) -> dict[str, Any]:
    servers = {name: {"median": median, "rounds": [median, median]} for name, median in medians.items()}
    return {
        "load": "fanout",
        "sentence": "A <load>",
        "commit": "c0ffee",
        "machine": {},
        "servers": servers,
        "against_baseline": {},
    }


def test_page_and_charts_are_current() -> None:
    stale = [file.name for file, text in build_files(HERE / "results").items() if file.read_text() != text]
    assert not stale, "python -m benchmarks.page"


def test_every_goal_has_a_load_that_is_run_against_what_it_names() -> None:
    assert {goal.load for goal in GOALS} <= set(LOADS) & set(AGAINST)
    assert all(goal.server == "godwit" or goal.server in AGAINST[goal.load] for goal in GOALS)


def test_a_goal_that_is_not_met_is_said_and_explained() -> None:
    machine = {"cpu": "x", "cores": 2, "system": "Linux", "kernel": "6"}
    outcomes = {"saturated": outcome(godwit={"cpu_us_per_delivery": 0.7}) | {"machine": machine}}
    page = build_page(outcomes, {"saturated": "The copy takes it."})
    assert "| 0.7 | 0.7 – 0.7 | **not met** |" in page
    assert "**saturated**: The copy takes it." in page


def test_the_pipelines_say_what_they_reach_and_why_not() -> None:
    longer = {"rows": 4_000_000, "rows_per_s": 600_000, "rows_per_cpu_s": 300_000}
    io = {
        "source": {
            "longer": longer,
            "goal": 400_000,
            "rows_per_s": 500_000,
            "rounds": [450_000, 510_000],
            "cold": 90_000,
        },
        "live": {"goal": 300, "p50_ms": 320, "p95_ms": 500, "p99_ms": 700},
    }
    text = "\n".join(describe_pipelines(io, {}, {"pipelines-live": "Two cores."}))
    assert "≥ 400,000 rows/s | 500,000 | 450,000 – 510,000 | met |" in text and "source 90,000" in text
    assert "≤ 300 ms | 320 ms | p99 700 ms | **not met** |" in text and "**live**: Two cores." in text
    assert text.count("not measured") == 5 and "4,000,000 rows, where starting matters less: 600,000 rows/s" in text
    rates = {
        "ranges": 2_000_000,
        "ranges_per_s": 1,
        "ranges_per_cpu_s": 1,
        "rounds": [1],
        "goal": 2,
        "left_out": [1, 2],
    }
    larger = rates | {"ranges": 6_000_000, "ranges_per_s": 3}
    text = "\n".join(describe_pipelines({}, rates | {"larger": larger}, {}))
    assert (
        "left out: of audit 2, of larger 2." in text and "2,000,000 ranges with faults audited, including all" in text
    )
    assert "| 6,000,000 ranges with faults, the same way | ≥ 500,000 ranges/s | 3 | 1 – 1 | met |" in text


def test_a_chart_is_well_formed_and_has_a_bar_for_each_server() -> None:
    svg = draw_chart(outcome(godwit={"a": 2.0}, baseline={"a": 1.0}, other={"b": 1.0}), "a", "A & B")
    root = ElementTree.fromstring(svg)
    assert len(root.findall("{http://www.w3.org/2000/svg}rect")) == 2


def test_a_prediction_stands_beside_what_was_measured_and_one_that_is_off_is_marked() -> None:
    def takes(*ratios: float) -> list[list[Compared]]:
        return [[Compared("the workload", "cores", ratio, 1.0)] for ratio in ratios]

    def checks(*ratios: float) -> list[str]:
        found = {"compared": settle(takes(*ratios))}
        return describe_checks(
            {"figures": [{"seconds": 50.0}], "takes": len(ratios), "commit": "c0ffee", "workloads": {"w": found}}
        )

    assert "1 of 1 figures are within 25%" in "\n".join(checks(9.0, 1.1, 0.9))
    assert "| w | the workload, cores | 1.1 | 1 | 1.10 | 0.90 – 9.00 |" in checks(9.0, 1.1, 0.9)
    assert "| w | the workload, cores | 1.5 | 1 | **1.50** |  |" in checks(1.5)


def test_the_million_has_a_curve_and_a_row_for_each_size() -> None:
    latency = {
        f"{share}_us": 1e3 * place for place, share in enumerate(("p10", "p25", "p50", "p75", "p90", "p99", "max"))
    }
    steps = [
        {"name": f"{what} {size}", "latency": latency} for size in (10, 1000) for what in ("idle", "broadcast 1 to")
    ]
    median = {
        f"{name}{at}": 1.0 for name in ("user_kb_per_connection", "kernel_kb_per_socket") for at in ("", "_at_10")
    }
    found = {"servers": {"godwit": {"median": median, "runs": [[{"steps": steps}]]}}}
    svg = "{http://www.w3.org/2000/svg}"
    assert len(ElementTree.fromstring(draw_spread(found)).findall(f"{svg}polyline")) == 2
    assert len(ElementTree.fromstring(draw_memory(found)).findall(f"{svg}rect")) == 4
    assert "|user_kb_per_connection|1|1|" in describe_sizes(found)
