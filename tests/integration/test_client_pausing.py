"""A subscription that is not read does not stop the others of its client, and loses nothing."""

from __future__ import annotations

import asyncio
from typing import Any

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


async def test_paused_in_the_first_join_of_ten_thousand_subjects_it_is_complete_in_the_end() -> None:
    subjects = 10_000
    async with (
        asyncio.timeout(120),
        testing.node() as node,
        Client(node.url, settings=Settings(items_max=1_000)) as client,
        Client(node.url, settings=Settings(publish_queue_max=20_000)) as publisher,
    ):
        await asyncio.gather(*(publisher.publish(f"/many/{number}", number) for number in range(subjects)))
        unread = client.subscribe("/many/*")
        beside = client.subscribe("/beside", snapshot=False)
        await beside.joined()
        await publisher.publish("/beside", 1)
        assert (await anext(beside)).json() == 1
        found: set[int] = set()
        while len(found) < subjects:
            found.add((await anext(unread)).json())
            if len(found) in (500, 1_500, 2_500):  # its reader is slow now and then
                await asyncio.sleep(0.2)
        assert unread.counts["missing"] == 0


async def test_paused_with_4500_positions_beyond_its_resume_token_it_loses_nothing() -> None:
    subjects = 4_500
    async with (
        asyncio.timeout(120),
        testing.node() as node,
        Client(node.url, settings=Settings(items_max=10_000)) as client,
        Client(node.url, settings=Settings(publish_queue_max=20_000)) as publisher,
    ):
        unread = client.subscribe("/many/*", snapshot=False)
        beside = client.subscribe("/beside", snapshot=False)
        await asyncio.gather(unread.joined(), beside.joined())
        for part in range(3):
            texts = range(part * subjects, (part + 1) * subjects)
            await asyncio.gather(*(publisher.publish(f"/many/{number % subjects}", number) for number in texts))
            await publisher.publish("/beside", part)
            assert (await anext(beside)).json() == part
        found = {(await anext(unread)).json() for _ in range(3 * subjects)}
        assert found == {*range(3 * subjects)}
        assert unread.counts["missing"] == 0 and unread.counts["gaps"] == 0


@pytest.mark.parametrize("options", [{"last": 3}, {"after": {}}, {"conflate_ms": 100}], ids=str)
async def test_pause_keeps_how_it_was_subscribed(options: dict[str, Any]) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        testing.node({"limits": {"log_messages_max": 5_000}}) as node,
        Client(node.url, settings=SMALL) as client,
        Client(node.url) as publisher,
    ):
        unread = client.subscribe("/a/*", **options)
        read = client.subscribe("/b", snapshot=False)
        await asyncio.gather(unread.joined(), read.joined())
        for part in range(3):
            await asyncio.gather(*(publisher.publish(f"/a/{number % 300}", number) for number in range(COUNT)))
            await publisher.publish("/b", part)
            assert (await anext(read)).json() == part
        last: dict[str, int] = {}
        while len(last) < 300 or any(last[f"/a/{number % 300}"] != number for number in range(COUNT - 300, COUNT)):
            message = await anext(unread)
            last[message.subject] = message.json()
        assert unread.counts["missing"] == 0
