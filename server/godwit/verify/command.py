"""The command `godwit verify`: derives the plan, runs it, prints the verdict, and writes the reports. It exits with code 1
if a guarantee was broken.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import sys
from pathlib import Path
from typing import NoReturn

import click
from click.core import ParameterSource
from rich.console import Console

from ..config.tree import OPTIONS
from ..errors import GodwitError
from .brokers import OTHERS, Broker, BrokerMissing, GodwitBroker
from .plan import OF_NODE, ROOT, FaultKind, Kind, Scale, make_plan
from .progress import Progress
from .report import build_document, build_page, write_json
from .verdict import Verdict, build_verdict, print_verdict
from .verify_run import VerifyRun, run_plan

EXIT_BROKEN = 1
EXIT_NOT_JUDGED = 2
_NOT_OF_THE_PLAN = ("seed", "json_file", "html_file")
"""Options that are not repeated in the command of a rerun."""


@click.command()
@click.option(
    "--minutes", type=click.FloatRange(0.1, 24 * 60), default=1.0, show_default=True, help="Duration in minutes."
)
@click.option("--seconds", type=click.FloatRange(5, 86_400), default=None, help="Duration in seconds.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=None, help="Repeat the random choices of this seed.")
@click.option("--url", metavar="URL", default=None, help="Test the running node at this URL.")
@click.option("--broker", "other", type=click.Choice(list(OTHERS)), default=None, help="Test this broker.")
@click.option(
    "--subscribers", type=click.IntRange(1, 5_000), default=200, show_default=True, help="Number of subscribers."
)
@click.option("--publishers", type=click.IntRange(1, 200), default=6, show_default=True, help="Number of publishers.")
@click.option(
    "--rate", type=click.FloatRange(1, 100_000), default=150.0, show_default=True, help="Publishes per second."
)
@click.option(
    "--fault",
    "fault_kinds",
    multiple=True,
    type=click.Choice([*(fault_kind.value for fault_kind in FaultKind), "none"]),
    help="Inject only this fault. Repeatable.",
)
@click.option(
    "--exclude-fault",
    "without",
    multiple=True,
    type=click.Choice([fault_kind.value for fault_kind in FaultKind]),
    help="Inject every fault except this one. Repeatable.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([kind.value for kind in Kind]),
    help="Use only this kind of subscriber. Repeatable.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key of the node under test. Repeatable.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), default=None, help="Write the report as JSON.")
@click.option(
    "--html", "html_file", type=click.Path(path_type=Path), default=None, help="Write the report as an HTML page."
)
@click.pass_context
def verify(
    context: click.Context,
    minutes: float,
    seconds: float | None,
    seed: int | None,
    url: str | None,
    other: str | None,
    subscribers: int,
    publishers: int,
    rate: float,
    fault_kinds: tuple[str, ...],
    without: tuple[str, ...],
    kinds: tuple[str, ...],
    settings: tuple[str, ...],
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Verify delivery: publish and subscribe in every way, inject faults, and compare what was received with what was published.

    Exits with code 0 if every guarantee held: in order, nothing lost, nothing received twice, every gap reported and counted. Exits with
    code 1 if one was broken, and prints the shortest history that shows it. Exits with code 2 if nothing could be judged.
    """
    try:
        broker = _choose_broker(url, other, settings)
    except BrokerMissing as missing:
        _leave_out(missing)
    scale = Scale(seconds or minutes * 60, subscribers, publishers, rate)
    chosen = frozenset(Kind(kind) for kind in kinds) if kinds else frozenset(Kind)
    is_here = url is None and other is None
    root = ROOT if url is None else f"{ROOT}/{secrets.token_hex(4)}"  # a node that was there may hold an earlier run's
    drawn = secrets.randbits(32) if seed is None else seed
    plan = make_plan(drawn, scale, chosen & broker.kinds, _choose_fault_kinds(fault_kinds, without, is_here), root)
    with Progress(Console(stderr=True)) as progress:
        try:
            run = asyncio.run(run_plan(plan, broker, progress))
        except* BrokerMissing as missing:
            _leave_out(missing.exceptions[0])
        except* GodwitError as failed:
            raise failed.exceptions[0] from None
    verdict = _report(run, say_again(context, plan.seed), json_file, html_file)
    sys.exit(EXIT_BROKEN if verdict.is_broken else 0)


def _leave_out(missing: BaseException) -> NoReturn:
    """Report that a broker is not installed and is left out."""
    click.echo(f"godwit: {missing}", err=True)
    sys.exit(EXIT_NOT_JUDGED)


def say_again(context: click.Context, seed: int) -> str:
    """The command that runs the same plan: the given options, and the seed."""
    words = ["godwit", "verify"]
    for option in context.command.params:
        name = str(option.name)
        if name in _NOT_OF_THE_PLAN or context.get_parameter_source(name) != ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            words += [option.opts[0], f"{each:.15g}" if isinstance(each, float) else _without_secret(str(each))]
    return shlex.join([*words, "--seed", str(seed)])


def _without_secret(word: str) -> str:
    """A setting for reports, which others read: of a secret only the key."""
    key, is_setting, _ = word.partition("=")
    return f"{key}=(secret)" if is_setting and key in OPTIONS and OPTIONS[key].is_secret else word


def _report(run: VerifyRun, again: str, json_file: Path | None, html_file: Path | None) -> Verdict:
    verdict = build_verdict(run)
    print_verdict(verdict, Console(), again)
    document = build_document(run, verdict, again)
    if json_file is not None:
        write_json(document, json_file)
    if html_file is not None:
        html_file.parent.mkdir(parents=True, exist_ok=True)
        html_file.write_text(build_page(document), encoding="utf-8")
    return verdict


def _choose_broker(url: str | None, other: str | None, settings: tuple[str, ...]) -> Broker:
    if other is not None:
        return OTHERS[other]()
    return GodwitBroker(url, settings=dict(setting.partition("=")[::2] for setting in settings))


def _choose_fault_kinds(fault_kinds: tuple[str, ...], without: tuple[str, ...], is_here: bool) -> frozenset[FaultKind]:
    if "none" in fault_kinds:
        return frozenset()
    chosen = frozenset(FaultKind(fault_kind) for fault_kind in fault_kinds) if fault_kinds else frozenset(FaultKind)
    return chosen - {FaultKind(fault_kind) for fault_kind in without} - (frozenset() if is_here else OF_NODE)
