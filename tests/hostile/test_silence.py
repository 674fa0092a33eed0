"""Cases 14, 15, 16 and 67 over HTTP and MQTT: floods of pings, readers that never read, slow writers and reconnect storms affect no other
client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.hostile.peer import DEADLINE_S, Peer, request
from tests.mqtt import packets
from tests.node_process import NodeProcess, running_node

GROWTH_BYTES_MAX = 16_000_000


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    settings = {"limits.handshake_ms_max": 1500, "limits.message_ms_max": 1500, "limits.logs_bytes_max": 8_000_000}
    async with running_node(settings) as node:
        yield node
        async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port) as peer:
            assert (await peer.ask({"id": 1, "ping": True}))["ok"] == "pong"


def mqtt_of(node: NodeProcess) -> tuple[str, int]:
    host, _, port = node.mqtt.rpartition(":")
    return host, int(port)


@pytest.mark.asyncio(loop_scope="module")
async def test_14_a_flood_of_pingreqs_is_answered_within_bounds(node: NodeProcess) -> None:
    async with asyncio.timeout(DEADLINE_S), Peer.open(*mqtt_of(node)) as peer:
        await peer.say(packets.connect(""))
        before = node.memory_bytes()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
        with contextlib.suppress(TimeoutError):  # it is not read any more: its answers do not leave
            async with asyncio.timeout(2):
                for _ in range(400):
                    await peer.say(packets.PINGREQ * 50_000)
        assert node.memory_bytes() - before < GROWTH_BYTES_MAX


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("target", ["/v1/stream?subject=/flood/events", "/v1/stream?subject=/flood/**"])
async def test_15_a_stream_that_is_never_read_costs_nothing_and_is_told_of_its_gap(
    node: NodeProcess, target: str
) -> None:
    async with (
        asyncio.timeout(DEADLINE_S * 2),
        Peer.open(node.host, node.port) as reader,
        Peer.live(node.host, node.port) as publisher,
    ):
        await reader.say(request("GET", target))
        assert (await reader.head()).startswith(b"HTTP/1.1 200 ")
        assert b"event: subscribed" in await reader.reader.readuntil(b"\n\n")
        before = node.memory_bytes()
        reader.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
        big = {"publish": "/flood/events", "content": "x" * 10_000}
        for number in range(4_000):
            if number % 100:
                await publisher.say(big)
            else:
                assert "ok" in await publisher.ask({"id": number, **big})
        last = await publisher.ask({"id": 5_000, "publish": "/flood/events", "content": "the last"})
        assert node.memory_bytes() - before < GROWTH_BYTES_MAX + 8_000_000
        reader.writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
        gaps, at = [], ""
        while at != last["at"]:
            event = (await reader.reader.readuntil(b"\n\n")).decode()
            data = json.loads("".join(line[6:] for line in event.splitlines() if line.startswith("data: ")) or "{}")
            gaps += [data] if "event: gap\n" in event else []
            at = data.get("at", "") if "message" in data else at
        assert gaps and all(gap["missed"] for gap in gaps)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "first", [b"GET / HT", b"POST /v1/messages?subject=/a HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n"]
)
async def test_16_who_drips_a_request_is_told_408(node: NodeProcess, first: bytes) -> None:
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(first)
        async with peer.dripping():
            assert await peer.status() == 408


async def test_67_a_storm_on_the_mqtt_port_is_told_0x97_or_closed_and_who_is_there_stays() -> None:
    async with (
        asyncio.timeout(DEADLINE_S * 2),
        running_node({"limits.connections_max": 50, "node.shards": 1}) as node,
        contextlib.AsyncExitStack() as storm,
    ):

        def open_old() -> packets.Peer:
            peer = packets.Peer(mqtt_of(node))
            peer.join(packets.connect("old"))
            peer.granted(("a", 1))
            return peer

        old = await asyncio.to_thread(open_old)
        answers = []
        for _ in range(300):
            with contextlib.suppress(OSError):
                peer = await storm.enter_async_context(Peer.open(*mqtt_of(node)))
                await peer.say(packets.connect(""))
                answers.append((await peer.reader.read(4))[:4])
        assert sum(answer[3:] == b"\0" for answer in answers) == 49
        assert {answer[3:] for answer in answers} <= {b"\0", b"\x97", b""}

        def publish() -> None:
            with old:
                old.send(packets.publish("a", b"here", 1, 3))
                assert {old.receive()[0] >> 4, old.receive()[0] >> 4} == {3, 4}

        await asyncio.to_thread(publish)
