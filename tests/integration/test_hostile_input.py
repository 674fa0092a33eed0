"""A hostile peer gets its code from a real node, and other clients are not affected."""

from __future__ import annotations

import asyncio
import json
import os
import struct
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.node_process import NodeProcess, running_node
from tests.raw_client import raw_client

DEADLINE_S = 20
QUICK = {"limits.handshake_ms_max": 3000, "limits.message_ms_max": 3000, "limits.close_ms_max": 500}
HEAD = (
    "GET /v1/live HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PING = b'{"id":1,"ping":true}'


def frame(payload: bytes, opcode: int = 1, *, first: int | None = None, mask: bytes = b"abcd") -> bytes:
    """A client's frame; `first` overrides the first byte, an empty mask leaves the mask out."""
    head = bytes([0x80 | opcode if first is None else first])
    bit = 0x80 if mask else 0
    if len(payload) < 126:
        head += bytes([bit | len(payload)])
    elif len(payload) < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", len(payload))
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", len(payload))
    masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)) if mask else payload
    return head + mask + masked


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node(QUICK) as node:
        yield node
        async with asyncio.timeout(DEADLINE_S), raw_client(node.url) as client:
            assert (await client.ask({"id": 1, "ping": True}))["ok"] == "pong"


async def tell(node: NodeProcess, *pieces: bytes) -> bytes:
    """Everything the node answers until it closes; it must close. Its close frame is answered, so that it need not wait."""
    answer, is_closed = b"", False
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(node.host, node.port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            while read := await reader.read(65_536):
                answer += read
                if not is_closed and answer.startswith(b"HTTP/1.1 101 ") and close_code(answer):
                    is_closed = True
                    writer.write(frame(struct.pack(">H", 1000), 8))
            return answer
        except ConnectionResetError:
            return answer  # the node did not wait for what we answered, or has not read all that it refused
        finally:
            writer.close()


def close_code(answer: bytes) -> int:
    """The code of the close frame that ends what was answered after 101."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 "), answer
    code = 0
    while rest:
        length, begin = rest[1], 2
        if length == 126:
            length, begin = int.from_bytes(rest[2:4], "big"), 4
        if rest[0] == 0x88:
            code = int.from_bytes(rest[2:4], "big")
        rest = rest[begin + length :]
    return code


HEADS = {
    "case 1, another version": (HEAD.replace("Version: 13", "Version: 8"), 426),
    "case 2, no key": (HEAD.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""), 400),
    "case 2, no upgrade": (HEAD.replace("Upgrade: websocket\r\n", ""), 400),
    "case 2, a POST": (HEAD.replace("GET", "POST"), 405),
    "case 17, a long line": (HEAD.replace("Host", "X: " + "x" * 100_000 + "\r\nHost"), 431),
    "case 17, many fields": (HEAD.replace("Host", "X: 1\r\n" * 10_000 + "Host"), 431),
    "case 18, blanks": (HEAD.replace("Host", "Sec-WebSocket-Protocol: " + " " * 65_536 + "\r\nHost"), 431),
    "case 20, a body": (HEAD.replace("Host", "Content-Length: 5\r\nHost") + "hello", 413),
    "case 24, two framings": (HEAD.replace("Host", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\nHost"), 400),
    "case 25, a bare line feed": (HEAD.replace("\r\nHost", "\nHost"), 400),
    "case 26, two hosts": (HEAD.replace("Host: a", "Host: a\r\nHost: b"), 400),
    "case 26, HTTP/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "case 26, HTTP/0.9": ("GET /\r\n", 400),
    "case 28, a hundred and a wait": (HEAD.replace("Host", "Expect: 100-continue\r\nHost"), 417),
    "case 29, a way out": (HEAD.replace("/v1/live", "/v1/%2e%2e/live"), 404),
    "another protocol": ("\x16\x03\x01\x02\x00\x01\x00\x01\n", 400),
}
FRAMES = {
    "case 4, unmasked": (frame(PING, mask=b""), 1002),
    "case 5, a reserved bit": (frame(PING, first=0xC1), 1002),
    "case 5, a reserved opcode": (frame(PING, 3), 1002),
    "case 6, a long ping": (frame(b"x" * 126, 9), 1002),
    "case 6, half a ping": (frame(b"x", first=0x09), 1002),
    "case 7, a continuation of nothing": (frame(PING, 0), 1002),
    "case 7, a message in a message": (frame(b"x", first=0x01) + frame(PING), 1002),
    "case 8, no text": (frame(b"\xff"), 1007),
    "case 8, no text in the first fragment": (frame(b"a\xe2(", first=0x01), 1007),
    "case 9, an endless length": (b"\x82\xff\x7f" + b"\xff" * 7 + b"abcd", 1009),
    "case 9, a negative length": (b"\x82\xff\x80" + b"\x00" * 7 + b"abcd", 1002),
    "case 10, a long message": (frame(b" " * 1_048_577), 1009),
    "case 10, many fragments": (frame(b"", first=0x01) + frame(b"", first=0x00) * 20_000, 1009),
    "case 13, a code that may not be sent": (frame(struct.pack(">H", 1005), 8), 1002),
    "case 13, half a code": (frame(b"\x03", 8), 1002),
    "case 13, a reason that is no text": (frame(struct.pack(">H", 1000) + b"\xff", 8), 1007),
    "a polite end": (frame(struct.pack(">H", 1000) + b"bye", 8), 1000),
    "bytes on the text wire": (frame(PING, 2), 1003),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("head", "status"), [pytest.param(*case, id=name) for name, case in HEADS.items()])
async def test_a_bad_head_is_refused_and_the_connection_closed(node: NodeProcess, head: str, status: int) -> None:
    answer = await tell(node, head.encode("latin-1") + frame(PING))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    top, _, body = answer.partition(b"\r\n\r\n")
    assert json.loads(body)["status"] == status
    assert b"Connection: close" in top


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("bytes_", "code"), [pytest.param(*case, id=name) for name, case in FRAMES.items()])
async def test_a_bad_frame_closes_with_its_code(node: NodeProcess, bytes_: bytes, code: int) -> None:
    answer = await tell(node, HEAD.encode(), bytes_)
    assert close_code(answer) == code


@pytest.mark.asyncio(loop_scope="module")
async def test_frames_that_came_with_the_head_are_served(node: NodeProcess) -> None:
    answer = await tell(node, HEAD.encode() + frame(PING) + frame(struct.pack(">H", 1000), 8))
    assert b'{"id":1,"ok":"pong"' in answer
    assert close_code(answer) == 1000


@pytest.mark.asyncio(loop_scope="module")
async def test_a_slow_head_is_timed_out(node: NodeProcess) -> None:
    answer = await tell(node, HEAD[:50].encode())
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_slow_message_is_timed_out(node: NodeProcess) -> None:
    assert close_code(await tell(node, HEAD.encode(), frame(PING)[:9])) == 4203


@pytest.mark.asyncio(loop_scope="module")
async def test_a_flood_of_pings_is_answered_within_bounds(node: NodeProcess) -> None:
    flood = frame(b"x" * 100, 9) * 20_000
    answer = await tell(node, HEAD.encode(), flood + frame(struct.pack(">H", 1000), 8))
    assert close_code(answer) in {1000, 1008}


@pytest.mark.asyncio(loop_scope="module")
async def test_noise_of_any_kind_ends_in_a_close(node: NodeProcess) -> None:
    noise = [[os.urandom(2000) + b"\n"] for _ in range(20)] + [[HEAD.encode(), os.urandom(2000)] for _ in range(20)]
    await asyncio.gather(*(tell(node, *pieces) for pieces in noise))


@pytest.mark.asyncio(loop_scope="module")
async def test_bad_json_is_an_error_and_the_session_lives(node: NodeProcess) -> None:
    cases = [
        "[" * 100_000,
        '{"a":1,"a":1}',
        '{"publish":"/a","content":{"a":1,"a":1}}',
        '{"publish":"/a","content":1e999999}',
        '"\\ud800"',
        "\ufeff{}",
        "nul",
    ]
    async with asyncio.timeout(DEADLINE_S), raw_client(node.url) as client:
        for text in cases:
            await client.socket.send(text)
            answer = await client.receive()
            assert answer is not None and 4100 <= answer["error"] < 4200
        assert (await client.ask({"id": 1, "ping": True}))["ok"] == "pong"
