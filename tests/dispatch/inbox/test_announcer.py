"""The announcer knows who is connected, and when it knows everybody."""

from __future__ import annotations

import asyncio
from pathlib import Path

from godwit.client import Client, Interest
from godwit.dispatch.channels.inbox.announcer import LAST, Announcer
from godwit.dispatch.model import Head
from godwit.dispatch.pure.subjects import head_subject, inbox_subject
from godwit.dispatch.tokens import SigningKey
from tests.dispatch.conftest import Running

DEADLINE_S = 60
CONNECTED = 700
"""Receivers: a node reports 256 at a time."""


async def make_token() -> str:
    return ""


async def read_nothing(tenant: str, receiver: str) -> Head | None:
    return None


NAMES = ("~", "~~", "zz", "\U0010ffff")


def test_who_is_connected_is_known_when_the_node_reported_the_last_subject_however_long_that_takes() -> None:
    told: list[bool] = []
    announcer = Announcer("ws://127.0.0.1:9", make_token, read_nothing, on_complete=told.append)
    for number in range(1_000):  # four parts of a node's report
        announcer._take_interest(Interest(inbox_subject("shop", f"user:{number}"), True))
        assert told == []
    last = max(inbox_subject(tenant, name) for tenant in NAMES for name in NAMES)
    assert last < LAST and head_subject("~", "~") < LAST, "names come before it, in the node's order"
    announcer._take_interest(Interest(LAST, True))
    assert told == [True] and len(announcer.list_connected("shop")) == 1_000


async def test_everybody_who_was_connected_is_known_once_the_announcer_says_so(
    dispatch: Running, tmp_path: Path
) -> None:
    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    names = {f"user:{number}" for number in range(CONNECTED)}
    known: list[tuple[bool, set[str]]] = []
    is_complete = asyncio.Event()

    def note(complete: bool) -> None:
        known.append((complete, {name for _, name in announcer.list_connected("shop")}))
        if complete:
            is_complete.set()

    announcer = Announcer(dispatch.node_url, signing.sign_service, read_nothing, on_complete=note)
    async with asyncio.timeout(DEADLINE_S), Client(dispatch.node_url, token=signing.sign_service) as client:
        held = [client.subscribe(inbox_subject("shop", name)) for name in names]
        for subscription in held:
            await subscription.joined()
        task = asyncio.create_task(announcer.run())
        await is_complete.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert known == [(False, set()), (True, names)]
