"""The command `godwit bench LOAD`: chooses the servers, runs the rounds, prints a table, writes the JSON."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .loads import LOADS, Load
from .result import Outcome, build_outcome, write_outcome
from .rounds import run_rounds
from .targets import RIVALS, TARGETS, BenchFailed, Target


@click.command()
@click.argument("load", type=click.Choice(list(LOADS)))
@click.option(
    "--compare",
    "against",
    default=None,
    help="Also measure these servers, comma-separated; `rivals` means all that are installed. Default: the baseline.",
)
@click.option("--server", default="godwit", type=click.Choice(list(TARGETS)), help="Server to measure.")
@click.option(
    "--rounds", default=3, type=click.IntRange(1, 100), help="Number of rounds, which alternate between the servers."
)
@click.option(
    "--driver", default="auto", type=click.Choice(["auto", "io_uring", "readiness"]), help="The node's driver."
)
@click.option("--size", default=1.0, type=click.FloatRange(0.001, 1.0), help="Fraction of the full load.")
@click.option("--tls", "is_tls", is_flag=True, help="Measure with TLS, compared with the same without.")
@click.option("--json", "file", default=None, type=click.Path(path_type=Path), help="Write the result to this file.")
def bench(
    load: str,
    against: str | None,
    server: str,
    rounds: int,
    driver: str,
    size: float,
    is_tls: bool,
    file: Path | None,
) -> None:
    """Measure a node under a LOAD, alternating with a C baseline and with other servers."""
    if is_tls:
        server, against = "godwit-tls", against or "godwit"
    outcome = measure(LOADS[load], server, against, rounds, driver, size)
    click.echo(describe_outcome(outcome), nl=False)
    if file is not None:
        write_outcome(outcome, file)


def measure(
    load: Load,
    server: str = "godwit",
    against: str | None = None,
    rounds: int = 3,
    driver: str = "auto",
    size: float = 1.0,
) -> Outcome:
    """Runs a load and returns its outcome. Raises BenchFailed."""
    targets = [TARGETS[server], *choose_targets(load, against)]
    measured = run_rounds(load, targets, rounds, driver, size, show_progress)
    show_progress("")
    return build_outcome(load, measured, driver, size)


def choose_targets(load: Load, against: str | None) -> list[Target]:
    """The named servers, or the load's default ones. A default rival or baseline that cannot run here is left out."""
    names = load.against if against is None else tuple(name for name in against.split(",") if name)
    chosen = []
    for name in names:
        for one in RIVALS if name == "rivals" else (name,):
            if one not in TARGETS:
                raise BenchFailed(f"{one} is not a known server: expected one of {', '.join(TARGETS)}")
            if TARGETS[one].is_here():
                chosen.append(TARGETS[one])
            elif against is not None and one not in RIVALS:
                raise BenchFailed(f"{one} cannot run: {TARGETS[one].missing()}")
            else:
                click.echo(f"{one} is left out: {TARGETS[one].missing()}", err=True)
    return chosen


def show_progress(text: str) -> None:
    """Progress: one line that is overwritten on a terminal; elsewhere one line for each round."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{text[:118]}", err=True, nl=False)
    elif ": round " in text:
        click.echo(text, err=True)


def describe_outcome(outcome: Outcome) -> str:
    """A table with a line for each metric and a column for each server."""
    servers = outcome["servers"]
    width = max(12, *(len(name) + 2 for name in servers))
    lines = [f"{outcome['load']}: {outcome['sentence']}", " " * 28 + "".join(f"{name:>{width}}" for name in servers)]
    figures = dict.fromkeys(figure for server in servers.values() for figure in server["median"])
    for figure in figures:
        cells = "".join(f"{server['median'].get(figure, float('nan')):>{width},.3f}" for server in servers.values())
        ratio = next(iter(outcome["against_baseline"].values()), {}).get(figure)
        lines.append(f"{figure:<28}{cells}" + (f"   {ratio:.2f} x the baseline" if ratio is not None else ""))
    return "\n".join(lines) + "\n"
