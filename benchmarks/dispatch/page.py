"""The section of docs/benchmark-results.md about dispatch, from benchmarks/results/dispatch. Pure: runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Results = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """One bound on one figure; `path` leads to it in the result of `load`. The sentence may name other figures of the result."""

    sentence: str
    load: str
    path: tuple[str, ...]
    bound: float
    unit: str
    is_at_least: bool = False

    def measure(self, results: Results) -> float | None:
        """The figure; none where it was not measured."""
        found: Any = results.get(self.load)
        for name in self.path:
            found = found.get(name) if isinstance(found, dict) else None
        return None if found is None else float(found)

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.is_at_least else value <= self.bound


_OLD = "retention of {receivers:,} expired deliveries with their items while notifications are accepted"
_ACCEPT = "accept, 32 in flight"
_DURING = "accept during a send to all inboxes"
_SEND = "one send to all inboxes"
ROWS = (
    Row("accepts over HTTP, 32 in flight", "loads", ("loads", _ACCEPT, "accepts_per_s"), 4_000, "a second", True),
    Row("their p99", "loads", ("loads", _ACCEPT, "p99_ms"), 40, "ms"),
    Row(
        "accepts during a send to {receivers:,} inboxes",
        "loads",
        ("loads", _DURING, "accepts_per_s"),
        1_500,
        "a second",
        True,
    ),
    Row("their p99", "loads", ("loads", _DURING, "p99_ms"), 60, "ms"),
    Row(
        "one send to {receivers:,} inboxes",
        "loads",
        ("loads", _SEND, "receivers_per_s"),
        60_000,
        "receivers a second",
        True,
    ),
    Row("growth of memory meanwhile", "loads", ("loads", _SEND, "rss_growth_mb"), 64, "MB"),
    Row("import of {receivers:,} receivers", "loads", ("loads", "import", "receivers_per_s"), 20_000, "a second", True),
    Row("from the request to the item at a connected client, p50", "latency", ("one client", "p50_ms"), 25, "ms"),
    Row("the same, p99", "latency", ("one client", "p99_ms"), 100, "ms"),
    Row(
        "one send to {receivers:,} connected inboxes: the last item",
        "latency",
        ("all clients", "last_item_after_s"),
        2,
        "s",
    ),
    Row("webhooks, intent and outcome stored", "webhooks", ("alone", "webhooks_per_s"), 1_500, "a second", True),
    Row(
        "the same, while one of {hosts} hosts hangs",
        "webhooks",
        ("one host hangs", "webhooks_per_s"),
        1_000,
        "a second",
        True,
    ),
    Row("signed e-mail", "mail", ("mails_per_s",), 400, "a second", True),
    Row(
        "{receivers:,} inboxes with 10 items: a page of 50, p99",
        "large",
        ("pages of 50", "of inboxes with 10 items", "p99_ms"),
        10,
        "ms",
    ),
    Row(
        "the same, in the inbox with 1,000 items",
        "large",
        ("pages of 50", "of an inbox with 1,000 items", "p99_ms"),
        10,
        "ms",
    ),
    Row("a restart with {items:,} items, after an end in order", "large", ("serving_after_s", "stopped"), 3, "s"),
    Row("the same, after `kill -9`", "large", ("serving_after_s", "killed"), 3, "s"),
    Row("disk, for each item with its delivery", "large", ("bytes_per_item_and_delivery",), 150, "bytes"),
    Row(
        "{receivers:,} connected inboxes: all have their head after a restart of dispatch",
        "connected",
        ("all_heads_after_s",),
        10,
        "s",
    ),
    Row("p99 of other clients of the node meanwhile, against before", "connected", ("others_p99_ratio",), 2, "×"),
    Row(f"{_OLD}: accept p99", "retention", ("accept during retention", "p99_ms"), 60, "ms"),
    Row("growth of the file meanwhile", "retention", ("file_growth_mb",), 0, "MB"),
    Row(
        "one tenant has {deliveries_queued:,} webhooks queued for an endpoint that answers after 10 s: the longest that another "
        "tenant's webhook took",
        "fairness",
        ("longest_ms",),
        1_000,
        "ms",
    ),
    Row(
        "marks of items while notifications are accepted", "feedback", ("marks_per_s",), 40_000, "items a second", True
    ),
    Row("p99 of an accept meanwhile, against without", "feedback", ("accept_p99_ratio",), 2, "×"),
)


def describe_dispatch(results: Results, explanations: dict[str, str]) -> list[str]:
    """The section, in Markdown: goals, how they were measured, and why where one is not met."""
    lines = [
        "## Dispatch",
        "",
        "Notifications over the embedded store (`python -m benchmarks.dispatch`). The generator runs on the same machine.",
        "",
        "| what | must reach | measured | |",
        "|---|---|---|---|",
    ]
    unmet: list[str] = []
    for row in ROWS:
        value = row.measure(results)
        if value is None:
            continue
        bound = f"{'≥' if row.is_at_least else '≤'} {row.bound:,g} {row.unit}"
        unmet += [] if row.is_met(value) else [row.load]
        verdict = "met" if row.is_met(value) else "**not met**"
        lines.append(
            f"| {row.sentence.format(**results[row.load])} | {bound} | {_show(value)} {row.unit} | {verdict} |"
        )
    lines += [""]
    for load, result in results.items():
        lines.append(
            f"- {load}: {result['machine']}, median fsync {result['fsync_ms']} ms, commit {result.get('commit', '?')}."
        )
    for load in dict.fromkeys(unmet):
        lines += ["", f"**{load}**: {explanations.get(f'dispatch-{load}', 'not yet explained.').strip()}"]
    return lines


def _show(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
