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
from .client_options import client_options, read_ca_file, read_servers, read_token

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
@click.option("--standard", is_flag=True, help="Not guaranteed: no position, kept nowhere.")
@click.option("--key", help="Idempotency key, for one message: what was published under it is not published again.")
@click.option("--reply-to", metavar="SUBJECT", help="Where answers are expected.")
@click.option("--ack", type=click.Choice([level.value for level in Ack]), help="What to wait for (cached).")
@click.option("--timeout", "timeout_s", default=10.0, metavar="SECONDS", help="How long to wait for an answer (10).")
@click.option("--quiet", is_flag=True, help="Print no acknowledgements.")
def publish(servers: tuple[str, ...], token_file: Path | None, **given: Any) -> None:
    """Publish CONTENT on SUBJECT, or each line of standard input; what is JSON is sent as JSON, else as text."""
    raise SystemExit(asyncio.run(publish_all(read_servers(servers), read_token(token_file), **given)))


async def publish_all(
    servers: list[str | tuple[str, float]],
    token: str | None,
    *,
    subject: str,
    content: str | None,
    kind: str | None,
    timeout_s: float,
    quiet: bool,
    standard: bool,
    retain: bool | None,
    key: str | None,
    reply_to: str | None,
    ack: str | None,
) -> int:
    from ..client import Client

    if key is not None and content is None:
        raise click.UsageError("--key is for one message, and standard input may hold many")
    options = {
        "retain": retain,
        "key": key,
        "reply_to": reply_to,
        "ack": Ack(ack) if ack else None,
        "guaranteed": not standard,
    }
    pending: asyncio.Queue[asyncio.Task[Published] | None] = asyncio.Queue(IN_FLIGHT_MAX)
    async with Client(servers, token=token, ca_file=read_ca_file()) as client:
        printer = asyncio.create_task(_print_answers(pending, subject, quiet))
        try:
            async for piece in _list_contents(content):
                send = _send(client, subject, read_content(piece, kind), timeout_s, options)
                await pending.put(asyncio.create_task(send))
        finally:
            await pending.put(None)
            failed = await printer
    return 1 if failed else 0


async def _send(client: Client, subject: str, content: Any, timeout_s: float, options: dict[str, Any]) -> Published:
    try:
        async with asyncio.timeout(timeout_s):
            return await client.publish(subject, content, **options)
    except TimeoutError:
        state = (
            "it is connected" if client.is_connected else f"it is not connected: {client.loss or 'no server answered'}"
        )
        raise GodwitError(f"no answer in {timeout_s:g} s; {state}") from None


async def _print_answers(pending: asyncio.Queue[asyncio.Task[Published] | None], subject: str, quiet: bool) -> int:
    failed = 0
    while (task := await pending.get()) is not None:
        try:
            answer = await task
        except GodwitError as error:
            failed += 1
            click.echo(f"godwit: {subject}: {error}", err=True)
            continue
        if not quiet:
            click.echo(f"{subject} {answer.position or 'standard'}{' duplicate' if answer.is_duplicate else ''}")
    return failed


async def _list_contents(content: str | None) -> AsyncIterator[bytes]:
    if content is not None:
        yield content.encode()
        return
    rest = b""
    while piece := await asyncio.to_thread(os.read, sys.stdin.fileno(), READ_BYTES):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


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
    except ValueError as error:
        if kind is None:
            return text
        raise GodwitError(f"the content is not JSON: {error}") from None
    return JsonText(text)
