"""The clients' section of the page, from their results. Pure: reads outcomes, runs nothing."""

from __future__ import annotations

from typing import Any

NAMES = {"python": "Python", "javascript": "JavaScript"}


def describe_clients(outcome: dict[str, Any]) -> list[str]:
    """The section, in Markdown; `outcome` is that of benchmarks.clients.run with JSON."""
    rounds = len(next(iter(outcome["clients"].values()))["rounds"]["this"])
    lines = [
        "## The clients",
        "",
        f"CPU of the client's process for each received message (`python -m benchmarks.clients.run`): {outcome['messages']:,} messages of",
        "about a hundred bytes as JSON, one subscription. The baseline is a bare loop over the same WebSocket library: it parses each",
        "frame and counts its messages, and has no position, no bound, no reconnect and no object for a message.",
        "",
        "| client | µs per message | bare loop, µs | ratio | rounds |",
        "|---|---|---|---|---|",
    ]
    for name, measured in outcome["clients"].items():
        median, ratio = measured["cpu_us_median"], measured["over_bare"]
        lines.append(
            f"| {NAMES[name]} | {median['this']:.3g} | {median['bare']:.3g} | {ratio['median']:.2f} × | "
            f"{min(ratio['rounds']):.2f} – {max(ratio['rounds']):.2f} |"
        )
    machine = outcome["machine"]
    about = f"{rounds} rounds, {machine['cpu']}, {machine['cores']} cores, commit {outcome['commit']}."
    return [*lines, "", about, ""]
