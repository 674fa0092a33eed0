"""The announcer knows who is connected, and when it knows everybody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from godwit.client import Client, Interest, Message
from godwit.dispatch.channels.inbox.announcer import HEADS_AT_ONCE, LAST, Announcer
from godwit.dispatch.model import Head
from godwit.dispatch.pure.subjects import head_subject, inbox_subject
from godwit.dispatch.tokens import SigningKey
from tests.dispatch.conftest import Running

DEADLINE_S = 60
CONNECTED = 700
"""Receivers: a node reports 256 at a time."""


async def make_token() -> str:
    return ""


async def read_nothing(owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
    return {}


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


async def test_the_heads_of_all_who_are_connected_are_read_many_at_a_time(dispatch: Running, tmp_path: Path) -> None:
    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    names, reads = {f"user:{number}" for number in range(CONNECTED)}, list[int]()

    async def read_all(owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
        reads.append(len(owners))
        return {owner: Head(1, 7, 2, 1) for owner in owners if owner[1] != "user:0"}

    async with asyncio.timeout(DEADLINE_S), Client(dispatch.node_url, token=signing.sign_service) as client:
        held = [client.subscribe(head_subject("shop", name)) for name in names]
        for subscription in held:
            await subscription.joined()
        announcer = Announcer(dispatch.node_url, signing.sign_service, read_all)
        task = asyncio.create_task(announcer.run())
        for subscription, name in zip(held, names, strict=True):
            if name != "user:0":
                message = await anext(aiter(subscription))
                assert isinstance(message, Message) and message.content == b'{"head":"1.7","unread":2,"unseen":1}'
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert sum(reads) == CONNECTED and max(reads) <= HEADS_AT_ONCE and len(reads) < CONNECTED / 100
