"""Makes docs/benchmarks.md, its charts and the README's figures from benchmarks/results.

Nothing there is written by hand but the explanations of goals that are not met, in benchmarks/explanations.toml.

    python -m benchmarks.page [--check]       --check: exit 1 when the page is not current
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

from .charts import draw_chart
from .goals import GOALS, Goal, Outcomes
from .journaled import describe_journal
from .million import describe_sizes, draw_memory, draw_spread
from .pipelines.page import describe_pipelines
from .planning import describe_checks
from .readme import put_figures

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"

CHARTS = {
    "idle": ("memory_kb_per_connection", "Own memory of an idle connection, kB", 1.0),
    "connect": ("cpu_ms_per_1000", "Server CPU of 1,000 connects with a subscription, ms", 1.0),
    "fanout": ("cpu_us_per_delivery", "1 to 1,000, 25 messages/s: server CPU a delivery, µs", 1.0),
    "many": ("cpu_us_per_delivery", "100 subjects × 100 subscribers: server CPU a delivery, µs", 1.0),
    "saturated": ("cpu_us_per_delivery", "Saturated, 1 to 1,000: server CPU a delivery, µs", 1.0),
    "publish": ("publishes_per_cpu_second", "Acknowledged publishes a second of server CPU, thousands", 1e-3),
    "latency": ("p99_us", "50,000 deliveries/s over 1,000 subjects: p99, ms", 1e-3),
}


def read_outcomes(results: Path) -> dict[str, dict[str, Any]]:
    """The outcomes kept in a folder, by load."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}


def build_page(outcomes: Outcomes, explanations: dict[str, str]) -> str:
    """The page as Markdown."""
    lines = [
        "# Measured",
        "",
        *_describe_method(outcomes),
        "",
        explanations.get("all", "").strip(),
        "",
        "| what | must reach | median | rounds | |",
        "|---|---|---|---|---|",
    ]
    for goal in GOALS:
        lines.append(_describe_goal(goal, outcomes))
    unmet = [goal for goal in GOALS if (value := goal.measure(outcomes)) is not None and not goal.is_met(value)]
    if unmet:
        lines += ["", "## Not met, and where the time goes", ""]
        for load in dict.fromkeys(goal.load for goal in unmet):
            lines += [f"**{load}**: {explanations.get(load, 'not yet explained.').strip()}", ""]
    lines += ["", "## Load by load", ""]
    for name, outcome in outcomes.items():
        lines += _describe_load(name, outcome)
    return "\n".join(lines).rstrip() + "\n"


def _describe_method(outcomes: Outcomes) -> list[str]:
    first = next(iter(outcomes.values()), None)
    if first is None:
        return ["Nothing has been measured yet: `make bench`."]
    machine = first["machine"]
    commits = ", ".join(dict.fromkeys(outcome["commit"] for outcome in outcomes.values()))
    return [
        f"Commit {commits}; {machine['cpu']}, {machine['cores']} cores, {machine['system']} {machine['kernel']}; everything",
        "on loopback, the server on one core and the generator on another. Each figure is the median of the rounds, which alternate",
        "between the servers; a ratio is the median of the ratios within a round. CPU is the server processes' own, from the",
        "scheduler's account of their threads; memory is PSS. Every delivery is counted and checked for its place in its subject:",
        "a run that loses or repeats one is no result, and a paced round in which a server fell behind and merged, because the machine",
        "was busy with something else, is taken again (three times at most).",
        "The baseline is a bare C loop that parses nothing and keeps nothing",
        "(`benchmarks/baseline/baseline.c`). `make bench` makes what follows; the sections of the pipelines and journal name their own.",
    ]


def _describe_goal(goal: Goal, outcomes: Outcomes) -> str:
    value = goal.measure(outcomes)
    if value is None:
        return f"| {goal.sentence} | {goal.describe_bound()} | not measured | | |"
    rounds = goal.list_rounds(outcomes)
    spread = f"{_show(min(rounds))} – {_show(max(rounds))}" if len(rounds) > 1 else "one round"
    met = "met" if goal.is_met(value) else "**not met**"
    return f"| {goal.sentence} | {goal.describe_bound()} | {_show(value)} | {spread} | {met} |"


def _show(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def _describe_load(name: str, outcome: dict[str, Any]) -> list[str]:
    servers = outcome["servers"]
    rounds = len(next(iter(servers.values()))["rounds"])
    lines = [
        f"### {name}",
        "",
        f"{outcome['sentence']}. {rounds} round{'s' * (rounds > 1)}, commit {outcome['commit']}.",
        "",
    ]
    if name in CHARTS:
        lines += [f"![{CHARTS[name][1]}](charts/{name}.svg)", ""]
    if name == "million":
        lines += ["![How far a broadcast has come by when](charts/million.svg)", ""]
        return [*lines, "![Memory of one connection](charts/million-memory.svg)", "", *describe_sizes(outcome), ""]
    lines += ["| |" + "|".join(servers) + "|", "|---|" + "---|" * len(servers)]
    for figure in dict.fromkeys(figure for server in servers.values() for figure in server["median"]):
        cells = [server["median"].get(figure) for server in servers.values()]
        lines.append(
            f"|{figure}|"
            + "|".join("" if cell is None else f"{cell:,.4g}" if cell < 1e4 else f"{cell:,.0f}" for cell in cells)
            + "|"
        )
    return [*lines, ""]


def build_files(results: Path) -> dict[Path, str]:
    """Page and charts, by the file each belongs in."""
    outcomes = read_outcomes(results)
    explanations = tomllib.loads((HERE / "explanations.toml").read_text(encoding="utf-8"))
    page = build_page(outcomes, explanations)
    checks = results / "plan" / "checks.json"
    if checks.exists():
        page += "\n" + "\n".join(describe_checks(json.loads(checks.read_text()))).rstrip() + "\n"
    kept = [results / "pipelines" / name for name in ("io.json", "audit.json")]
    io, audit = (json.loads(path.read_text()) if path.exists() else {} for path in kept)
    page += "\n" + "\n".join(describe_pipelines(io, audit, explanations)).rstrip() + "\n"
    if journal := read_outcomes(results / "journal"):
        page += "\n" + "\n".join(describe_journal(journal, explanations)).rstrip() + "\n"
    files = {DOCS / "benchmarks.md": page}
    readme = HERE.parent / "README.md"
    files[readme] = put_figures(readme.read_text(encoding="utf-8"), outcomes)
    for name, (figure, title, scale) in CHARTS.items():
        if name in outcomes:
            files[DOCS / "charts" / f"{name}.svg"] = draw_chart(outcomes[name], figure, title, scale)
    if "million" in outcomes:
        files[DOCS / "charts" / "million.svg"] = draw_spread(outcomes["million"])
        files[DOCS / "charts" / "million-memory.svg"] = draw_memory(outcomes["million"])
    return files


def write_page(results: Path) -> None:
    """Writes page and charts."""
    for file, text in build_files(results).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def main() -> int:
    results = HERE / "results"
    if "--check" in sys.argv[1:]:
        stale = [
            file.name for file, text in build_files(results).items() if not file.exists() or file.read_text() != text
        ]
        print(f"not current: {', '.join(stale)}" if stale else "current")
        return 1 if stale else 0
    write_page(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
