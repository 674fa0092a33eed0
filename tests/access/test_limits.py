"""Rates and quotas on a real node: every protocol reports them in its own form, operators see who and why, and a reload changes them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import aiohttp
import jwt

from godwit import testing
from godwit.config import build_config
from tests.desk import Desk
from tests.hostile.peer import Peer, request
from tests.mqtt import packets

DEADLINE_S = 60
SECRET, ISSUER = "s" * 64, "https://login.example"
TEXT = "Content-Type: text/plain"


async def post(node: testing.RunningNode, *fields: str) -> tuple[int, str]:
    async with Peer.open(node.client.host, node.client.port) as peer:
        await peer.say(request("POST", "/v1/messages?subject=/a", TEXT, *fields, body=b"x"))
        head = (await peer.head()).decode()
        return int(head[9:12]), head


async def read(node: testing.RunningNode, path: str) -> Any:
    async with aiohttp.ClientSession() as http, http.get(node.admin_url + path) as answer:
        return await answer.text() if path == "/metrics" else await answer.json()


async def test_a_quota_is_told_on_every_protocol_and_shown_to_operators() -> None:
    settings = {"limits": {"connections_per_address_max": 2}}
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        host, port = node.client.host, node.client.port
        assert node.mqtt is not None
        async with Peer.live(host, port) as first, Peer.live(host, port) as second:
            status, head = await post(node)
            assert status == 429 and "\r\nRetry-After: 1\r\n" in head
            async with Peer.open(host, port) as third:
                await third.say(request("GET", "/v1/stream?subject=/a"))
                assert await third.status() == 429
            async with Peer.open(node.mqtt.host, node.mqtt.port) as device:
                await device.say(packets.connect("x"))
                assert (await device.rest())[3] == 0x97, "quota exceeded"
            async with Peer.open(node.mqtt.host, node.mqtt.port) as device:
                await device.say(packets.connect("x", packets.V3))
                assert (await device.rest())[3] == 3, "server unavailable"
            assert (await first.ask({"id": 1, "ping": True}))["ok"] == "pong"
            assert (await second.ask({"id": 1, "ping": True}))["ok"] == "pong"
        rows = {row["name"]: row for row in (await read(node, "/v1/limits"))["limits"]}
        assert rows["connections_per_address_max"]["hits"] == 4
        metrics = await read(node, "/metrics")
        assert 'godwit_limit_reached_total{limit="connections_per_address_max"} 4.0' in metrics
        while 4208 not in {row["code"] for row in node.node.refusals.list()}:
            await read(node, "/v1/limits")  # reports come in batches, a moment later


async def test_a_rate_holds_over_all_protocols_and_connections_of_an_identity_and_tenants_are_kept_apart(
    tmp_path: Path,
) -> None:
    (tmp_path / "secret").write_text(SECRET)
    settings: dict[str, Any] = {
        "access": {"mode": "jwt"},
        "issuers": {
            ISSUER: {"keys_file": str(tmp_path / "secret"), "algorithms": ["HS256"], "tenant_claim": "org"},
        },
        "limits": {
            "publishes_per_second_per_identity_max": 3,
            "connections_per_tenant_max": 4,
            "burst_ms_max": 60_000,
        },
    }

    def bearer(identity: str, tenant: str) -> str:
        rights = {"allow": {"both": ["/**"]}}
        claims = {"iss": ISSUER, "sub": identity, "org": tenant, "exp": time.time() + 600, "permissions": rights}
        return jwt.encode(claims, SECRET, "HS256")

    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        ann, bob = bearer("ann", "acme"), bearer("bob", "other")
        codes: list[int] = []
        async with Peer.live(node.client.host, node.client.port) as live:
            await live.ask({"id": 0, "connect": {"token": ann}})
            while 4122 not in codes:  # by two wires in turn, until what a minute may bring is spent
                codes.append((await live.ask({"id": 1, "publish": "/a", "content": 1})).get("error", 0))
                status, _ = await post(node, f"Authorization: Bearer {ann}")
                codes.append(4122 if status == 429 else 0)
            assert 180 <= len(codes) <= 400
        assert (await post(node, f"Authorization: Bearer {bob}"))[0] == 201
        async with contextlib.AsyncExitStack() as stack:
            for number in range(5):
                peer = await stack.enter_async_context(Peer.live(node.client.host, node.client.port))
                claims = await peer.ask({"id": 1, "connect": {"token": bearer(f"user-{number}", "acme")}})
                assert claims.get("close") == 4208 if number == 4 else claims["ok"] == "connected"


async def test_limits_are_taken_over_by_a_running_node() -> None:
    table: dict[str, Any] = {**testing.FREE_PORTS}
    async with (
        testing.node() as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as first,
    ):
        await first.ask({"id": 1, "ping": True})
        await node.node.reload(build_config({**table, "limits": {"connections_per_address_max": 1}}, {}, {}))
        assert (await post(node))[0] == 429, "who was there is counted"
        assert (await first.ask({"id": 2, "ping": True}))["ok"] == "pong"
        pattern = {"/a": {"publishes_per_second_max": 1}}
        await node.node.reload(build_config({**table, "patterns": pattern}, {}, {}))
        codes = [(await first.ask({"id": n, "publish": "/a", "content": 1})).get("error", 0) for n in range(9)]
        assert codes[0] == 0 and 4122 in codes


DESK = Desk()
OF_IDENTITY = {
    "access": {"mode": "custom", "authorizer": f"{__name__}:DESK"},
    "limits": {"connections_per_identity_max": 1},
}


async def test_a_connection_that_hangs_while_it_is_closed_keeps_no_place() -> None:
    def come_again(address: tuple[str, int]) -> bytes:
        login = packets.connect("d", clean=False, properties=b"\x11\x00\x00\x0e\x10", username="", password=b"ann")
        with packets.Peer(address) as hanging:
            hanging.join(login)
            with packets.Peer(address) as second:
                second.join(login)
                second.send(packets.DISCONNECT)
                assert second.receive() == b""
            with packets.Peer(address) as third:
                third.send(login)
                return third.receive()

    async with testing.node(OF_IDENTITY) as node, asyncio.timeout(DEADLINE_S):
        assert node.mqtt is not None
        assert (await asyncio.to_thread(come_again, (node.mqtt.host, node.mqtt.port)))[3] == 0


async def test_who_reached_a_quota_is_shown_to_operators() -> None:
    async with (
        testing.node(OF_IDENTITY) as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as first,
        Peer.live(node.client.host, node.client.port) as second,
    ):
        login = {"id": 1, "connect": {"token": "ann"}}
        assert (await first.ask(login))["ok"] == "connected"
        assert (await second.ask(login))["close"] == 4208
        while not (rows := [row for row in node.node.refusals.list() if row["code"] == 4208]):
            await read(node, "/v1/limits")  # reports come in batches, a moment later
        assert {row["identity"] for row in rows} == {"ann"}
