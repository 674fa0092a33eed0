"""Publishes beyond what the node takes: each is refused where it was asked, and the client lives on."""

from __future__ import annotations

import asyncio

import pytest

from godwit import testing
from godwit.client import Client, CommandRefused, Settings
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
