"""A node compresses and inflates as protocol/vectors/deflate.json says, and zlib agrees with it. The Rust core is held to it too."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.hostile.peer import DEADLINE_S, UPGRADE, Peer, frame
from tests.node_process import NodeProcess, running_node

VECTORS = json.loads((Path(__file__).parents[2] / "protocol/vectors/deflate.json").read_text())
TAIL = b"\0\0\xff\xff"


def named(cases: list[dict[str, Any]], key: str) -> list[Any]:
    return [pytest.param(case, id=case[key] or "nothing") for case in cases]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node({"client.compression": "true", "limits.message_bytes_max": 4096}) as node:
        yield node


def inflate(raw: bytes) -> bytes:
    """What zlib makes of a message; a stream that says it has ended is followed by another."""
    rest, out = raw + TAIL, b""
    while rest:
        stream = zlib.decompressobj(-15)
        out += stream.decompress(rest)
        rest = stream.unused_data if stream.eof else b""
    return out


@pytest.mark.parametrize("case", named(VECTORS["cases"], "name"))
def test_zlib_says_the_same(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["deflated"])
    if case.get("close") == 1002:
        with pytest.raises(zlib.error):
            inflate(raw)
        return
    out = inflate(raw)
    match case.get("close"):
        case None:
            assert out.decode() == case["becomes"] and len(out) <= 4096
        case 1007:
            with pytest.raises(UnicodeDecodeError):
                out.decode()
        case _:
            assert len(out) > 4096


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", named(VECTORS["offers"], "offer"))
async def test_an_offer_is_answered_so(node: NodeProcess, case: dict[str, Any]) -> None:
    offer = f"Sec-WebSocket-Extensions: {case['offer']}\r\n\r\n"
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        peer.writer.write(UPGRADE + offer.encode())
        head = (await peer.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    answer = next((line.split(": ")[1] for line in head if line.startswith("Sec-WebSocket-Extensions: ")), None)
    status = int(head[0].split()[1])
    assert (answer if status == 101 else status) == case["answer"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", named(VECTORS["cases"], "name"))
async def test_a_message_is_inflated_so(node: NodeProcess, case: dict[str, Any]) -> None:
    offer = "Sec-WebSocket-Extensions: permessage-deflate"
    async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port, offer) as peer:
        await peer.say(frame(bytes.fromhex(case["deflated"]), 0xC1))
        if "becomes" in case:
            asked = json.loads(case["becomes"])
            for ping in asked if isinstance(asked, list) else [asked]:
                heard = await peer.hear()
                assert (heard["id"], heard["ok"]) == (ping["id"], "pong")
        else:
            assert await peer.end() == case["close"]
