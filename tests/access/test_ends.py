"""The end of a token, by its time and by a revocation, on every protocol: the client is notified, and nothing is delivered after it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from godwit import testing
from godwit.access.revocation import Revocation
from tests.hostile.peer import Peer, request
from tests.mqtt import packets

SECRET, ISSUER = "s" * 64, "https://login.example"
DEADLINE_S = 20
Listen = Callable[[testing.RunningNode, str], Awaitable[tuple[list[str], int]]]
"""Listens with a token until the node ends it: what it was warned of, and the code it ended with."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[testing.RunningNode]:
    (tmp_path / "secret").write_text(SECRET)
    settings = {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: {"keys_file": str(tmp_path / "secret"), "algorithms": ["HS256"]}},
    }
    async with testing.node(settings) as running:
        yield running


def make_token(lives_s: float, identity: str = "ann", token_id: str = "t1") -> str:
    rights = {"allow": {"both": ["/a"]}}
    claims = {"iss": ISSUER, "sub": identity, "jti": token_id, "exp": time.time() + lives_s, "permissions": rights}
    return jwt.encode(claims, SECRET, "HS256")


async def by_websocket(node: testing.RunningNode, token: str) -> tuple[list[str], int]:
    async with Peer.live(node.client.host, node.client.port) as peer:
        await peer.say({"connect": {"token": token}}, {"id": 2, "subscribe": "/a"})
        heard = []
        while "close" not in (claims := await peer.hear()):
            heard += [claims["notice"]] if "notice" in claims else []
        return heard, claims["close"]


async def by_events(node: testing.RunningNode, token: str) -> tuple[list[str], int]:
    async with Peer.open(node.client.host, node.client.port) as peer:
        await peer.say(request("GET", "/v1/stream?subject=/a", f"Authorization: Bearer {token}"))
        assert (await peer.head()).startswith(b"HTTP/1.1 200 ")
        text = (await peer.rest()).decode()
        notices = ["token_expiring"] if "event: notice" in text and "token_expiring" in text else []
        return notices, 4003 if "4003" in text else 4005 if "4005" in text else 0


async def by_poll(node: testing.RunningNode, token: str) -> tuple[list[str], int]:
    async with Peer.open(node.client.host, node.client.port) as peer:
        heard = []
        while True:
            await peer.say(request("GET", "/v1/messages?subject=/a&wait=30", f"Authorization: Bearer {token}"))
            status, body = await peer.answer()
            if status != 200:
                return heard, int(json.loads(body)["code"])
            heard += [claims["notice"] for claims in json.loads(body) if "notice" in claims]


async def by_mqtt(node: testing.RunningNode, token: str) -> tuple[list[str], int]:
    assert node.mqtt is not None
    reader, writer = await asyncio.open_connection(node.mqtt.host, node.mqtt.port)
    try:
        writer.write(packets.connect(f"c-{id(reader)}", password=token.encode(), username=""))
        heard = []
        while True:
            first, length = await reader.readexactly(2)
            body = await reader.readexactly(length)
            if first == 0x20:
                assert body[1] == 0
                writer.write(packets.subscribe(("a", 1), ("$godwit/notices", 0)))
            elif first == 0x30:
                topic, _, claims = body[2:].partition(b"\0")
                assert topic == b"$godwit/notices"
                heard += [json.loads(claims)["notice"]]
            elif first == 0xE0:
                return heard, {0xA0: 4003, 0x87: 4005}.get(body[0], body[0])
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # one turn of the loop, in which it is let go


PROTOCOLS: dict[str, Listen] = {"websocket": by_websocket, "events": by_events, "poll": by_poll, "mqtt": by_mqtt}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_23_a_token_ends_its_connection_and_where_the_protocol_has_a_word_for_it_it_is_warned(
    node: testing.RunningNode, protocol: str
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        heard, code = await PROTOCOLS[protocol](node, make_token(3))
    assert code == 4003
    # Each poll shows a token of its own, which may be a new one.
    assert heard == ([] if protocol == "poll" else ["token_expiring"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("revoked", [{"identity": "ann"}, {"token_id": "t1"}])
async def test_a_revocation_reaches_whoever_is_connected_and_nobody_else(
    node: testing.RunningNode, protocol: str, revoked: dict[str, Any]
) -> None:
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        listening = group.create_task(PROTOCOLS[protocol](node, make_token(600)))
        other = group.create_task(PROTOCOLS[protocol](node, make_token(600, "bob", "t2")))
        while len([row for row in await list_rows(node) if row["identity"] and row["subscriptions"]]) < 2:
            assert not listening.done() and not other.done()
        claims = await node.node.revoke(Revocation(**revoked))
        assert claims["connections"] == 1 and claims["kept"] and not claims["warning"]
        _, code = await listening
        assert code == 4005
        assert not other.done()
        await node.node.revoke(Revocation(identity="bob"))


async def list_rows(node: testing.RunningNode) -> list[dict[str, Any]]:
    rows, _ = await asyncio.to_thread(node.node.engine.connections, 0, 10, None, False)
    return rows
