"""`godwit inbox`: the newest items of a receiver, and with --follow new items and changes, as JSON lines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from .dispatch import server_options
from .send import DispatchUnreachable, call, find_dispatch

WAIT_S = 25
RENEW_MS = 60_000
PAUSE_S, PAUSE_S_MAX = 0.2, 10.0


class Reader:
    """A receiver's inbox, with a token that is renewed before it expires."""

    def __init__(self, url: str, key: str, receiver: str) -> None:
        self._url, self._key, self._receiver = url, key, receiver
        self._token, self._expires_ms = "", 0.0

    def get(self, query: str) -> Any:
        """The answer of `GET /v1/inbox`; raises SendFailed."""
        if time.time() * 1_000 > self._expires_ms - RENEW_MS:
            answer = call(self._url, self._key, "POST", f"/v1/receivers/{quote(self._receiver, safe='')}/token", {})
            self._token, self._expires_ms = answer["token"], answer["expires_ms"]
        return call(self._url, self._token, "GET", f"/v1/inbox{query}")


@click.command()
@click.argument("receiver")
@click.option("--limit", type=click.IntRange(1, 50), default=20, help="Show at most this many items (20).")
@click.option("--follow", is_flag=True, help="Also show new and changed items as they arrive.")
@server_options
def inbox(receiver: str, limit: int, follow: bool, server: str | None, key_file: Path | None) -> None:
    """Show the newest items of a receiver's inbox, oldest first."""
    reader = Reader(*find_dispatch(server, key_file), receiver)
    page = reader.get("/counts")
    position = page["head"]
    shown = reader.get(f"?before={next_position(position)}&limit={limit}")
    for item in reversed(shown["items"]):
        click.echo(json.dumps(item))
    pauses: Iterator[float] = iter(())
    while follow:
        try:
            page = reader.get(f"?after={position}&wait={WAIT_S}")
        except DispatchUnreachable as error:  # the position stays: what comes meanwhile is shown afterwards
            wait_s = next(pauses, 0.0)
            if not wait_s:
                click.echo(f"godwit: {error}; trying again", err=True)
                pauses = list_pauses()
            time.sleep(wait_s)
            continue
        pauses = iter(())
        for item in page["items"]:
            click.echo(json.dumps(item))
        position = page["head"] if page["complete"] else page["items"][-1]["at"]


def list_pauses() -> Iterator[float]:
    """How long each further try waits, in seconds."""
    wait_s = PAUSE_S
    while True:
        yield wait_s
        wait_s = min(2 * wait_s, PAUSE_S_MAX)


def next_position(position: str) -> str:
    """The position after this one, so that `before` includes this one."""
    epoch, _, seq = position.partition(".")
    return f"{epoch}.{int(seq) + 1}"
