"""A node that is killed and restarted: subscribers receive a gap with the reason, then all new messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

from godwit.client import Client, Gap, GapReason, Item, Message
from tests.faults.cutting_proxy import CuttingProxy
from tests.faults.ways import QUICK
from tests.node_process import running_node

DEADLINE_S = 60


async def test_killed_node_comes_back_with_a_gap_of_another_epoch_and_then_goes_on(driver: str, random: Random) -> None:
    settings = {"node.driver": driver, "node.shards": 2}
    async with (
        asyncio.timeout(DEADLINE_S),
        running_node(settings) as first,
        CuttingProxy(random, (first.host, first.port), 0) as proxy,
        Client(proxy.url, settings=QUICK) as json,
        Client(proxy.url, encoding="binary", settings=QUICK) as binary,
    ):
        subject, pattern = json.subscribe("/a/b"), binary.subscribe("/a/*")
        await asyncio.gather(subject.joined(), pattern.joined())
        followed = [subject.items(), pattern.items()]
        for number in range(20):
            await json.publish("/a/b", number)
        for items in followed:
            assert [number async for number in _numbers_until(items, 19)] == list(range(20))
        await first.kill()
        async with running_node(settings) as second:
            proxy.redirect((second.host, second.port))
            for number in range(20, 30):
                await json.publish("/a/b", number)
            for items in followed:
                gap = await _gap(items)
                assert gap.missed is None
                assert gap.pattern == "/a/*" or gap.reason is GapReason.EPOCH
                numbers = [number async for number in _numbers_until(items, 29)]
                assert numbers == list(range(numbers[0], 30))


async def _numbers_until(items: AsyncIterator[Item], last: int) -> AsyncIterator[int]:
    async for item in items:
        assert not isinstance(item, Gap)
        if isinstance(item, Message):
            number = item.json()
            yield number
            if number == last:
                return


async def _gap(items: AsyncIterator[Item]) -> Gap:
    """The next gap; no message may come before it."""
    async for item in items:
        assert not isinstance(item, Message)
        if isinstance(item, Gap):
            return item
    raise AssertionError("the subscription ended without a gap")
