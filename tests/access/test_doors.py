"""How a client reaches a real node: PROXY headers and forwarded addresses, trusted from listed proxies only;
roles of listeners; origins; addresses that may publish.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from godwit import testing
from godwit.errors import ConfigInvalid
from tests.authority import Authority
from tests.mqtt import packets

DEADLINE_S = 60
POST = (
    "POST /v1/messages?subject=/a HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\n{more}Content-Length: 1\r\n\r\nx"
)
UPGRADE = (
    "GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
)
NEAR, FAR = "10.1.2.3", "192.0.2.1"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def one(address: str, *, version: int = 0x21) -> bytes:
    """A PROXY header of version 2 that names an IPv4 address."""
    body = socket.inet_aton(address) + socket.inet_aton("127.0.0.1") + struct.pack(">HH", 4711, 8800)
    return SIGNATURE + bytes([version, 0x11]) + struct.pack(">H", len(body)) + body


def line(address: str) -> bytes:
    return f"PROXY TCP4 {address} 127.0.0.1 4711 8800\r\n".encode()


async def tell(port: int, *pieces: bytes, made: ssl.SSLContext | None = None) -> bytes:
    """All that is answered until the connection ends, or until an answer is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if made is not None:
            await writer.start_tls(made, server_hostname="localhost")
            writer.write(POST.format(more="").encode())
        answer = b""
        while b"\r\n\r\n" not in answer and (read := await reader.read(65_536)):
            answer += read
        return answer
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def status(answer: bytes) -> int:
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else 0


async def say(node: testing.RunningNode, *pieces: bytes) -> int:
    return status(await tell(node.client.port, *pieces))


@pytest.fixture
async def behind() -> AsyncIterator[testing.RunningNode]:
    """A node behind a proxy that begins each connection with a header; only 10.0.0.0/8 may publish."""
    settings: dict[str, Any] = {
        "client": {"trusted_proxies": ["127.0.0.0/8"], "proxy_protocol": True},
        "mqtt": {"proxy_protocol": True},
        "access": {"publisher_addresses": ["10.0.0.0/8"]},
        "limits": {"handshake_ms_max": 1500},
    }
    async with testing.node(settings) as running:
        yield running


@pytest.mark.parametrize("header", [line, one])
async def test_a_proxys_header_says_where_a_client_comes_from(behind: testing.RunningNode, header: Any) -> None:
    post = POST.format(more="").encode()
    assert await say(behind, header(NEAR) + post) == 201
    assert await say(behind, header(FAR) + post) == 403
    whole = header(NEAR) + post
    assert await say(behind, *(whole[n : n + 1] for n in range(len(whole)))) == 201, "byte by byte"
    rows, _ = await asyncio.to_thread(behind.node.engine.connections, 0, 10, "10.1.2.3", False)
    assert all(row["address"] == f"{NEAR}:4711" for row in rows)


@pytest.mark.parametrize(
    "first",
    [
        POST.format(more="").encode(),
        b"PROXY TCP4 10.1.2.3 127.0.0.1 4711\r\n" + POST.format(more="").encode(),
        b"PROXY TCP4 10.1.2.3 " + b"1" * 200 + b"\r\n",
        SIGNATURE + b"\x21\x11\x00\x04\x0a\x01\x02\x03" + POST.format(more="").encode(),
        SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\xff\xff" + bytes(70_000),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\0" * 300,
    ],
)
async def test_what_is_no_header_is_closed_without_an_answer(behind: testing.RunningNode, first: bytes) -> None:
    assert await tell(behind.client.port, first) == b""
    assert await say(behind, line(NEAR) + POST.format(more="").encode()) == 201
    while not (rows := behind.node.refusals.list()):
        await asyncio.to_thread(behind.node.engine.stats)  # reports come in batches, a moment later
    assert (rows[0]["name"], rows[0]["reason"]) == ("HandshakeBroken", "the header of the proxy is broken")


@pytest.mark.parametrize("part", [b"", b"PROX", line(NEAR)[:-1], one(NEAR)[:20]])
async def test_a_header_that_never_ends_is_given_up_in_time(behind: testing.RunningNode, part: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", behind.client.port)
    writer.write(part)
    assert await reader.read() == b""
    writer.close()


async def test_a_header_from_a_stranger_is_nothing_but_a_bad_request() -> None:
    settings: dict[str, Any] = {
        "client": {"trusted_proxies": ["192.0.2.0/24"], "proxy_protocol": True},
        "access": {"publisher_addresses": ["10.0.0.0/8"]},
    }
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        for header in (line(NEAR), one(NEAR)):
            assert await say(node, header + POST.format(more="").encode()) == 400
        assert await say(node, POST.format(more="").encode()) == 403
        assert await say(node, POST.format(more=f"X-Forwarded-For: {NEAR}\r\n").encode()) == 403


async def test_a_header_stands_before_mqtt_and_before_tls_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    chain, key = authority.issue("localhost")
    settings: dict[str, Any] = {
        "client": {"trusted_proxies": ["127.0.0.0/8"], "proxy_protocol": True, "tls_address": "127.0.0.1:0"},
        "mqtt": {"proxy_protocol": True},
        "access": {"publisher_addresses": ["10.0.0.0/8"]},
        "tls": {"certificate_files": [chain], "key_files": [key]},
    }
    made = ssl.create_default_context(cafile=str(authority.file))
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        assert node.client_tls is not None and node.mqtt is not None
        for address, expected in ((NEAR, 201), (FAR, 403)):
            assert status(await tell(node.client_tls.port, line(address), made=made)) == expected
            reader, writer = await asyncio.open_connection("127.0.0.1", node.mqtt.port)
            writer.write(one(address) + packets.connect("d") + packets.publish("a", b"1", 1))
            first, length = await reader.readexactly(2)
            await reader.readexactly(length)
            assert first == 0x20
            _, length = await reader.readexactly(2)
            assert ((await reader.readexactly(length))[-1] == 0x87) is (expected == 403)
            writer.close()


async def test_a_forwarded_address_is_taken_from_a_trusted_proxy_request_by_request() -> None:
    settings: dict[str, Any] = {
        "client": {"trusted_proxies": ["127.0.0.1", "192.168.0.0/16"]},
        "access": {"publisher_addresses": ["10.0.0.0/8"]},
    }
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        for forwarded, expected in (
            (NEAR, 201),
            (FAR, 403),
            (f"{NEAR}, {FAR}", 403),
            (f"{FAR}, {NEAR}", 201),
            (f"{FAR}, {NEAR}, 192.168.1.1", 201),
            (f"{NEAR}, unknown", 403),
            (f"{FAR}, {NEAR}:4711, 192.168.1.1:80", 201),
            (f"{NEAR}, {FAR}:4711", 403),
            (f"{NEAR}:x", 403),
            ("", 403),
        ):
            more = f"X-Forwarded-For: {forwarded}\r\n" if forwarded else ""
            assert await say(node, POST.format(more=more).encode()) == expected, forwarded


async def test_listeners_of_a_role_take_nothing_else_on_any_protocol() -> None:
    roles: dict[str, Any] = {"client": {"role": "subscribe"}, "mqtt": {"role": "publish"}}
    async with testing.node(roles) as node, asyncio.timeout(DEADLINE_S):
        assert await say(node, POST.format(more="").encode()) == 403
        assert await say(node, b"GET /v1/messages?subject=/a HTTP/1.1\r\nHost: h\r\n\r\n") == 200
        assert node.mqtt is not None
        with packets.Peer((node.mqtt.host, node.mqtt.port), packets.V5) as peer:
            await asyncio.to_thread(peer.join, packets.connect("d"))
            granted = await asyncio.to_thread(peer.granted, ("a", 1))
            assert granted == b"\x87"
            peer.send(packets.publish("a", b"1", 1))
            assert (await asyncio.to_thread(peer.receive))[-1] not in (0x87,)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://app.example", 101),
        ("https://app.example.evil", 403),
        ("http://app.example", 403),
        ("https://app.example:444", 403),
        ("null", 403),
        ("", 101),
    ],
)
async def test_case_3_a_page_of_another_origin_is_refused_before_the_upgrade(origin: str, expected: int) -> None:
    async with testing.node({"client": {"origins": ["https://app.example"]}}) as node, asyncio.timeout(DEADLINE_S):
        more = f"Origin: {origin}\r\nCookie: session=1\r\n" if origin else ""
        assert await say(node, UPGRADE.format(more=more).encode()) == expected
        assert await say(node, POST.format(more=more).encode()) == (201 if expected == 101 else 403)


async def test_lists_that_are_none_are_refused_before_a_port_opens() -> None:
    for settings in (
        {"client": {"trusted_proxies": ["10.0.0.1/8"]}},
        {"access": {"publisher_addresses": ["here"]}},
        {"client": {"origins": ["app.example"]}},
        {"client": {"role": "admin"}},
    ):
        with pytest.raises(ConfigInvalid):
            async with testing.node(settings):
                pass
