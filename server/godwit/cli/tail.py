"""`godwit tail PATTERN`: prints messages as they are published, until interrupted; then it prints the command that
continues.

Messages go to standard output, everything else to standard error. lines.py formats them.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import CommandRefused, ConfigInvalid, GodwitError, PositionInvalid, SessionClosed
from ..model import Message, Position
from ..subject import check_pattern, check_subject, is_pattern
from ..words import printable
from .client_options import (
    check_selector,
    client_options,
    explain,
    make_client,
    read_ca_file,
    read_token,
    show_warnings,
    translate_mqtt,
)
from .lines import write_json, write_pretty

if TYPE_CHECKING:
    from ..client import PositionFile, ResumePoint, Subscription

COUNT_MAX = 0xFFFF_FFFF
POSITIONS_MAX = 16  # in the command that continues: the resume token alone may repeat the messages of a second
_DATE_OR_POSITION = re.compile(r"\d{4}-\d\d(-.*)?|\d+(\.\d+)?")
"""Texts passed as a resume token by mistake: a date, a time, a position."""


@click.command()
@client_options
@click.argument("pattern")
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object per line, as in the JSON protocol.")
@click.option("--since", metavar="TOKEN", help="Continue a pattern after this resume token.")
@click.option("--after", multiple=True, metavar="[SUBJECT=]POSITION", help="Continue after this position. Repeatable.")
@click.option(
    "--last",
    type=click.IntRange(1, COUNT_MAX),
    metavar="N",
    help="Start with the last N kept messages of each subject.",
)
@click.option(
    "--on-gap",
    type=click.Choice(["snapshot", "oldest"]),
    default="snapshot",
    help="After a gap continue with the snapshot (default) or with the oldest kept message.",
)
@click.option("--no-snapshot", is_flag=True, help="Print live messages only.")
@click.option(
    "--conflate-ms",
    type=click.IntRange(1, COUNT_MAX),
    metavar="MS",
    help="Print at most one merged message per subject in this interval.",
)
@click.option(
    "--positions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Resume from this file, and save positions to it.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N messages.")
def tail(servers: tuple[str, ...], token_file: Path | None, **given: Any) -> None:
    """Print the messages of PATTERN as they are published."""
    show_warnings()
    command = Continuation(servers, token_file, read_ca_file())
    asyncio.run(run_tail(servers, read_token(token_file), command, **given))


@dataclass(frozen=True, slots=True)
class Continuation:
    """The options of this `tail` that the command to continue repeats."""

    servers: tuple[str, ...] = ()
    token_file: Path | None = None
    ca_file: Path | None = None

    def describe(self, pattern: str, stand: ResumePoint) -> str:
        """The command, quoted for a shell; empty if there is no position yet."""
        if stand.since is not None:
            recent = stand.beyond_resume_token
            beyond = recent.items() if len(recent) <= POSITIONS_MAX else ()
            where = ["--since", stand.since, *(f"--after={subject}={position}" for subject, position in beyond)]
        elif pattern in stand.after:
            where = ["--after", str(stand.after[pattern])]
        else:
            return ""
        words = [word for server in self.servers for word in ("--server", server)]
        files = (("--token-file", self.token_file), ("--ca-file", self.ca_file))
        words += [word for option, file in files if file is not None for word in (option, str(file))]
        return shlex.join(["godwit", "tail", *words, pattern, *where])


async def run_tail(
    servers: tuple[str, ...],
    token: str | None,
    command: Continuation,
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
    stand = read_stand(pattern, since, after)
    for warning in list_doubts(pattern, since):
        click.echo(f"godwit: {printable(warning)}", err=True)
    async with make_client(servers, token, _open_positions(positions)) as client:
        subscription = client.subscribe(
            pattern,
            after=stand or None,
            last=last,
            snapshot=not no_snapshot,
            on_gap=on_gap,
            conflate_ms=conflate_ms,
        )
        showing = asyncio.create_task(_show(subscription, write_json if is_json else write_pretty, count))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` leaves SIGHUP
                asyncio.get_running_loop().add_signal_handler(number, showing.cancel)
        try:
            await showing
        except asyncio.CancelledError:
            pass
        except (CommandRefused, SessionClosed) as error:
            raise GodwitError(explain(error, token)) from error
        subscription.handled()
        if not count and not positions and (words := command.describe(pattern, subscription.resume_point)):
            click.echo(f"godwit: continue from here with: {printable(words)}", err=True)


def list_doubts(pattern: str, since: str | None) -> list[str]:
    """Options that are valid, but probably a mistake."""
    doubts = []
    if (meant := translate_mqtt(pattern)) != pattern:
        doubts.append(f"{pattern} is one subject; did you mean {shlex.quote(meant)}?")
    if since is not None and _DATE_OR_POSITION.fullmatch(since):
        doubts.append(f"--since {since}: this looks like a date or a position, not like a resume token")
    return doubts


def _open_positions(path: Path | None) -> PositionFile | None:
    from ..client import PositionFile

    if path is None:
        return None
    if not path.parent.is_dir():
        raise ConfigInvalid("--positions", str(path), f"cannot be written: the folder {path.parent} does not exist")
    try:
        return PositionFile(path)
    except OSError as error:
        raise ConfigInvalid("--positions", str(path), f"cannot be read: {error.strerror}") from error


async def _show(subscription: Subscription, write: Any, count: int | None) -> None:
    async for item in subscription.items():
        write(item)
        if isinstance(item, Message) and count is not None:
            count -= 1
            if count == 0:
                return


def read_stand(pattern: str, since: str | None, after: tuple[str, ...]) -> ResumePoint:
    """Where to continue: a resume token, positions by subject, or one position of a single subject; raises ConfigInvalid."""
    from ..client import ResumePoint

    is_many = is_pattern(check_selector("PATTERN", pattern, check_pattern))
    positions: dict[str, Position] = {}
    for text in after:
        subject, equals, position = text.rpartition("=")
        if is_many and not equals:
            raise ConfigInvalid("--after", text, "must be SUBJECT=POSITION for a pattern")
        if equals:
            check_selector("--after", subject, check_subject)
        try:
            positions[subject if equals else pattern] = Position.parse(position)
        except PositionInvalid as error:
            raise ConfigInvalid(
                "--after", position, "is not a valid position", hint="expected one such as 7.42"
            ) from error
    if since is not None and not is_many:
        raise ConfigInvalid("--since", since, "is for patterns; continue a single subject with --after")
    return ResumePoint(positions, since)
