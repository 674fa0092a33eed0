"""Publishes beyond what the node takes: each is refused where it was asked, and the client lives on."""

from __future__ import annotations

import asyncio

import pytest

from godwit import testing
from godwit.client import Client, CommandRefused, Position, SessionClosed, Settings
from godwit.client.codec.encodings import EncodingName
from godwit.codes import Code

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
        with pytest.raises(CommandRefused) as told:
            await client.publish("/large", b"x" * (megabytes << 20))
        assert told.value.code == Code.MESSAGE_TOO_BIG and "/large" in str(told.value)
        assert all(each.position for each in await asyncio.gather(*small))
        assert (await client.publish("/a", 2)).position is not None


async def test_refusal_names_the_publish_that_is_larger_as_sent() -> None:
    """As base64 the shorter of the two is the longer one, and it alone is too large."""
    async with asyncio.timeout(60), testing.node() as node, Client(node.url, settings=LARGE) as client:
        await client.connected()
        text = asyncio.create_task(client.publish("/text", "x" * 1_000_000))
        with pytest.raises(CommandRefused) as told:
            await client.publish("/bytes", b"x" * 900_000)
        assert "/bytes, 1200" in str(told.value) and "as sent" in str(told.value)
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
        with pytest.raises(SessionClosed, match="a command of .* bytes is not taken"):
            await subscription.joined()
