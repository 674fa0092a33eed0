"""Hostile HTTP requests: invalid bodies, media types, numbers and ids, forged events and fields, guessed tokens."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from godwit import testing
from tests.hostile.peer import DEADLINE_S, Peer, request
from tests.node_process import NodeProcess, running_node

TEXT = "Content-Type: text/plain"
JSON = "Content-Type: application/json"
PRODUCE = "/v1/messages?subject=/a"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node({"limits.handshake_ms_max": 3000, "limits.message_ms_max": 3000}) as node:
        yield node
        assert await status(node, request("POST", PRODUCE, TEXT, body=b"x")) == 201


async def status(node: NodeProcess, *pieces: bytes) -> int:
    """What a request is answered with; 0 where the connection just ends."""
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(*pieces)
        return await peer.status()


async def whole(node: NodeProcess, sent: bytes) -> str:
    """All that is answered to a last request."""
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(sent)
        return (await peer.rest()).decode()


@pytest.mark.asyncio(loop_scope="module")
async def test_27_a_body_over_the_limit_is_413_and_a_slow_one_408(node: NodeProcess) -> None:
    assert await status(node, request("POST", PRODUCE, TEXT, "Content-Length: 1048577")) == 413
    assert await status(node, request("POST", PRODUCE, TEXT, "Content-Length: 99999999999999999999")) in (400, 413)
    chunked = request("POST", PRODUCE, TEXT, "Transfer-Encoding: chunked") + b"100001\r\n" + b"x" * 0x100001
    assert await status(node, chunked) == 413
    assert await status(node, request("POST", PRODUCE, TEXT, "Content-Length: 5") + b"he") == 408


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":1,"a":2}',
        b"1e",
        b"1e999999",
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b"nul",
        b"",
        b"{} {}",
        b'{"a":\x00}',
    ],
)
async def test_30_what_is_no_json_is_400_at_once(node: NodeProcess, body: bytes) -> None:
    assert await status(node, request("POST", PRODUCE, JSON, body=body)) == 400


@pytest.mark.asyncio(loop_scope="module")
async def test_31_another_media_type_is_415_and_another_method_405_with_what_is_allowed(node: NodeProcess) -> None:
    assert await status(node, request("POST", "/v1/messages", TEXT, body=b"[]")) == 415
    assert await status(node, request("POST", PRODUCE, "Content-Type: x/", body=b"1")) in (201, 415)
    for method, path, allowed in (
        ("PUT", PRODUCE, "POST"),
        ("PUT", "/v1/snapshot?subject=/a", "DELETE"),
        ("PUT", "/v1/stream?subject=/a", "GET"),
    ):
        answered = await whole(node, request(method, path, "Connection: close", "Content-Length: 0"))
        line = next(line for line in answered.split("\r\n") if line.startswith("Allow: "))
        assert answered.startswith("HTTP/1.1 405 ") and allowed in line and method not in line


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=-1", (400,)),
        ("limit=9223372036854775808", (200,)),
        ("limit=NaN", (400,)),
        ("limit=1e3", (400,)),
        ("last=-5", (400,)),
        ("last=18446744073709551616", (400,)),
        ("after=-1.5", (400,)),
        ("after=1", (400,)),
        ("after=9223372036854775808.1", (200,)),
        ("after=99999999999999999999.1", (400,)),
        ("wait=-1", (400,)),
        ("wait=1e400", (400,)),
        ("conflate_ms=-1", (400,)),
        ("nothing=1", (400,)),
        ("limit=1&limit=2", (400,)),
    ],
)
async def test_32_numbers_that_are_none_are_refused_or_bounded(
    node: NodeProcess, query: str, expected: tuple[int, ...]
) -> None:
    assert await status(node, request("GET", f"{PRODUCE}&{query}")) in expected


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "last_id", ["garbage", "1.99999999999", "99999999999999.7", "-1.-1", "a.b.c", "é", "0.0", "1" * 8_000]
)
async def test_33_a_stream_whose_last_id_cannot_be_served_says_so_and_goes_on(node: NodeProcess, last_id: str) -> None:
    assert await status(node, request("POST", "/v1/messages?subject=/secret", TEXT, body=b"hidden")) == 201
    assert await status(node, request("POST", "/v1/messages?subject=/ids", TEXT, body=b"first")) == 201
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(request("GET", "/v1/stream?subject=/ids", f"Last-Event-ID: {last_id}"))
        assert (await peer.head()).startswith(b"HTTP/1.1 200 ")
        assert await status(node, request("POST", "/v1/messages?subject=/ids", TEXT, body=b"second")) == 201
        heard = (await peer.reader.readuntil(b"second")).decode()
        assert "hidden" not in heard and "/secret" not in heard
        assert '"gap":"/ids"' in heard and '"outcome":"resync"' in heard


@pytest.mark.asyncio(loop_scope="module")
async def test_34_no_event_is_forged_by_a_subject_an_id_or_a_line_end(node: NodeProcess) -> None:
    for subject in ("/a%0aevent:%20forged", "/a%0d%0aid:%201", "/a%00"):
        assert await status(node, request("POST", f"/v1/messages?subject={subject}", TEXT, body=b"x")) == 400
        assert await status(node, request("GET", f"/v1/stream?subject={subject}")) == 400
    async with asyncio.timeout(DEADLINE_S), Peer.open(node.host, node.port) as peer:
        await peer.say(request("GET", "/v1/stream?subject=/lines"))
        assert (await peer.head()).startswith(b"HTTP/1.1 200 ")
        forged = b"one\r\n\r\nevent: forged\r\ndata: two\rid: 9\n\ndata: three"
        assert await status(node, request("POST", "/v1/messages?subject=/lines", TEXT, body=forged)) == 201
        heard = (await peer.reader.readuntil(b"three") + await peer.reader.readuntil(b"\n\n")).decode()
        rest = heard.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert not any(line.startswith(("event: forged", "data: two", "id: 9", "data: three")) for line in rest)
        assert any(
            json.loads(line[5:])["text"].encode() == forged
            for line in rest
            if line.startswith("data:") and "forged" in line
        )


@pytest.mark.asyncio(loop_scope="module")
async def test_35_no_field_of_an_answer_is_forged(node: NodeProcess) -> None:
    for target, fields in (
        ("/v1/messages?subject=/a%0d%0aSet-Cookie:%20a", (TEXT,)),
        ("/v1/x%0d%0aSet-Cookie:%20a", (TEXT,)),
        (PRODUCE, (TEXT, "Origin: https://a.example%0d%0aSet-Cookie: a")),
        (PRODUCE, ("Content-Type: text/plain%0d%0aSet-Cookie: a",)),
    ):
        answered = await whole(node, request("POST", target, *fields, "Connection: close", body=b"x"))
        assert "\r\nSet-Cookie" not in answered.partition("\r\n\r\n")[0], answered


async def test_36_a_foreign_page_is_given_nothing_and_nobody_both_a_star_and_credentials() -> None:
    async with testing.node({"client": {"origins": ["https://app.example"]}}) as node, asyncio.timeout(DEADLINE_S):
        for origin, is_known in (("https://app.example", True), ("https://evil.example", False), ("null", False)):
            async with Peer.open(node.client.host, node.client.port) as peer:
                await peer.say(request("GET", "/v1/snapshot?subject=/a", f"Origin: {origin}"))
                head = (await peer.head()).decode()
                assert (f"Access-Control-Allow-Origin: {origin}" in head) is is_known, head
                assert "Allow-Credentials" not in head
    async with (
        testing.node() as node,
        asyncio.timeout(DEADLINE_S),
        Peer.open(node.client.host, node.client.port) as peer,
    ):
        await peer.say(
            request("OPTIONS", PRODUCE, "Origin: https://any.example", "Access-Control-Request-Method: POST")
        )
        head = (await peer.head()).decode()
        assert "Access-Control-Allow-Origin: *" in head and "Allow-Credentials" not in head


async def test_37_a_guessed_token_is_401_and_after_some_429_with_a_time_to_come_again() -> None:
    settings: dict[str, Any] = {
        "access": {"mode": "basic", "publish_tokens": ["correct-horse-battery-staple"]},
        "limits": {"token_failures_per_minute_per_address_max": 5},
    }
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):

        async def shown(token: str) -> str:
            async with Peer.open(node.client.host, node.client.port) as peer:
                await peer.say(request("POST", PRODUCE, TEXT, f"Authorization: Bearer {token}", body=b"x"))
                return (await peer.head()).decode()

        answered = [(await shown(f"guess-{number}"))[9:12] for number in range(8)]
        assert answered == ["401"] * 5 + ["429"] * 3
        assert "\r\nRetry-After: " in await shown("guess")
        while 4208 not in {row["code"] for row in node.node.refusals.list()}:
            await shown("guess")  # operators see who guesses: reports come in batches, a moment later


@pytest.mark.asyncio(loop_scope="module")
async def test_38_a_key_again_is_the_same_answer_and_one_message(node: NodeProcess) -> None:
    key = "Idempotency-Key: 0123456789abcdef-0"
    answered = [
        await whole(node, request("POST", "/v1/messages?subject=/keyed", TEXT, key, "Connection: close", body=b"x"))
        for _ in range(3)
    ]
    bodies = {one.partition("\r\n\r\n")[2] for one in answered}
    assert len(bodies) == 1 and all(one.startswith("HTTP/1.1 201 ") for one in answered)
    assert await status(node, request("POST", "/v1/messages?subject=/keyed", TEXT, key, body=b"other")) == 409
    array = request("POST", "/v1/messages", "Content-Type: application/json", key, body=b"[]")
    assert await status(node, array) == 400, "of several each has its own"
    listed = await whole(node, request("GET", "/v1/messages?subject=/keyed&last=10", "Connection: close"))
    assert len(json.loads(listed.partition("\r\n\r\n")[2])) == 1


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "gzip, gzip"])
async def test_39_a_compressed_body_is_415_and_never_unpacked(node: NodeProcess, coding: str) -> None:
    body = gzip.compress(bytes(900_000_000 // 1_000)) * 3
    assert await status(node, request("POST", PRODUCE, TEXT, f"Content-Encoding: {coding}", body=body)) == 415
