"""`godwit top`: a node's metrics, live in a terminal, from /v1/stats of its admin port.

On a terminal the table is redrawn every second until interrupted; elsewhere, and with --once, it is printed once.
`--json` prints the answer unchanged, for scripts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..monitoring.windows import WINDOWS
from ..words import printable
from .operator import admin_options, call

Tree = Mapping[str, Any]
COLUMNS = {
    "connections": "connections",
    "slow": "slow_consumers",
    "connects/s": "connects_per_second",
    "ends/s": "disconnects_per_second",
    "in/s": "messages_in_per_second",
    "out/s": "messages_out_per_second",
    "in B/s": "bytes_in_per_second",
    "out B/s": "bytes_out_per_second",
    "refused/s": "publishes_refused_per_second",
    "gaps/s": "gaps_per_second",
    "resumed/s": "recovered_per_second",
    "lost place/s": "resynced_per_second",
    "cores": "cpu",
}
"""Column → metric."""
ROWS = {
    "connections": "connections",
    "connects a second": "connects_per_second",
    "disconnects a second": "disconnects_per_second",
    "messages in a second": "messages_in_per_second",
    "messages out a second": "messages_out_per_second",
    "bytes in a second": "bytes_in_per_second",
    "bytes out a second": "bytes_out_per_second",
    "publishes refused a second": "publishes_refused_per_second",
    "gaps a second": "gaps_per_second",
    "recovered a second": "recovered_per_second",
    "could not recover a second": "resynced_per_second",
    "slow consumers": "slow_consumers",
    "log bytes": "message_bytes",
    "memory bytes": "memory_bytes",
    "cores used": "cpu",
}
"""Row → metric, with a window."""
ALARMING = {"slow_consumers", "publishes_refused_per_second", "gaps_per_second", "resynced_per_second"}
UNITS = ("", "k", "M", "G", "T")
LABEL_CHARACTERS = len("shard 99")
NUMBER_CHARACTERS = len("0.00123")


@click.command()
@admin_options
@click.option(
    "--window",
    type=click.Choice(list(WINDOWS)),
    help="Also show maximum, mean and standard deviation over this window.",
)
@click.option(
    "--interval", type=click.FloatRange(min=0.5), default=1.0, show_default=True, help="Seconds between updates."
)
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option("--json", "is_json", is_flag=True, help="Print once, as JSON, and exit.")
def top(
    admin: str | None, token_file: Path | None, window: str | None, interval: float, once: bool, is_json: bool
) -> None:
    """Show a node's metrics live: connections, messages, gaps and slow consumers, by shard and protocol."""

    def look() -> Tree:
        return call(admin, token_file, "GET", "/v1/stats" + (f"?windows={window}" if window else ""))

    if is_json:
        click.echo(json.dumps(look()))
        return
    console = Console()
    if once or not console.is_terminal:
        console.print(draw(look(), window, console.width))
        return
    try:
        with Live(draw(look(), window, console.width), console=console, auto_refresh=False, screen=True) as live:
            while True:
                time.sleep(interval)
                live.update(draw(look(), window, console.width), refresh=True)
    except KeyboardInterrupt:
        return


def draw(stats: Tree, window: str | None, width: int) -> Group:
    """The text for one answer, on a terminal of this width."""
    parts: list[Any] = [_draw_head(stats), *(_draw_scopes(stats["now"], columns) for columns in _split(width))]
    if window:
        parts.append(_draw_window(stats["now"]["node"], window, stats["windows"][window]))
    codes = _draw_codes(stats["now"]["codes"])
    return Group(*parts, *([codes] if codes else []))


def write_number(value: float | None) -> str:
    """At most five characters: 0, 12.3, 1,234 → 1.23k."""
    if value is None:
        return "–"
    if value < 999.5:
        return f"{value:.3g}"
    power = 0
    while value >= 999.5 and power < len(UNITS) - 1:
        value /= 1_000
        power += 1
    return f"{value:.3g}{UNITS[power]}"


def _draw_head(stats: Tree) -> Text:
    seconds = int(stats["uptime_ms"] / 1000)
    days, rest = divmod(seconds, 86_400)
    up = (f"{days} d " if days else "") + f"{rest // 3_600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    node = stats["now"]["node"]
    condition = stats["condition"]
    text = Text.assemble((printable(str(stats["node"])), "bold"), f" {stats['version']} ")
    text.append(condition, style="green" if condition == "ready" else "bold red")
    text.append(
        f"  up {up}  subjects {write_number(node.get('subjects'))}  logs {write_number(node.get('message_bytes'))}B"
        f"  memory {write_number(node.get('memory_bytes'))}B"
    )
    return text


def _split(width: int) -> list[list[str]]:
    """The columns, in as many tables as the terminal's width requires."""
    tables: list[list[str]] = [[]]
    left = width - LABEL_CHARACTERS
    for column in COLUMNS:
        needed = max(len(column), NUMBER_CHARACTERS) + 2
        if needed > left and tables[-1]:
            tables.append([])
            left = width - LABEL_CHARACTERS
        tables[-1].append(column)
        left -= needed
    return tables


def _draw_scopes(now: Tree, columns: list[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    scopes = {"node": now["node"]}
    scopes |= {f"shard {name}": scope for name, scope in now["shards"].items()}
    scopes |= {name: scope for name, scope in now["protocols"].items() if any(scope.values())}
    for name, scope in scopes.items():
        table.add_row(name, *(_draw_value(COLUMNS[column], scope.get(COLUMNS[column])) for column in columns))
    return table


def _draw_value(metric: str, value: float | None) -> Text:
    return Text(write_number(value), style="yellow" if value and metric in ALARMING else "")


def _draw_window(now: Tree, name: str, window: Tree) -> Table:
    covered_s, seconds = window["covered_seconds"], window["seconds"]
    known = "" if covered_s >= seconds * 0.98 else f" ({write_number(covered_s)} s of it are known)"
    table = Table(box=None, pad_edge=False, title=f"\nover the last {name}{known}", title_justify="left")
    table.add_column("")
    for column in ("now", "mean", "max", "deviation"):
        table.add_column(column, justify="right")
    for row, metric in ROWS.items():
        found = window["node"].get(metric, {})
        values = (now.get(metric), found.get("mean"), found.get("max"), found.get("deviation"))
        table.add_row(row, *map(write_number, values))
    return table


def _draw_codes(codes: Tree) -> Text | None:
    from ..codes import CODES

    said = [
        f"{CODES[int(code)].name if int(code) in CODES else 'other'} {metric.removesuffix('_per_second')} {write_number(rate)}/s"
        for code, scope in codes.items()
        for metric, rate in scope.items()
        if rate
    ]
    return Text("\n" + "   ".join(said), style="yellow") if said else None
