"""The answers of a real node to hostile requests, by the numbers of the list: 30 to 39 over HTTP; 3, 11, 12, 18, 19 of WebSocket."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.http.requests import get, post
from tests.node_process import NodeProcess, running_node
from tests.raw_client import raw_client

DEADLINE_S = 30
ORIGIN = "https://a.example"
SETTINGS = {
    "client.compression": "true",
    "client.origins": ORIGIN,
    "client.hosts": "a",
    "limits.close_ms_max": 300,
    "limits.message_bytes_max": 65_536,
}
UPGRADE = (
    "GET /v1/live HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
MESSAGES = "/v1/messages?subject=/hostile"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node(SETTINGS) as node:
        yield node
        async with asyncio.timeout(DEADLINE_S), raw_client(node.url) as client:
            assert (await client.ask({"id": 1, "ping": True}))["ok"] == "pong"


async def tell(node: NodeProcess, sent: str | bytes) -> bytes:
    """Everything the node answers until it closes."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(node.host, node.port)
        try:
            writer.write(sent.encode("latin-1") if isinstance(sent, str) else sent)
            return await reader.read(-1)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


def body(text: str, *lines: str) -> str:
    length = f"Content-Length: {len(text.encode())}"
    return post(length, "Connection: close", *lines, target=MESSAGES).replace(
        "text/plain", "application/json"
    ) + text.encode().decode("latin-1")


def asked(target: str, *lines: str) -> str:
    return get("Connection: close", *lines, target=target)


def addressed(host: str, target: str = "/") -> str:
    return get("Connection: close", target=target, host=host)


def coded(text: str, coding: str) -> str:
    return body(text, f"Content-Encoding: {coding}")


CASES = {
    "case 30, deep": (body("[" * 30_000), 400),
    "case 30, the same key twice": (body('{"a":1,"a":1}'), 400),
    "case 30, a number beyond all": (body("1e999999"), 400),
    "case 30, half a pair": (body('"\\ud800"'), 400),
    "case 30, a byte-order sign": (body("\ufeff{}"), 400),
    "case 30, no JSON": (body("nul"), 400),
    "case 30, nothing": (body(""), 400),
    "case 31, a form": (body("a=b").replace("application/json", "application/x-www-form-urlencoded"), 415),
    "case 31, a method": (asked(MESSAGES).replace("GET", "DELETE", 1), 405),
    "case 32, a negative limit": (asked(f"{MESSAGES}&limit=-1"), 400),
    "case 32, a limit that is no number": (asked(f"{MESSAGES}&limit=NaN"), 400),
    "case 32, a limit of 2^63": (asked(f"{MESSAGES}&limit=9223372036854775808"), 200, 400),
    "case 32, a wait of 2^64": (asked(f"{MESSAGES}&limit=1&last=18446744073709551616"), 200, 400),
    "case 32, a position of 2^64": (asked(f"{MESSAGES}&after=7.18446744073709551616"), 400),
    "case 32, no position": (asked(f"{MESSAGES}&after=-1.-1"), 400),
    "case 33, an id of 1 MB": (asked("/v1/stream?subject=/hostile", "Last-Event-ID: " + "1" * 1_000_000), 431),
    "case 34, a line's end in a name": (asked("/v1/messages?subject=/a%0d%0ab"), 400),
    "case 34, a NUL in a name": (asked("/v1/messages?subject=/a%00b"), 400),
    "case 34, no UTF-8 in a name": (asked("/v1/messages?subject=/a%ff"), 400),
    "case 35, a line's end in a key": (body("1", "Idempotency-Key: 0123456789abcdef\rX: y"), 400),
    "case 36, a stranger's page": (asked("/", "Origin: https://b.example"), 403),
    "case 36, a page of our own": (asked("/", f"Origin: {ORIGIN}"), 200),
    "case 36, a page of nowhere": (asked("/", "Origin: null"), 403),
    "case 36, the port that the scheme has anyway": (asked("/", f"Origin: {ORIGIN}:443"), 200),
    "case 36, another port": (asked("/", f"Origin: {ORIGIN}:80"), 403),
    "case 36, a name pointed here": (addressed("evil.example"), 403),
    "case 36, a name pointed here, with a port": (addressed("evil.example:8800"), 403),
    "case 36, an address that is part of a name": (addressed("127.0.0.1.evil.example"), 403),
    "case 36, our name in capitals": (addressed("A:8800"), 200),
    "case 36, an address": (addressed("127.0.0.1:8800"), 200),
    "case 36, an IPv6 address": (addressed("[::1]:8800"), 200),
    "case 36, localhost": (addressed("localhost"), 200),
    "case 36, a program's token": (addressed("evil.example", "/?token=x"), 200),
    "case 36, a program's publish": (body("1").replace("Host: a", "Host: evil.example"), 201),
    "case 36, HTTP/1.0": ("GET / HTTP/1.0\r\n\r\n", 200),
    "case 39, gzip": (coded("1", "gzip"), 415),
    "case 39, two codings": (coded("1", "identity, br"), 415),
    "case 19, an open quote": (f'{UPGRADE}Sec-WebSocket-Extensions: permessage-deflate; a="\r\n\r\n', 400),
    "case 19, a long list": (f"{UPGRADE}Sec-WebSocket-Extensions: {'a;' * 30_000}\r\n\r\n", 431, 400),
    "case 18, beyond ASCII": (f"{UPGRADE}Sec-WebSocket-Protocol: \xe9\r\n\r\n", 400),
    "case 3, a stranger's page upgrades": (f"{UPGRADE}Origin: https://b.example\r\n\r\n", 403),
}


@pytest.mark.parametrize(("case"), [pytest.param(case, id=name) for name, case in CASES.items()])
async def test_a_hostile_request_gets_its_status(node: NodeProcess, case: tuple[str, *tuple[int, ...]]) -> None:
    sent, *statuses = case
    answer = await tell(node, sent)
    assert int(answer[9:12]) in statuses, answer[:300]
    is_allowed = b"Access-Control-Allow-Origin" in answer
    assert (
        is_allowed == (f"Origin: {ORIGIN}\r\n" in sent or f"{ORIGIN}:443" in sent)
        and b"Access-Control-Allow-Credentials" not in answer
    )


@pytest.mark.parametrize(
    "resume_token", ["", "x", "1.2", "9.9.9.ffffffff", "ffff.99999999.0.00000000", "1." * 2_000, "é"]
)
async def test_case_33_an_id_that_is_none_is_a_gap_and_shows_nothing_else(node: NodeProcess, resume_token: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(node.host, node.port)
        target = "/v1/stream?subject=/hostile/ids&subject=/hostile/**"
        writer.write(get(f"Last-Event-ID: {quote(resume_token, safe='')}", target=target).encode())
        answer = b""
        while answer.count(b"event: subscribed\n") < 2:
            read = await reader.read(65_536)
            assert read, answer
            answer += read
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    events = [json.loads(line[6:]) for line in answer.split(b"\n") if line.startswith(b"data: ")]
    outcomes = {event["outcome"] for event in events if "outcome" in event}
    # One that speaks of other subscriptions says nothing of these, which begin as the query says (15.17).
    begins_anew = resume_token == "" or resume_token.count(".") == 3
    assert outcomes == ({"live", "snapshot"} if begins_anew else {"resync"})


async def test_case_38_a_key_that_comes_again_is_one_message_and_other_content_a_conflict(node: NodeProcess) -> None:
    key = "Idempotency-Key: 0123456789abcdef-38"
    first, again = await tell(node, body("1", key)), await tell(node, body("1", key))
    assert first.partition(b"\r\n\r\n")[2] == again.partition(b"\r\n\r\n")[2]
    assert b"Godwit-Duplicate: true" in again and b"Godwit-Duplicate" not in first
    assert (await tell(node, body("2", key))).startswith(b"HTTP/1.1 409 ")


def deflated(payload: bytes, first: int = 0xC1) -> bytes:
    """A client's compressed frame."""
    press = zlib.compressobj(9, zlib.DEFLATED, -15)
    squeezed = (press.compress(payload) + press.flush(zlib.Z_SYNC_FLUSH))[:-4]
    length = bytes([0x80 | len(squeezed)]) if len(squeezed) < 126 else b"\xfe" + struct.pack(">H", len(squeezed))
    return bytes([first]) + length + bytes(4) + squeezed


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(deflated(b" " * 10_000_000), 1009, id="case 11, a bomb, before any login"),
        pytest.param(b"\xc1\x83" + bytes(4) + b"\xff" * 3, 1002, id="case 12, what was never deflated"),
        pytest.param(b"\x01\x81\0\0\0\0a" + b"\xc0\x80\0\0\0\0", 1002, id="case 12, a compressed continuation"),
        pytest.param(deflated(b"\xff\xfe"), 1007, id="case 12, what inflates to no text"),
        pytest.param(deflated(b"x", 0xE1), 1002, id="case 12, another reserved bit"),
    ],
)
async def test_hostile_compression_closes_with_its_code(node: NodeProcess, sent: bytes, code: int) -> None:
    head = f"{UPGRADE}Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=10\r\n\r\n".encode()
    answer = await tell(node, head + sent)
    top, _, frames = answer.partition(b"\r\n\r\n")
    assert b"server_max_window_bits=10" in top
    assert frames[0] == 0x88 and struct.unpack(">H", frames[2:4])[0] == code
