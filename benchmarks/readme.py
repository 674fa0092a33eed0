"""Makes the README's table of figures from the results: this node, the baseline, and the best rival of each load.

Pure: texts in, text out; page.py writes it. Invariant: nothing between the marks is written by hand, and a figure that was
not measured is a dash.
"""

from __future__ import annotations

from typing import Any

from .goals import Outcomes

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"

ROWS = (
    ("idle", "memory_kb_per_connection", "an idle, subscribed connection: the process's own memory", "kB", 1.0),
    ("connect", "cpu_ms_per_1000", "1,000 clients connect and subscribe: server CPU", "ms", 1.0),
    ("fanout", "cpu_us_per_delivery", "1 to 1,000, 25 messages/s, sent singly: CPU per delivery", "µs", 1.0),
    ("many", "cpu_us_per_delivery", "100 subjects with 100 subscribers each: CPU per delivery", "µs", 1.0),
    ("saturated", "cpu_us_per_delivery", "saturated, 1 to 1,000, resumable: CPU per delivery", "µs", 1.0),
    ("resume", "cpu_seconds", "1,000 clients resume 100 missed messages each: server CPU", "s", 1.0),
    ("latency", "p99_us", "latency at 50,000 deliveries/s, p99", "ms", 1e-3),
)


def put_figures(readme: str, outcomes: Outcomes) -> str:
    """The README with its table of metrics replaced."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{build_figures(outcomes)}{END}{after}"


def build_figures(outcomes: Outcomes) -> str:
    """The table, with the machine; empty if nothing was measured."""
    rows = [
        _describe_row(outcomes[load], figure, what, unit, scale)
        for load, figure, what, unit, scale in ROWS
        if load in outcomes
    ]
    if not rows:
        return ""
    machine = next(iter(outcomes.values()))["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['system']} {machine['kernel']}"
    return "\n".join(
        [
            f"Measured on {where}, on loopback, server on one core; medians of several rounds, each with all servers in turn.",
            "The baseline is a bare C loop that parses nothing and keeps nothing. "
            "All loads, and the goals that were missed: [benchmarks](docs/benchmarks.md).",
            "",
            "| | Godwit | baseline | best rival here |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _describe_row(outcome: dict[str, Any], figure: str, what: str, unit: str, scale: float) -> str:
    medians: dict[str, float] = {
        name: server["median"][figure] * scale
        for name, server in outcome["servers"].items()
        if server["median"].get(figure) is not None
    }
    baseline = next((value for name, value in medians.items() if name.startswith("baseline")), None)
    rivals = {name: value for name, value in medians.items() if not name.startswith(("baseline", "godwit"))}
    best = min(rivals, key=lambda name: rivals[name], default=None)
    rival = f"{_show(rivals[best])} ({best})" if best is not None else "–"
    return f"| {what}, {unit} | {_show(medians.get('godwit'))} | {_show(baseline)} | {rival} |"


def _show(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
