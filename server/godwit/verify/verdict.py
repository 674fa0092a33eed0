"""The verdict of a run: data for the reports, and a table that a manager can read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .judge.court import Counts
from .judge.finding import SENTENCES, Finding, Promise
from .scene import Scene


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out."""

    broker: str
    seed: int
    seconds: float
    is_broken: bool
    promises: dict[Promise, str]  # kept, broken, not promised
    counts: dict[str, int]
    findings: list[Finding]
    shortest: Finding | None
    harms: Counter[str]
    left_out: dict[str, str]
    memory: dict[str, float]
    notes: list[str] = field(default_factory=list)


def build_verdict(scene: Scene) -> Verdict:
    """Reads a scene that has ended."""
    found, rules, ledger = scene.findings, scene.court.rules, scene.court.ledger
    states = {
        promise: "not promised" if promise not in rules.promises else "broken" if found.counts.get(promise) else "kept"
        for promise in Promise
    }
    if scene.node is None:
        states[Promise.MEMORY] = "not measured"
    all_counts = [subscriber.witness.counts for subscriber in scene.subscribers]
    counts = {
        "publishes": ledger.sent_count,
        "acknowledged": ledger.acknowledged_count,
        "refused": ledger.refused_count,
        "uncertain": ledger.uncertain_count,
        "tried_again": ledger.repeat_count,
        "subscribers": len(scene.subscribers),
        **{name: sum(getattr(each, name) for each in all_counts) for name in Counts.__slots__},
        "merges_judged": scene.court.merging.judged,
        "merges_unjudged": scene.court.merging.unjudged,
        "cuts": scene.proxy.cuts,
        "restarts": scene.harming.restarts if scene.harming is not None else 0,
        "breaches": found.total,
    }
    harming = scene.harming
    return Verdict(
        scene.broker.name,
        scene.plan.seed,
        scene.ended_ms / 1000,
        bool(found.total),
        states,
        counts,
        found.kept,
        found.shortest(),
        Counter(done.harm.value for done in harming.done) if harming is not None else Counter(),
        {harm.value: why for harm, why in harming.left_out.items()} if harming is not None else {},
        {"base_mb": scene.base_bytes / 1e6, "peak_mb": scene.peak_bytes / 1e6, "limit_mb": scene.limit_bytes / 1e6}
        if scene.node is not None
        else {},
        scene.broker.notes,
    )


def print_verdict(verdict: Verdict, console: Console, again: str) -> None:
    """The table, then, if there is one, the shortest history and the command that draws the same plan `again`."""
    counts = verdict.counts
    word = (
        Text("BROKEN", style="bold white on red") if verdict.is_broken else Text("PASSED", style="bold white on green")
    )
    table = Table(title=None, show_edge=False, pad_edge=False)
    table.add_column("promise")
    table.add_column("verdict")
    table.add_column("which is")
    for promise, state in verdict.promises.items():
        style = {"kept": "green", "broken": "bold red"}.get(state, "dim")
        table.add_row(promise.value, Text(state, style=style), SENTENCES[promise])
    harms = ", ".join(f"{count} × {harm}" for harm, count in verdict.harms.items()) or "none"
    console.print(Panel(word, title=f"{verdict.broker}, {verdict.seconds:.0f} s, seed {verdict.seed}", expand=False))
    console.print(table)
    console.print(
        f"{counts['publishes']:,} publishes ({counts['acknowledged']:,} acknowledged, {counts['refused']:,} refused, "
        f"{counts['uncertain']:,} uncertain), {counts['messages']:,} deliveries to {counts['subscribers']:,} subscribers; "
        f"{counts['losses']:,} connections lost, {counts['resumes']:,} resumes; {counts['gaps']:,} gaps told for "
        f"{counts['missed']:,} messages; {counts['merges_judged']:,} merged values right",
        highlight=False,
    )
    console.print(f"harm: {harms}", highlight=False)
    for harm, why in verdict.left_out.items():
        console.print(f"left out: {harm}: {why}", highlight=False)
    for note in verdict.notes:
        console.print(f"note: {note}", highlight=False)
    if verdict.memory:
        memory = verdict.memory
        console.print(
            f"memory: {memory['peak_mb']:.0f} MB at most, {memory['limit_mb']:.0f} MB stated", highlight=False
        )
    if verdict.shortest is not None:
        _print_finding(verdict.shortest, verdict.counts["breaches"], console)
        console.print(f"again: {again}", highlight=False, markup=False, soft_wrap=True)


def _print_finding(finding: Finding, total: int, console: Console) -> None:
    console.print(f"\n[bold red]{total:,} breaches; the shortest history:[/] {finding.promise.value}", highlight=False)
    console.print(f"  {finding.who} on {finding.subject}: {finding.sentence}", highlight=False, markup=False)
    for line in finding.history:
        console.print(f"    {line}", highlight=False, markup=False)
