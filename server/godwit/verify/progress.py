"""The progress of a run: a live table on a terminal, elsewhere a line at intervals."""

from __future__ import annotations

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .verify_run import Sample, VerifyRun

LINE_EACH_MS = 10_000


class Progress:
    """Use it as a context manager, and call it with the run after each change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._next_line_ms = 0

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, run: VerifyRun) -> None:
        sample = run.samples[-1]
        if self._live is not None:
            self._live.update(_draw(run, sample), refresh=True)
        elif sample.at_ms >= self._next_line_ms:
            self._next_line_ms = sample.at_ms + LINE_EACH_MS
            self._console.print(_line(run, sample), highlight=False)


def _line(run: VerifyRun, sample: Sample) -> str:
    return (
        f"{sample.at_ms / 1000:6.1f} s  {run.phase}: {sample.published:,} published, {sample.delivered:,} delivered, "
        f"{sample.connected} of {len(run.plan.subscribers)} connected, {sample.gaps} gaps received, "
        f"{run.findings.total} violations"
    )


def _draw(run: VerifyRun, sample: Sample) -> Group:
    total = run.plan.scale.seconds
    bar = ProgressBar(total=total, completed=min(total, sample.at_ms / 1000), width=60)
    table = Table.grid(padding=(0, 2))
    rows = [
        ("time", f"{sample.at_ms / 1000:.0f} of {total:.0f} s, {run.phase}"),
        ("fault now", _fault_kind_now(run)),
        ("published", f"{sample.published:,} ({_rate(run, 'published'):,.0f} a second)"),
        ("delivered", f"{sample.delivered:,} ({_rate(run, 'delivered'):,.0f} a second)"),
        ("connected", f"{sample.connected} of {len(run.plan.subscribers)} subscribers"),
        ("gaps", f"{sample.gaps:,}"),
        ("memory", f"{sample.memory_bytes / 1e6:.0f} MB" if sample.memory_bytes else "not measured here"),
    ]
    for name, value in rows:
        table.add_row(Text(name, style="dim"), value)
    found = run.findings.total
    table.add_row(Text("violations", style="dim"), Text(str(found), style="bold red" if found else "bold green"))
    return Group(Text(f"godwit verify, seed {run.plan.seed}", style="bold"), bar, table)


def _fault_kind_now(run: VerifyRun) -> str:
    injection = run.injection
    if injection is None:
        return "none yet"
    return f"{injection.now or 'none'} ({len(injection.done)} faults so far)"


def _rate(run: VerifyRun, name: str) -> float:
    recent = run.samples[-9:]
    if len(recent) < 2 or recent[-1].at_ms == recent[0].at_ms:
        return 0.0
    grown: int = getattr(recent[-1], name) - getattr(recent[0], name)
    return grown * 1000 / (recent[-1].at_ms - recent[0].at_ms)
