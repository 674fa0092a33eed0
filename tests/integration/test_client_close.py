"""A client whose subscriptions and watches are closed leaves nothing at a real node. Counted at the node."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from godwit import testing
from godwit.client import Client, ClientClosed, Settings, Subscription, Watch
from godwit.client.codec.encodings import EncodingName

PAIRS = 1_000
DEADLINE_S = 60
SUBSCRIPTIONS = re.compile(r"^godwit_subscriptions(?:\{[^}]*\})? (\d+)", re.MULTILINE)


@pytest.fixture
async def node() -> AsyncIterator[testing.RunningNode]:
    async with testing.node() as running:
        yield running


async def subscriptions_at(node: testing.RunningNode) -> int:
    async with aiohttp.ClientSession() as http, http.get(f"{node.admin_url}/metrics") as answer:
        counts = SUBSCRIPTIONS.findall(await answer.text())
    assert counts, "the node publishes the number of its subscriptions"
    return sum(map(int, counts))


async def read(subscription: Subscription | Watch) -> None:
    async for _ in subscription:
        pass


async def test_a_thousand_pairs_that_were_read_when_they_were_closed_leave_nothing(node: testing.RunningNode) -> None:
    async with asyncio.timeout(DEADLINE_S), Client(node.url) as client:
        for number in range(PAIRS):
            subscription = client.subscribe(f"/open/{number}")
            reader = asyncio.create_task(read(subscription))
            await subscription.joined()
            await subscription.close()
            await reader
        last = client.subscribe("/open/last")
        await last.joined()
        assert await subscriptions_at(node) == 1
        await last.close()
        await client.publish("/after", 1)  # answered after the last unsubscribe
        assert await subscriptions_at(node) == 0


async def test_closed_and_subscribed_again_in_one_step_is_served(node: testing.RunningNode) -> None:
    async with asyncio.timeout(DEADLINE_S), Client(node.url) as client:
        subscription = client.subscribe("/same")
        for number in range(20):
            reader = asyncio.create_task(read(subscription))
            await asyncio.sleep(0)
            await subscription.close()
            subscription = client.subscribe("/same", snapshot=False)
            await subscription.joined()
            await client.publish("/same", number)
            assert (await anext(subscription)).json() == number
            await reader
        assert subscription.counts["missing"] == 0


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_what_nobody_read_does_not_hold_up_close(
    node: testing.RunningNode, monkeypatch: pytest.MonkeyPatch, encoding: EncodingName
) -> None:
    """The node's last word stands behind messages that were sent before, on a socket that is not read."""
    monkeypatch.setattr("godwit.client.connection.CLOSE_TIMEOUT_S", 10 * DEADLINE_S)
    async with asyncio.timeout(DEADLINE_S), Client(node.url) as publisher:
        client = await Client(node.url, encoding=encoding, settings=Settings(items_max=10)).__aenter__()
        await client.subscribe("/flood", snapshot=False).joined()
        for _ in range(20):
            await asyncio.gather(*(publisher.publish("/flood", "x" * 1_000) for _ in range(100)))
        await client.close()


async def test_watches_that_were_closed_leave_nothing(node: testing.RunningNode) -> None:
    async with asyncio.timeout(DEADLINE_S), Client(node.url) as client:
        for _ in range(PAIRS):
            watch = client.watch("/watched/**")
            reader = asyncio.create_task(read(watch))
            await watch.close()
            await reader
        again = client.watch("/watched/**")
        await client.subscribe("/watched/a").joined()
        assert (await anext(again)).subject == "/watched/a"


async def test_joined_on_what_was_closed_raises(node: testing.RunningNode) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async with Client(node.url) as client:
            subscription, other = client.subscribe("/a"), client.subscribe("/b")
            await subscription.close()
            with pytest.raises(ClientClosed, match="/a"):
                await subscription.joined()
        with pytest.raises(ClientClosed, match="client"):
            await other.joined()


async def test_watch_ends_with_its_block() -> None:
    async with asyncio.timeout(60), testing.node() as node, Client(node.url) as client:
        async with client.watch("/watched/**") as watch:
            waiting = asyncio.ensure_future(anext(watch))
        with pytest.raises(StopAsyncIteration):
            await waiting
