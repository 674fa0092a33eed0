"""A draining node accepts nothing new (protocol.md, 13.3): 4124 on WebSocket and HTTP; MQTT clients receive a notice on
`$godwit/notices`.
"""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

from tests.hostile.peer import Peer, request
from tests.mqtt import packets
from tests.node_process import running_node

DEADLINE_S = 60
# One shard: each hears of the drain by itself, and refuses from then on.
SLOW = {"node.shards": 1, "drain.spread_ms": 60_000, "drain.grace_ms": 60_000}
DRAINING = 4124


async def test_new_publishes_and_subscriptions_are_refused_with_4124_and_what_stands_goes_on() -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        running_node(SLOW) as node,
        Peer.live(node.host, node.port) as live,
        Peer.open(node.host, node.port) as rest,
    ):
        assert (await live.ask({"id": 1, "subscribe": "/a"}))["ok"] == "subscribed"
        await rest.say(request("POST", "/v1/messages?subject=/a", "Content-Type: application/json", body=b"1"))
        assert await rest.status() == 201
        node.process.send_signal(signal.SIGTERM)
        while (await live.hear()).get("notice") != "draining":
            pass
        for command in ({"publish": "/a", "content": 2}, {"subscribe": "/b"}):
            assert (await live.ask({"id": 2, **command}))["error"] == DRAINING
        assert (await live.ask({"id": 3, "unsubscribe": "/a"}))["ok"] == "unsubscribed"
        await _is_refused(rest, request("POST", "/v1/messages?subject=/a", body=b"2"))
        await _is_refused(rest, request("POST", "/v1/messages", "Content-Type: application/json", body=b"[]"))
        await _is_refused(rest, request("GET", "/v1/stream?subject=/a"))
        await rest.say(request("GET", "/v1/snapshot?subject=/a"))
        assert await rest.answer() == (200, b"1")
        node.process.send_signal(signal.SIGTERM)
        assert await live.end() == 4200
        assert await node.process.wait() == 1


async def _is_refused(peer: Peer, asked: bytes) -> None:
    await peer.say(asked)
    head = await peer.head()
    length = next(int(line[15:]) for line in head.decode().split("\r\n") if line.lower().startswith("content-length:"))
    problem: dict[str, Any] = json.loads(await peer.reader.readexactly(length))
    assert head.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in head
    assert (problem["code"], problem["title"], problem["retry"]) == (DRAINING, "NodeDraining", True)


async def test_an_mqtt_client_that_asked_is_told_when_to_come_back_and_is_served_until_then() -> None:
    async with asyncio.timeout(DEADLINE_S), running_node(SLOW) as node:
        host, _, port = node.mqtt.rpartition(":")

        def live() -> None:
            with packets.Peer((host, int(port))) as peer, packets.Peer((host, int(port))) as other:
                peer.join(packets.connect(""))
                other.join(packets.connect(""))
                peer.granted(("$godwit/notices", 0))
                node.process.send_signal(signal.SIGTERM)
                notice = peer.message()
                notice_content = json.loads(notice.payload)
                assert notice.topic == "$godwit/notices"
                assert notice_content["notice"] == "draining" and 0 <= notice_content["reconnect_after_ms"] <= 60_000
                peer.send(packets.publish("a", b"1", 1, 5))
                peer.expect(packets.packet(0x40, b"\0\5"))
                other.quiet()
                node.process.send_signal(signal.SIGTERM)
                peer.ended(0x8B)

        await asyncio.to_thread(live)
        assert await node.process.wait() == 1
