"""`godwit publish SUBJECT [CONTENT]`: publishes one message, or each line of standard input, and prints the positions.

Lines are published in order, with many unacknowledged at a time; acknowledgements are printed in the same order.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import ConfigInvalid, GodwitError
from ..model import Ack, Kind, Published
from ..subject import check_subject
from ..words import counted, printable
from .client_options import check_selector, client_options, explain, make_client, read_token, show_warnings

if TYPE_CHECKING:
    from ..client import Client

IN_FLIGHT_MAX = 400
IN_FLIGHT_BYTES_MAX = 2 * 1_048_576
"""JSON escapes make this six times as much at most, which is below the client's publish_queue_bytes_max."""
READ_BYTES = 65_536
LINE_BYTES_MAX = 64 * 1_048_576


@click.command()
@client_options
@click.argument("subject")
@click.argument("content", required=False)
@click.option("--json", "kind", flag_value=Kind.JSON.value, help="Publish the content as JSON; refuse anything else.")
@click.option(
    "--text", "kind", flag_value=Kind.TEXT.value, help="Publish the content as text, even if it is valid JSON."
)
@click.option("--bytes", "kind", flag_value=Kind.BYTES.value, help="Publish the content as bytes.")
@click.option(
    "--retain/--no-retain", default=None, help="Make the message the subject's snapshot, or not. Default: retain."
)
@click.option(
    "--merge/--no-merge",
    default=None,
    help="Merge the members of a JSON object into the snapshot; refuse anything else.",
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=VALUE",
    help="Add a text field to the message; NAME alone removes it from the snapshot. Repeatable.",
)
@click.option("--standard", is_flag=True, help="Deliver at most once: no position, not kept.")
@click.option("--key", help="Idempotency key of one message; a second publish with it has no effect.")
@click.option("--reply-to", metavar="SUBJECT", help="Subject on which replies are expected.")
@click.option(
    "--ack", type=click.Choice([level.value for level in Ack]), help="Level of acknowledgement to wait for (cached)."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    metavar="SECONDS",
    help="Seconds to wait for an acknowledgement (10).",
)
@click.option("--quiet", is_flag=True, help="Do not print acknowledgements.")
def publish(servers: tuple[str, ...], token_file: Path | None, **given: Any) -> None:
    """Publish CONTENT on SUBJECT, or each line of standard input. Valid JSON is sent as JSON, other content as text.

    If standard input is empty, nothing is published: a warning says so, and the exit code is 0.
    """
    show_warnings()
    raise SystemExit(asyncio.run(publish_all(servers, read_token(token_file), **given)))


async def publish_all(
    servers: tuple[str, ...],
    token: str | None,
    *,
    subject: str,
    content: str | None,
    kind: str | None,
    timeout_s: float,
    quiet: bool,
    standard: bool,
    retain: bool | None,
    merge: bool | None,
    fields: tuple[str, ...],
    key: str | None,
    reply_to: str | None,
    ack: str | None,
) -> int:
    if key is not None and content is None:
        raise click.UsageError("--key is for one message, and standard input may hold many")
    if merge:
        if kind not in (None, Kind.JSON):
            raise click.UsageError(f"--merge is for JSON objects, and --{kind} says otherwise")
        kind = Kind.JSON.value  # mistyped JSON would replace the snapshot as text
    check_selector("SUBJECT", subject, check_subject)
    if reply_to is not None:
        check_selector("--reply-to", reply_to, check_subject)
    if key is not None:
        _check_key(key)
    options = {
        "retain": retain,
        "merge": merge,
        "fields": read_fields(fields),
        "key": key,
        "reply_to": reply_to,
        "ack": Ack(ack) if ack else None,
        "guaranteed": not standard,
    }
    if content == "-":
        _warn("CONTENT - is published as text; to publish the lines of standard input, leave CONTENT out")
    async with make_client(servers, token) as client:
        sender = _Sender(client, subject, kind, timeout_s, options)
        sending = asyncio.create_task(sender.send_all(_list_contents(content)))
        try:
            failed = await _print_answers(sender.pending, subject, quiet, token)
            await sending
        finally:
            sending.cancel()
            unanswered = await sender.give_up()
            if unanswered and isinstance(sys.exception(), asyncio.CancelledError):
                said = counted(unanswered, "message has", "messages have")
                _warn(f"{subject}: {said} no answer yet, and may have been published")
        if not sender.count:
            _warn("standard input was empty: nothing was published")
    return 1 if failed else 0


def _check_key(key: str) -> None:
    from ..client.arguments import KEY_BYTES_MAX, check_text

    try:
        check_text("it", key, KEY_BYTES_MAX)
    except ValueError as error:
        raise ConfigInvalid("--key", key, str(error).removeprefix("it ")) from None


def read_fields(given: tuple[str, ...]) -> dict[str, str | None]:
    """The fields of `--field NAME=VALUE`; without `=` the field is removed. Raises ConfigInvalid."""
    from ..client.arguments import fields_of

    fields: dict[str, str | None] = {}
    for text in given:
        name, is_set, value = text.partition("=")
        if name in fields:
            raise ConfigInvalid("--field", text, f"names {name} a second time")
        fields[name] = value if is_set else None
        try:
            fields_of({name: fields[name]})
        except ValueError as error:
            raise ConfigInvalid("--field", text, f"must be NAME=VALUE or NAME: {error}") from None
    return fields


class _Sender:
    """Publishes contents in order, with many unacknowledged at a time; `pending` has their answers in the same order, then None."""

    def __init__(
        self, client: Client, subject: str, kind: str | None, timeout_s: float, options: dict[str, Any]
    ) -> None:
        self.pending: asyncio.Queue[asyncio.Task[Published] | None] = asyncio.Queue(IN_FLIGHT_MAX)
        self.count = 0
        self._client, self._subject, self._kind = client, subject, kind
        self._timeout_s, self._options = timeout_s, options
        self._tasks: dict[asyncio.Task[Published], int] = {}
        self._bytes, self._has_room = 0, asyncio.Event()
        self._has_warned = False

    async def send_all(self, contents: AsyncIterator[bytes]) -> None:
        try:
            async for content in contents:
                self.count += 1
                await self._wait_for_room(len(content))
                task = asyncio.create_task(self._send(content))
                self._tasks[task] = len(content)
                self._bytes += len(content)
                task.add_done_callback(self._done)
                await self.pending.put(task)
        except Exception:
            await self.pending.put(None)
            raise
        await self.pending.put(None)

    async def _wait_for_room(self, size: int) -> None:
        """Returns once the unanswered contents leave room for this one; one that is larger than all room goes alone."""
        while self._bytes and self._bytes + size > IN_FLIGHT_BYTES_MAX:
            self._has_room.clear()
            await self._has_room.wait()

    def _done(self, task: asyncio.Task[Published]) -> None:
        self._bytes -= self._tasks.pop(task)
        self._has_room.set()
        if not task.cancelled():
            task.exception()  # marks it as retrieved, even if no task waits for it any more

    async def give_up(self) -> int:
        """Stop waiting for answers; returns how many are missing."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    async def _send(self, piece: bytes) -> Published:
        content = read_content(piece, self._kind)
        if self._options["merge"] and not content.lstrip().startswith("{"):
            raise GodwitError("the content is not a JSON object, and --merge was asked for")
        looks_like_json = type(content) is str and content[:1] in ("{", "[")  # JsonText is a str, too
        if self._kind is None and looks_like_json and not self._has_warned:
            self._has_warned = True
            _warn(f"{self._subject}: content that begins with {content[0]} is not valid JSON: it is published as text")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._client.publish(self._subject, content, **self._options)
        except TimeoutError:
            state = f"it is not connected: {self._client.loss or 'no server answered'}"
            state = "it is connected" if self._client.is_connected else state
            raise GodwitError(f"no answer in {self._timeout_s:g} s; {state}") from None


async def _print_answers(
    pending: asyncio.Queue[asyncio.Task[Published] | None], subject: str, quiet: bool, token: str | None
) -> int:
    failed = 0
    while (task := await pending.get()) is not None:
        try:
            answer = await task
        except GodwitError as error:
            failed += 1
            _warn(f"{subject}: {explain(error, token)}")
            continue
        if not quiet:
            click.echo(
                f"{printable(subject)} {answer.position or 'standard'}{' duplicate' if answer.is_duplicate else ''}"
            )
    return failed


def _warn(sentence: str) -> None:
    click.echo(f"godwit: {printable(sentence)}", err=True)


async def _list_contents(content: str | None) -> AsyncIterator[bytes]:
    if content is not None:
        yield content.encode()
        return
    rest, number = bytearray(), 1
    while piece := await _read_input():
        first, *lines = piece.split(b"\n")
        rest += first
        for line in lines:
            yield bytes(rest).removesuffix(b"\r")
            rest, number = bytearray(line), number + 1
        if len(rest) > LINE_BYTES_MAX:
            raise GodwitError(f"line {number} of standard input is longer than {LINE_BYTES_MAX} bytes")
    if rest:
        yield bytes(rest)


async def _read_input() -> bytes:
    """The next bytes of standard input. A read that may block never runs on a thread, because ^C could not end it."""
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
    ready = asyncio.Event()
    try:
        loop.add_reader(number, ready.set)
    except PermissionError:  # a regular file, which never waits
        await asyncio.sleep(0)  # else ^C would wait for the end of a line
    else:
        try:
            await ready.wait()
        finally:
            loop.remove_reader(number)
    try:
        return os.read(number, READ_BYTES)
    except OSError as error:
        error.filename = "standard input"
        raise


def read_content(content: bytes, kind: str | None) -> Any:
    """Content for the client: JsonText, str or bytes; raises GodwitError if it does not match the option."""
    from ..client import JsonText
    from ..client.codec.command import check_json

    if kind == Kind.BYTES:
        return content
    try:
        text = content.decode()
    except UnicodeDecodeError:
        if kind is None:
            return content
        raise GodwitError(f"the content is not UTF-8, and {kind} was asked for") from None
    if kind == Kind.TEXT:
        return text
    try:
        check_json(text)
    except RecursionError:
        raise GodwitError("the content is JSON that nests too deeply; --text publishes it as text") from None
    except ValueError as error:
        if kind is None:
            return text
        raise GodwitError(f"the content is not JSON: {error}") from None
    return JsonText(text)
