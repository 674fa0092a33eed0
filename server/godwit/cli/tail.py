"""`godwit tail PATTERN`: what is published there, live, until interrupted; it says how to go on from where it stopped.

Messages go to standard output, everything about them to standard error. Owns no form of a message but its lines (lines.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import ConfigInvalid, PositionInvalid, SubjectInvalid
from ..model import Message, Position
from ..subject import check_pattern, is_pattern
from .client_options import client_options, read_ca_file, read_servers, read_token
from .lines import write_json, write_pretty

if TYPE_CHECKING:
    from ..client import ResumePoint, Subscription


@click.command()
@client_options
@click.argument("pattern")
@click.option("--json", "is_json", is_flag=True, help="One JSON object a line, as the JSON wire writes it.")
@click.option("--since", metavar="TOKEN", help="A pattern: go on after this resume token.")
@click.option(
    "--after", multiple=True, metavar="[SUBJECT=]POSITION", help="Go on after this position; may be repeated."
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Begin with the last N kept messages.")
@click.option(
    "--on-gap",
    type=click.Choice(["snapshot", "oldest"]),
    default="snapshot",
    help="Where messages are gone: go on with the newest (snapshot, the default), or with the oldest that is kept.",
)
@click.option("--no-snapshot", is_flag=True, help="Live messages only.")
@click.option("--conflate-ms", type=click.IntRange(min=0), metavar="MS", help="One merged message a window.")
@click.option(
    "--positions", type=click.Path(path_type=Path), metavar="FILE", help="Go on where this file says, and keep it."
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
def tail(servers: tuple[str, ...], token_file: Path | None, **given: Any) -> None:
    """Show what is published on PATTERN, live."""
    logging.basicConfig(format="godwit: %(message)s", level=logging.INFO, stream=sys.stderr)
    asyncio.run(run_tail(read_servers(servers), read_token(token_file), **given))


async def run_tail(
    servers: list[str | tuple[str, float]],
    token: str | None,
    *,
    pattern: str,
    is_json: bool,
    since: str | None,
    after: tuple[str, ...],
    last: int | None,
    on_gap: Literal["snapshot", "oldest"],
    no_snapshot: bool,
    conflate_ms: int | None,
    positions: Path | None,
    count: int | None,
) -> None:
    from ..client import Client, PositionFile

    stand = read_stand(pattern, since, after)
    kept = PositionFile(positions) if positions else None
    async with Client(servers, token=token, positions=kept, ca_file=read_ca_file()) as client:
        subscription = client.subscribe(
            pattern,
            after=stand or None,
            last=last,
            snapshot=not no_snapshot,
            on_gap=on_gap,
            conflate_ms=conflate_ms,
        )
        showing = asyncio.create_task(_show(subscription, write_json if is_json else write_pretty, count))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, showing.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await showing
        subscription.handled()
        if not count and not positions:
            _say_how_to_go_on(pattern, subscription.resume_point)


async def _show(subscription: Subscription, write: Any, count: int | None) -> None:
    async for item in subscription.items():
        write(item)
        if isinstance(item, Message) and count is not None:
            count -= 1
            if count == 0:
                return


def read_stand(pattern: str, since: str | None, after: tuple[str, ...]) -> ResumePoint:
    """Where to go on: a resume token, positions by subject, or one position of a single subject; raises ConfigInvalid."""
    from ..client import ResumePoint

    try:
        is_many = is_pattern(check_pattern(pattern))
        positions: dict[str, Position] = {}
        for text in after:
            subject, equals, position = text.rpartition("=")
            if is_many and not equals:
                raise ConfigInvalid("--after", text, "must be SUBJECT=POSITION for a pattern")
            positions[subject if equals else pattern] = Position.parse(position)
    except SubjectInvalid as error:
        raise ConfigInvalid("PATTERN", pattern, error.reason) from error
    except PositionInvalid as error:
        raise ConfigInvalid("--after", error.text, "is no position", hint="such as 7.42") from error
    if since is not None and not is_many:
        raise ConfigInvalid("--since", since, "is for a pattern; a single subject goes on with --after")
    return ResumePoint(positions, since)


def _say_how_to_go_on(pattern: str, stand: ResumePoint) -> None:
    if stand.since is not None:
        where = f"--since {shlex.quote(stand.since)}"
    elif pattern in stand.after:
        where = f"--after {stand.after[pattern]}"
    else:
        return
    click.echo(f"godwit: go on from here with: godwit tail {shlex.quote(pattern)} {where}", err=True)
