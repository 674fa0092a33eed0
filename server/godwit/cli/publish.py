"""`godwit publish SUBJECT [CONTENT]`: one message, or one a line of standard input, each shown with its position.

Lines are published in their order, many in flight; the acknowledgements are printed in the same order.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import GodwitError
from ..model import Ack, Kind, Published
from ..subject import check_subject
from ..words import counted, printable
from .client_options import check_selector, client_options, explain, make_client, read_token, show_warnings

if TYPE_CHECKING:
    from ..client import Client

IN_FLIGHT_MAX = 400
READ_BYTES = 65_536


@click.command()
@client_options
@click.argument("subject")
@click.argument("content", required=False)
@click.option("--json", "kind", flag_value=Kind.JSON.value, help="The content is JSON, else it is refused.")
@click.option("--text", "kind", flag_value=Kind.TEXT.value, help="The content is text, also where it could be JSON.")
@click.option("--bytes", "kind", flag_value=Kind.BYTES.value, help="The content is bytes, as they come.")
@click.option("--retain/--no-retain", default=None, help="Whether it becomes the subject's snapshot (it does).")
@click.option(
    "--merge/--no-merge",
    default=None,
    help="Merge the members of a JSON object into the snapshot; what is not JSON is refused.",
)
@click.option("--standard", is_flag=True, help="Not guaranteed: no position, kept nowhere.")
@click.option("--key", help="Idempotency key, for one message: what was published under it is not published again.")
@click.option("--reply-to", metavar="SUBJECT", help="Where answers are expected.")
@click.option("--ack", type=click.Choice([level.value for level in Ack]), help="What to wait for (cached).")
@click.option("--timeout", "timeout_s", default=10.0, metavar="SECONDS", help="How long to wait for an answer (10).")
@click.option("--quiet", is_flag=True, help="Print no acknowledgements.")
def publish(servers: tuple[str, ...], token_file: Path | None, **given: Any) -> None:
    """Publish CONTENT on SUBJECT, or each line of standard input; what is JSON is sent as JSON, else as text."""
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
    key: str | None,
    reply_to: str | None,
    ack: str | None,
) -> int:
    if key is not None and content is None:
        raise click.UsageError("--key is for one message, and standard input may hold many")
    if merge:
        if kind not in (None, Kind.JSON):
            raise click.UsageError(f"--merge is for JSON objects, and --{kind} says otherwise")
        kind = Kind.JSON.value  # what is mistyped would replace the snapshot as text
    check_selector("SUBJECT", subject, check_subject)
    options = {
        "retain": retain,
        "merge": merge,
        "key": key,
        "reply_to": reply_to,
        "ack": Ack(ack) if ack else None,
        "guaranteed": not standard,
    }
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


class _Sender:
    """Publishes contents in their order, many in flight; `pending` holds their answers in the same order, then None."""

    def __init__(
        self, client: Client, subject: str, kind: str | None, timeout_s: float, options: dict[str, Any]
    ) -> None:
        self.pending: asyncio.Queue[asyncio.Task[Published] | None] = asyncio.Queue(IN_FLIGHT_MAX)
        self.count = 0
        self._client, self._subject, self._kind = client, subject, kind
        self._timeout_s, self._options = timeout_s, options
        self._tasks: set[asyncio.Task[Published]] = set()
        self._has_warned = False

    async def send_all(self, contents: AsyncIterator[bytes]) -> None:
        try:
            async for content in contents:
                self.count += 1
                task = asyncio.create_task(self._send(content))
                self._tasks.add(task)
                task.add_done_callback(self._done)
                await self.pending.put(task)
        except Exception:
            await self.pending.put(None)
            raise
        await self.pending.put(None)

    def _done(self, task: asyncio.Task[Published]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen, also where nobody waits for it any more

    async def give_up(self) -> int:
        """Waits for no more answers; returns how many are missing."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    async def _send(self, piece: bytes) -> Published:
        content = read_content(piece, self._kind)
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
    rest = b""
    while piece := await _read_input():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def _read_input() -> bytes:
    """The next bytes of standard input. A read that may wait is never done in a thread, which ^C could not end."""
    loop, number = asyncio.get_running_loop(), sys.stdin.fileno()
    ready = asyncio.Event()
    try:
        loop.add_reader(number, ready.set)
    except PermissionError:  # a regular file, which never waits
        pass
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
    """Content as the client takes it: JsonText, str or bytes; raises GodwitError where it is not what was said."""
    from ..client import JsonText

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
        json.loads(text)
    except RecursionError:
        raise GodwitError("the content is JSON that nests too deeply; --text publishes it as text") from None
    except ValueError as error:
        if kind is None:
            return text
        raise GodwitError(f"the content is not JSON: {error}") from None
    return JsonText(text)
