"""Large messages: a publish that the node does not take is refused alone; one that a client does not take is a gap."""

from __future__ import annotations

import asyncio
import sys

import pytest

from godwit import testing
from godwit.client import Client, CommandRefused, Position, SessionClosed, Settings
from godwit.client.codec.encodings import EncodingName
from godwit.codes import Code
from godwit.model import Gap, GapReason, Message

LARGE = Settings(publish_queue_bytes_max=1 << 30, reconnect_first_ms=4, reconnect_max_ms=40)


@pytest.mark.parametrize("encoding", ["json", "binary"])
@pytest.mark.parametrize("megabytes", [2, 12, 40])
async def test_publish_too_large_for_the_node_is_refused_alone(encoding: EncodingName, megabytes: int) -> None:
    async with (
        asyncio.timeout(60),
        testing.node() as node,
        Client(node.url, encoding=encoding, settings=LARGE) as client,
    ):
        await client.publish("/a", 1)
        small = [asyncio.create_task(client.publish("/small", number)) for number in range(20)]
        with pytest.raises(CommandRefused) as raised:
            await client.publish("/large", b"x" * (megabytes << 20))
        assert raised.value.code == Code.MESSAGE_TOO_BIG and "/large" in str(raised.value)
        assert all(each.position for each in await asyncio.gather(*small))
        assert (await client.publish("/a", 2)).position is not None


async def test_refusal_names_the_publish_that_is_larger_as_sent() -> None:
    """As base64 the shorter of the two is the longer one, and it alone is too large."""
    async with asyncio.timeout(60), testing.node() as node, Client(node.url, settings=LARGE) as client:
        await client.connected()
        text = asyncio.create_task(client.publish("/text", "x" * 1_000_000))
        with pytest.raises(CommandRefused) as raised:
            await client.publish("/bytes", b"x" * 900_000)
        assert "/bytes, 1200" in str(raised.value) and "as sent" in str(raised.value)
        assert (await text).position is not None


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_small_publishes_that_are_too_large_together_are_sent_one_by_one(encoding: EncodingName) -> None:
    limits = {"message_bytes_max": 4_096}
    async with (
        asyncio.timeout(60),
        testing.node({"limits": limits}) as node,
        Client(node.url, encoding=encoding, settings=LARGE) as client,
    ):
        await client.connected()
        texts = ["x" * 1_500] * 20
        assert all(each.position for each in await asyncio.gather(*(client.publish("/a", text) for text in texts)))


async def test_commands_that_the_node_never_takes_end_the_client_with_a_sentence() -> None:
    limits = {"message_bytes_max": 1_024}
    async with (
        asyncio.timeout(60),
        testing.node({"limits": limits}) as node,
        Client(node.url, settings=LARGE) as client,
    ):
        await client.connected()
        positions = {f"/many/{number}": Position(1, 1) for number in range(200)}
        subscription = client.subscribe("/many/*", after=positions)
        with pytest.raises(SessionClosed, check=lambda error: error.code == Code.MESSAGE_TOO_BIG):
            await subscription.joined()


SLOW = Settings(publish_queue_bytes_max=1 << 30, reconnect_first_ms=3_600_000, reconnect_max_ms=3_600_000)


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_refusal_for_size_costs_reconnects_at_once_and_the_next_none(encoding: EncodingName) -> None:
    """With these settings each other wait would be longer than the test."""
    async with (
        asyncio.timeout(60),
        testing.node({"limits": {"message_bytes_max": 10_000}}) as node,
        Client(node.url, encoding=encoding, settings=SLOW) as client,
    ):
        subscription = client.subscribe("/small")
        await subscription.joined()
        for number in range(5):
            large = [
                asyncio.create_task(client.publish("/large", b"x" * (20_000 + extra))) for extra in (0, 900, 1_800)
            ]
            small = asyncio.create_task(client.publish("/small", number))
            refused = await asyncio.gather(*large, return_exceptions=True)
            assert [type(each) for each in refused] == [CommandRefused] * 3
            assert (await small).position is not None
            await anext(subscription)
        assert subscription.counts["joins"] == 5  # at its begin; of the frame with four; of each of the three alone
        texts = [b"x" * 3_000] * 20  # now split before they are sent
        assert all(each.position for each in await asyncio.gather(*(client.publish("/a", text) for text in texts)))
        assert subscription.counts["joins"] == 5


MESSAGES = {"control characters": "\x01" * 400_000, "more than 2 MiB": b"x" * (3 << 20)}
NODE = {"limits": {"message_bytes_max": 8 << 20}}


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_message_longer_than_two_megabytes_is_received(encoding: EncodingName) -> None:
    async with (
        asyncio.timeout(60),
        testing.node(NODE) as node,
        Client(node.url, encoding=encoding, settings=LARGE) as client,
    ):
        subscription = client.subscribe("/a", snapshot=False)
        await subscription.joined()
        for content in MESSAGES.values():
            await client.publish("/a", content)
        assert [len((await anext(subscription)).content) for _ in MESSAGES] == [
            len(content) for content in MESSAGES.values()
        ]


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_message_longer_than_the_client_takes_is_a_gap_and_its_position_moves_on(encoding: EncodingName) -> None:
    few = Settings(frame_bytes_max=100_000, reconnect_first_ms=4, reconnect_max_ms=40)
    async with (
        asyncio.timeout(60),
        testing.node(NODE) as node,
        Client(node.url, settings=LARGE) as publisher,
        Client(node.url, encoding=encoding, settings=few) as client,
    ):
        subscription = client.subscribe("/a", snapshot=False)
        await subscription.joined()
        for content in (1, *MESSAGES.values(), 2):
            await publisher.publish("/a", content)
        items = subscription.items()
        heard: list[Message | Gap] = []
        while len(heard) < 4:
            item = await anext(items)
            heard += [item] if isinstance(item, Message | Gap) else []
        sequences = [item.position and item.position.sequence for item in heard]
        reasons = [(item.reason, item.missed) if isinstance(item, Gap) else None for item in heard]
        gap = (GapReason.TOO_LARGE, 1)
        assert (sequences, reasons) == ([1, 2, 3, 4], [None, gap, gap, None])
        assert client.is_connected and subscription.counts["joins"] == 1


async def test_tail_shows_what_is_longer_than_two_megabytes_and_what_follows() -> None:
    async with asyncio.timeout(60), testing.node(NODE) as node, Client(node.url, settings=LARGE) as client:
        words = (
            sys.executable,
            "-m",
            "godwit",
            "tail",
            "/a",
            "--server",
            node.url,
            "--last",
            "4",
            "--count",
            "4",
            "--json",
        )
        for content in (1, *MESSAGES.values(), 2):
            await client.publish("/a", content)
        tail = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        shown, said = await tail.communicate()
        sizes = [len(line) for line in shown.splitlines()]
        assert tail.returncode == 0 and len(sizes) == 4, said.decode()
        assert sizes[1] > 400_000 and sizes[2] > 3 << 20
