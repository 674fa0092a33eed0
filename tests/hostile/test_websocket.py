"""Hostile WebSocket clients: unrequested compression, silence, commands before the login, expired tokens."""

from __future__ import annotations

import asyncio
import itertools
import time
import zlib
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
import pytest_asyncio

from godwit import testing
from tests.hostile.peer import DEADLINE_S, UPGRADE, Peer, frame
from tests.node_process import NodeProcess, running_node
from tests.waiting import until

SECRET = "s" * 64
ISSUER = "https://login.example"
BIG = {"publish": "/flood", "content": "x" * 10_000}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node({"limits.handshake_ms_max": 1500, "limits.message_ms_max": 1500}) as node:
        yield node
        async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port) as peer:
            assert (await peer.ask({"id": 1, "ping": True}))["ok"] == "pong"


@pytest.mark.asyncio(loop_scope="module")
async def test_11_a_bomb_is_never_inflated(node: NodeProcess) -> None:
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = squeezer.compress(b" " * 50_000_000) + squeezer.flush(zlib.Z_SYNC_FLUSH)
    before = node.memory_bytes()
    for _ in range(4):
        offer = "Sec-WebSocket-Extensions: permessage-deflate"
        async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port, offer) as peer:
            await peer.say(frame(bomb[:-4], 0xC1))
            assert await peer.end() == 1002, "nobody agreed to compress"
    assert node.memory_bytes() - before < 32_000_000


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("offered", "frames", "codes"),
    [
        ("permessage-deflate", [frame(b"\xff\xff\xff", 0xC1)], (1002, 1007)),
        ("permessage-deflate", [frame(b"a", 0x01), frame(b"a", 0xC0)], (1002,)),
        ("permessage-deflate; server_max_window_bits=99", [frame(b"{}", 0xC1)], (1002, 1007)),
        ("x-unknown; a=b, x-other", [frame(b"{}", 0xA1)], (1002,)),
    ],
)
async def test_12_what_is_no_compression_that_was_agreed_on_ends_the_connection(
    node: NodeProcess, offered: str, frames: list[bytes], codes: tuple[int, ...]
) -> None:
    offer = f"Sec-WebSocket-Extensions: {offered}"
    async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port, offer) as peer:
        await peer.say(*frames)
        assert await peer.end() in codes


@pytest.mark.asyncio(loop_scope="module")
async def test_14_a_flood_of_pings_is_answered_within_bounds(node: NodeProcess) -> None:
    async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port) as peer:
        before = node.memory_bytes()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
        flood = frame(b"x" * 100, 0x89) * 1_000
        for _ in range(60):
            peer.writer.write(flood)
            try:
                async with asyncio.timeout(0.5):
                    await peer.writer.drain()
            except TimeoutError:
                break  # it is not read any more: its answers do not leave
        assert node.memory_bytes() - before < 16_000_000


@pytest.mark.asyncio(loop_scope="module")
async def test_15_who_never_reads_costs_nothing_and_is_told_of_its_gap_when_it_reads_again(node: NodeProcess) -> None:
    async with (
        asyncio.timeout(DEADLINE_S * 2),
        Peer.live(node.host, node.port) as reader,
        Peer.live(node.host, node.port) as publisher,
    ):
        await reader.ask({"id": 1, "subscribe": "/flood"})
        reader.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
        for number in range(4_000):
            if number % 100 == 0:
                assert "ok" in await publisher.ask({"id": number, **BIG})
            else:
                await publisher.say(BIG)
        last = await publisher.ask({"id": 5_000, "publish": "/flood", "content": "the last"})
        reader.writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
        gaps = []
        while (heard := await reader.hear()).get("at") != last["at"] or "gap" in heard:
            assert "close" not in heard
            gaps += [heard] if "gap" in heard else []
        assert gaps and all(gap["missed"] for gap in gaps)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("first", [UPGRADE, b"G", b"", UPGRADE + b"\r\n" + frame({"id": 1, "ping": True})[:5]])
async def test_16_who_drips_is_closed_at_its_deadline(node: NodeProcess, first: bytes) -> None:
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(first)
        async with peer.dripping():
            await peer.rest()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("value", ['permessage-deflate; a="b', '"' * 10_000, "a;" * 4_000, "; ;;, ,"])
async def test_19_an_extension_that_cannot_be_read_is_refused_or_passed_over_at_once(
    node: NodeProcess, value: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(UPGRADE + f"Sec-WebSocket-Extensions: {value}\r\n\r\n".encode())
        assert await peer.status() in (101, 400)


@pytest.mark.asyncio(loop_scope="module")
async def test_21_what_came_with_the_upgrade_is_served(node: NodeProcess) -> None:
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(UPGRADE + b"\r\n" + b"".join(frame({"id": n, "ping": True}) for n in range(50)))
        assert await peer.status() == 101
        assert [(await peer.hear())["id"] for _ in range(50)] == list(range(50))


async def test_22_commands_before_a_login_end_the_connection_and_so_does_waiting(tmp_path: Any) -> None:
    (tmp_path / "secret").write_text(SECRET)
    settings: dict[str, Any] = {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: {"keys_file": str(tmp_path / "secret"), "algorithms": ["HS256"]}},
        "limits": {"handshake_ms_max": 1500},
    }
    commands: list[dict[str, Any]] = [
        {"id": 1, "subscribe": "/a"},
        {"id": 1, "publish": "/a", "content": 1},
        {"id": 1, "ping": True},
    ]
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        for command in commands:
            async with Peer.live(node.client.host, node.client.port) as peer:
                await peer.say(command)
                assert await peer.end() == 4001
        async with Peer.live(node.client.host, node.client.port) as silent:
            assert await silent.end() == 4001
        await until(lambda: [row["code"] for row in node.node.refusals.list()] == [4001] * 4)


async def test_23_after_a_tokens_end_nothing_more_is_delivered(tmp_path: Any) -> None:
    (tmp_path / "secret").write_text(SECRET)
    settings: dict[str, Any] = {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: {"keys_file": str(tmp_path / "secret"), "algorithms": ["HS256"]}},
    }

    def token(lives_s: float, who: str) -> str:
        rights = {"allow": {"both": ["/a"]}}
        claims = {"iss": ISSUER, "sub": who, "exp": time.time() + lives_s, "permissions": rights}
        return jwt.encode(claims, SECRET, "HS256")

    async with (
        testing.node(settings) as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as short,
        Peer.live(node.client.host, node.client.port) as long,
    ):
        for peer, made in ((short, token(3, "ann")), (long, token(600, "bob"))):
            assert (await peer.ask({"id": 1, "connect": {"token": made}}))["ok"] == "connected"
            assert (await peer.ask({"id": 2, "subscribe": "/a"}))["ok"] == "subscribed"
        heard: list[dict[str, Any]] = [{}]
        for number in itertools.count(10):
            await long.ask({"id": number, "publish": "/a", "content": number})
            while heard[-1].get("content") != number and "close" not in heard[-1]:
                heard.append(await short.hear())
            if "close" in heard[-1]:
                break
        assert heard[-1] == {"close": 4003}
