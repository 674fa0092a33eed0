"""One subscription that nobody reads silences nothing else of its client, and loses nothing."""

from __future__ import annotations

import asyncio

import pytest

from godwit import testing
from godwit.client import Client, Message, Settings

DEADLINE_S = 30
COUNT = 1_500
SMALL = Settings(items_max=100)


async def publish(client: Client, subject: str, count: int) -> None:
    await asyncio.gather(*(client.publish(subject, number) for number in range(count)))


@pytest.mark.parametrize("other", ["/b", "/b/*"])
async def test_unread_subscription_does_not_silence_another(other: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        testing.node({"limits": {"log_messages_max": 5_000}}) as node,
        Client(node.url, settings=SMALL) as client,
        Client(node.url) as publisher,
    ):
        unread = client.subscribe("/a", snapshot=False)
        read = client.subscribe(other, snapshot=False)
        await asyncio.gather(unread.joined(), read.joined())
        subject = other.replace("*", "x")
        for part in range(3):
            await publish(publisher, "/a", COUNT)
            await publisher.publish(subject, part)
            assert (await anext(read)).json() == part
        found = [(await anext(unread)).json() for _ in range(3 * COUNT)]
        assert sorted(found) == sorted([*range(COUNT)] * 3)
        assert unread.counts["gaps"] == 0 and unread.counts["missing"] == 0 and unread.counts["joins"] > 1


async def test_watch_goes_on_beside_an_unread_subscription() -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        testing.node() as node,
        Client(node.url, settings=SMALL) as client,
        Client(node.url) as publisher,
    ):
        await client.subscribe("/a", snapshot=False).joined()
        watch = client.watch("/w/*")
        await publish(publisher, "/a", COUNT)
        await publisher.subscribe("/w/x").joined()
        assert (await anext(watch)).subject == "/w/x"


async def test_single_unread_subscription_is_not_paused() -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        testing.node({"limits": {"log_messages_max": 5_000}}) as node,
        Client(node.url, settings=SMALL) as client,
        Client(node.url) as publisher,
    ):
        only = client.subscribe("/a", snapshot=False)
        await only.joined()
        await publish(publisher, "/a", COUNT)
        items = only.items()
        found = 0
        while found < COUNT:
            found += isinstance(await anext(items), Message)
        assert only.counts["joins"] == 1
