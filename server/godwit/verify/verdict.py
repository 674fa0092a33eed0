"""The verdict of a run: data for the reports, and a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .judge.context import Counts
from .judge.finding import SENTENCES, Finding, Guarantee
from .verify_run import VerifyRun


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result."""

    broker: str
    seed: int
    seconds: float
    is_broken: bool
    guarantees: dict[Guarantee, str]  # kept, broken, not guaranteed
    counts: dict[str, int]
    findings: list[Finding]
    shortest: Finding | None
    fault_kinds: Counter[str]
    left_out: dict[str, str]
    memory: dict[str, float]
    notes: list[str] = field(default_factory=list)


def build_verdict(run: VerifyRun) -> Verdict:
    """The verdict of a run that has ended."""
    found, rules, expected = run.findings, run.context.rules, run.context.expected
    states = {
        guarantee: "not guaranteed"
        if guarantee not in rules.guarantees
        else "broken"
        if found.counts.get(guarantee)
        else "kept"
        for guarantee in Guarantee
    }
    if run.node is None:
        states[Guarantee.MEMORY] = "not measured"
    all_counts = [subscriber.checker.counts for subscriber in run.subscribers]
    counts = {
        "publishes": expected.sent_count,
        "acknowledged": expected.acknowledged_count,
        "refused": expected.refused_count,
        "uncertain": expected.uncertain_count,
        "tried_again": expected.repeat_count,
        "subscribers": len(run.subscribers),
        **{name: sum(getattr(each, name) for each in all_counts) for name in Counts.__slots__},
        "merges_judged": run.context.merging.judged,
        "merges_unjudged": run.context.merging.unjudged,
        "cuts": run.proxy.cuts,
        "restarts": run.injection.restarts if run.injection is not None else 0,
        "violations": found.total,
    }
    injection = run.injection
    return Verdict(
        run.broker.name,
        run.plan.seed,
        run.ended_ms / 1000,
        bool(found.total),
        states,
        counts,
        found.kept,
        found.shortest(),
        Counter(done.fault_kind.value for done in injection.done) if injection is not None else Counter(),
        {fault_kind.value: why for fault_kind, why in injection.left_out.items()} if injection is not None else {},
        {"base_mb": run.base_bytes / 1e6, "peak_mb": run.peak_bytes / 1e6, "limit_mb": run.limit_bytes / 1e6}
        if run.node is not None
        else {},
        run.broker.notes,
    )


def print_verdict(verdict: Verdict, console: Console, again: str) -> None:
    """Print the table, then the shortest history, if there is one, and the command that runs the same plan `again`."""
    counts = verdict.counts
    word = (
        Text("BROKEN", style="bold white on red") if verdict.is_broken else Text("PASSED", style="bold white on green")
    )
    table = Table(title=None, show_edge=False, pad_edge=False)
    table.add_column("guarantee")
    table.add_column("verdict")
    table.add_column("meaning")
    for guarantee, state in verdict.guarantees.items():
        style = {"kept": "green", "broken": "bold red"}.get(state, "dim")
        table.add_row(guarantee.value, Text(state, style=style), SENTENCES[guarantee])
    fault_kinds = ", ".join(f"{count} × {fault_kind}" for fault_kind, count in verdict.fault_kinds.items()) or "none"
    console.print(Panel(word, title=f"{verdict.broker}, {verdict.seconds:.0f} s, seed {verdict.seed}", expand=False))
    console.print(table)
    console.print(
        f"{counts['publishes']:,} publishes ({counts['acknowledged']:,} acknowledged, {counts['refused']:,} refused, "
        f"{counts['uncertain']:,} uncertain), {counts['messages']:,} deliveries to {counts['subscribers']:,} subscribers; "
        f"{counts['losses']:,} connections lost, {counts['resumes']:,} resumes; {counts['gaps']:,} gaps for "
        f"{counts['missed']:,} messages; {counts['merges_judged']:,} merged values correct",
        highlight=False,
    )
    console.print(f"faults: {fault_kinds}", highlight=False)
    for fault_kind, why in verdict.left_out.items():
        console.print(f"skipped: {fault_kind}: {why}", highlight=False)
    for note in verdict.notes:
        console.print(f"note: {note}", highlight=False)
    if verdict.memory:
        memory = verdict.memory
        console.print(f"memory: {memory['peak_mb']:.0f} MB at most, limit {memory['limit_mb']:.0f} MB", highlight=False)
    if verdict.shortest is not None:
        _print_finding(verdict.shortest, verdict.counts["violations"], console)
        console.print(f"repeat with: {again}", highlight=False, markup=False, soft_wrap=True)


def _print_finding(finding: Finding, total: int, console: Console) -> None:
    console.print(
        f"\n[bold red]{total:,} violations; the shortest history:[/] {finding.guarantee.value}", highlight=False
    )
    console.print(f"  {finding.who} on {finding.subject}: {finding.sentence}", highlight=False, markup=False)
    for line in finding.history:
        console.print(f"    {line}", highlight=False, markup=False)
