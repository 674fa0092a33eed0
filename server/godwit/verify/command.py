"""The command `godwit verify`: draws the plan, runs it, says the verdict, writes the reports. Exit code 1 when a promise was broken."""

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
from .plan import OF_NODE, ROOT, Harm, Kind, Scale, make_plan
from .progress import Progress
from .report import build_document, build_page, write_json
from .scene import Scene, run_scene
from .verdict import Verdict, build_verdict, print_verdict

EXIT_BROKEN = 1
EXIT_NOT_JUDGED = 2
_NOT_OF_THE_PLAN = ("seed", "json_file", "html_file")
"""Options that a run made again is given anew."""


@click.command()
@click.option("--minutes", type=click.FloatRange(0.1, 24 * 60), default=1.0, show_default=True, help="How long.")
@click.option("--seconds", type=click.FloatRange(5, 86_400), default=None, help="The same in seconds.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=None, help="Repeat the plan of this seed.")
@click.option("--url", metavar="URL", default=None, help="Judge the node there, instead of one that is started.")
@click.option("--broker", "other", type=click.Choice(list(OTHERS)), default=None, help="Judge this one instead.")
@click.option("--subscribers", type=click.IntRange(1, 5_000), default=200, show_default=True)
@click.option("--publishers", type=click.IntRange(1, 200), default=6, show_default=True)
@click.option("--rate", type=click.FloatRange(1, 100_000), default=150.0, show_default=True, help="Publishes a second.")
@click.option(
    "--fault",
    "harms",
    multiple=True,
    type=click.Choice([*(harm.value for harm in Harm), "none"]),
    help="Only this; may be repeated.",
)
@click.option(
    "--exclude-fault",
    "without",
    multiple=True,
    type=click.Choice([harm.value for harm in Harm]),
    help="Inject every fault except this one. Repeatable.",
)
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice([kind.value for kind in Kind]), help="Only these subscribers."
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Configure the node that is started.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), default=None, help="Write the report as JSON.")
@click.option("--html", "html_file", type=click.Path(path_type=Path), default=None, help="Write the report as a page.")
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
    harms: tuple[str, ...],
    without: tuple[str, ...],
    kinds: tuple[str, ...],
    settings: tuple[str, ...],
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Prove delivery: publish and subscribe in every way while everything breaks, and compare with a ledger.

    In order, nothing lost, nothing twice, every gap told and counted: the exit code is 1 when any of it was not so, and the
    shortest history that shows it is printed. It is 2 when nothing could be judged.
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
    plan = make_plan(drawn, scale, chosen & broker.kinds, _choose_harms(harms, without, is_here), root)
    with Progress(Console(stderr=True)) as progress:
        try:
            scene = asyncio.run(run_scene(plan, broker, progress))
        except* BrokerMissing as missing:
            _leave_out(missing.exceptions[0])
        except* GodwitError as failed:
            raise failed.exceptions[0] from None
    verdict = _report(scene, say_again(context, plan.seed), json_file, html_file)
    sys.exit(EXIT_BROKEN if verdict.is_broken else 0)


def _leave_out(missing: BaseException) -> NoReturn:
    """A broker that is not installed has broken no promise."""
    click.echo(f"godwit: {missing}", err=True)
    sys.exit(EXIT_NOT_JUDGED)


def say_again(context: click.Context, seed: int) -> str:
    """The command that draws the same plan: what was given, and the seed."""
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
    """A report is shown to others: of a setting that is a secret it holds the key alone."""
    key, is_setting, _ = word.partition("=")
    return f"{key}=(secret)" if is_setting and key in OPTIONS and OPTIONS[key].is_secret else word


def _report(scene: Scene, again: str, json_file: Path | None, html_file: Path | None) -> Verdict:
    verdict = build_verdict(scene)
    print_verdict(verdict, Console(), again)
    document = build_document(scene, verdict, again)
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


def _choose_harms(harms: tuple[str, ...], without: tuple[str, ...], is_here: bool) -> frozenset[Harm]:
    if "none" in harms:
        return frozenset()
    chosen = frozenset(Harm(harm) for harm in harms) if harms else frozenset(Harm)
    return chosen - {Harm(harm) for harm in without} - (frozenset() if is_here else OF_NODE)
