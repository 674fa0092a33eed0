"""The announcer knows which receivers are connected, and when it knows all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from godwit.client import Client, Message, Published
from godwit.dispatch.channels.inbox.announcer import HEADS_AT_ONCE, HEADS_IN_FLIGHT_MAX, Announcer
from godwit.dispatch.model import Head, InboxItem
from godwit.dispatch.pure.subjects import head_subject, inbox_subject
from godwit.dispatch.tokens import SigningKey
from tests.dispatch.conftest import Running

DEADLINE_S = 60
CONNECTED = 700
"""Receivers: a node reports 256 at a time."""


async def read_nothing(owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
    return {}


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


async def test_the_heads_of_all_are_read_many_at_a_time_and_published_few_at_a_time(
    dispatch: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    names, reads = {f"user:{number}" for number in range(CONNECTED)}, list[int]()
    publish, in_flight, peaks = Client.publish, set[str](), list[int]()

    async def publish_counted(client: Client, subject: str, content: object, **more: Any) -> Published:
        in_flight.add(subject)
        peaks.append(len(in_flight))
        try:
            return await publish(client, subject, content, **more)
        finally:
            in_flight.discard(subject)

    monkeypatch.setattr(Client, "publish", publish_counted)

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
    assert len(peaks) == CONNECTED - 1 and 1 < max(peaks) <= HEADS_IN_FLIGHT_MAX
    assert sum(reads) == CONNECTED and max(reads) <= HEADS_AT_ONCE and len(reads) < CONNECTED / 100


async def test_that_nobody_is_connected_is_known_too(dispatch: Running, tmp_path: Path) -> None:
    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    is_complete = asyncio.Event()
    announcer = Announcer(
        dispatch.node_url,
        signing.sign_service,
        read_nothing,
        on_complete=lambda complete: is_complete.set() if complete else None,
    )
    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(announcer.run())
        await is_complete.wait()
        assert announcer.list_connected("default") == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_head_of_a_new_item_does_not_wait_for_those_of_a_restart(
    dispatch: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch of heads is held until the test lets it go; the receiver of the item is among the last to get its first head."""
    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    names = [f"user:{number}" for number in range(CONNECTED)]
    publish, published, may_go = Client.publish, list[str](), asyncio.Semaphore(HEADS_IN_FLIGHT_MAX)
    is_complete, has_item, changed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait_until(is_so: Callable[[], bool]) -> None:
        while not is_so():
            changed.clear()
            await changed.wait()

    async def publish_held(client: Client, subject: str, content: object, **more: Any) -> Published:
        if subject.endswith("/head"):
            await may_go.acquire()
            published.append(subject)
            changed.set()
        else:
            has_item.set()
        return await publish(client, subject, content, **more)

    async def read_all(owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
        return {owner: Head(1, 7, 2, 1) for owner in owners}

    monkeypatch.setattr(Client, "publish", publish_held)
    announcer = Announcer(
        dispatch.node_url,
        signing.sign_service,
        read_all,
        on_complete=lambda answer: is_complete.set() if answer else None,
    )
    async with asyncio.timeout(DEADLINE_S), Client(dispatch.node_url, token=signing.sign_service) as client:
        held = [client.subscribe(head_subject("shop", name)) for name in names]
        for subscription in held:
            await subscription.joined()
        task = asyncio.create_task(announcer.run())
        await is_complete.wait()
        await wait_until(lambda: len(published) >= HEADS_IN_FLIGHT_MAX)
        last = next(name for name in reversed(names) if head_subject("shop", name) not in published)
        announcer.announce([InboxItem("shop", last, 8, Head(1, 8, 3, 2), "n", 0, 0, b"{}", 8)])
        await has_item.wait()
        for _ in range(CONNECTED + 1):
            may_go.release()
        await wait_until(lambda: head_subject("shop", last) in published)
        assert len(published) <= 4 * HEADS_IN_FLIGHT_MAX
        await wait_until(lambda: len(published) >= CONNECTED)
        assert set(published) == {head_subject("shop", name) for name in names}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
