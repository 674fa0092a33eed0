"""The journal's section of the page, from its results. Pure: reads outcomes, runs nothing."""

from __future__ import annotations

from statistics import median
from typing import Any

COMMIT_MIN = 0.7
RESTART_S_MAX = 5.0
FANOUT_MAX = 1.05


def describe_journal(outcomes: dict[str, dict[str, Any]], explanations: dict[str, str]) -> list[str]:
    """The section, in Markdown; `outcomes` are those of benchmarks.journal, by their names, as are the explanations."""
    lines = [
        "## The journal",
        "",
        "The cost of the journal (`python -m benchmarks.journal`). The baseline of an acknowledgement is a C loop",
        "(`benchmarks/baseline/commit.c`) that appends the bytes of 64 rows and calls fdatasync, repeatedly, on the same disk.",
        "",
        "| what | must reach | measured | rounds | |",
        "|---|---|---|---|---|",
    ]
    if commit := outcomes.get("commit"):
        hows = {
            "node": "of four publishers, through a node",
            "node_of_one": "of one publisher, through a node",
            "journal": "the journal alone",
        }
        for of, how in hows.items():
            rounds = [row["against_baseline"][of] for row in commit["rounds"]]
            rate = median(row[of]["rows_s"] for row in commit["rounds"])
            lines.append(
                f"| messages acknowledged with `ack=disk`, 64 in flight, {how} ({rate:,.0f} a second), against the baseline "
                f"| ≥ {COMMIT_MIN:g} × | "
                f"{median(rounds):.2f} × | {min(rounds):.2f} – {max(rounds):.2f} | {_verdict(median(rounds) >= COMMIT_MIN)} |"
            )
    if restart := outcomes.get("restart"):
        for of in ("killed", "stopped"):
            took = restart[f"{of}_s"]
            lines.append(
                f"| restart of a {of} node with {restart['messages']:,} kept messages, until it serves them "
                f"| ≤ {RESTART_S_MAX:g} s | {took:.2f} s "
                f"(with none: {restart['empty_s']:.2f} s) | one | {_verdict(took <= RESTART_S_MAX)} |"
            )
    if fanout := outcomes.get("fanout"):
        ratio, rounds = fanout["against_without"], fanout["ratios"]
        lines.append(
            f"| fan-out, CPU per delivered message, with the journal over without | ≤ {FANOUT_MAX:g} × | {ratio:.2f} × | "
            f"{min(rounds):.2f} – {max(rounds):.2f} | {_verdict(ratio <= FANOUT_MAX)} |"
        )
    if commit and min(commit["against_baseline"].values()) < COMMIT_MIN:
        lines += ["", f"**commit**: {explanations.get('commit', 'not yet explained.').strip()}"]
    commits = ", ".join(dict.fromkeys(outcome["commit"] for outcome in outcomes.values()))
    return [*lines, "", f"Commit {commits}.", ""]


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "**not met**"
