"""TLS on the client port and the admin port, on both drivers: real handshakes, names, versions, reloads, and connections without TLS."""

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.client import Client
from godwit.config import build_config
from godwit.errors import ConfigInvalid
from tests.authority import Authority

DEADLINE_S = 60


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(authority: Authority, driver: str = "auto", **tls: Any) -> dict[str, Any]:
    chain, key = authority.issue("localhost", "127.0.0.1")
    return {
        "node": {"driver": driver},
        "client": {"tls_address": "127.0.0.1:0"},
        "tls": {"certificate_files": [chain], "key_files": [key], **tls},
    }


@pytest.fixture(params=["auto", "readiness"])
async def node(request: pytest.FixtureRequest, authority: Authority) -> AsyncIterator[testing.RunningNode]:
    async with testing.node(settings(authority, request.param)) as running:
        yield running


def merged(made: dict[str, Any]) -> dict[str, Any]:
    """The configuration that a node of these settings has."""
    return testing.FREE_PORTS | {name: {**testing.FREE_PORTS.get(name, {}), **part} for name, part in made.items()}


def url(node: testing.RunningNode) -> str:
    assert node.client_tls is not None
    return f"wss://localhost:{node.client_tls.port}"


def context(authority: Authority, **given: Any) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(authority.file)
    for name, value in given.items():
        setattr(made, name, value)
    return made


async def shake(node: testing.RunningNode, made: ssl.SSLContext, name: str = "localhost") -> tuple[Any, Any]:
    """The certificate's names and the version of one handshake."""
    assert node.client_tls is not None
    _, writer = await asyncio.open_connection("127.0.0.1", node.client_tls.port, ssl=made, server_hostname=name)
    encoding = writer.get_extra_info("ssl_object")
    session = (encoding.getpeercert()["subject"][0][0][1], encoding.version())
    writer.close()
    return session


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_messages_of_every_size_pass_whole_and_in_order(
    node: testing.RunningNode, authority: Authority, encoding: Any
) -> None:
    sizes = [1, 100, 16_000, 16_384, 16_385, 40_000, 65_536, 200_000, 900_000]
    async with (
        Client(url(node), ca_file=authority.file, encoding=encoding) as client,
        Client(url(node), ca_file=authority.file, encoding=encoding) as other,
        Client(node.url) as plain,
    ):
        subscriptions = [one.subscribe("/a/**") for one in (client, other, plain)]
        for subscription in subscriptions:
            await subscription.joined()
        for number, size in enumerate(sizes):
            await client.publish(f"/a/{number % 2}", chr(97 + number) * size)
        for subscription in subscriptions:
            texts = [(await anext(subscription)).text() for _ in sizes]
            assert [(text[0], len(text)) for text in texts] == [(chr(97 + n), size) for n, size in enumerate(sizes)]


async def test_a_slow_consumer_is_told_of_its_gap_and_what_it_gets_is_whole(
    node: testing.RunningNode, authority: Authority
) -> None:
    assert node.client_tls is not None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", node.client_tls.port, ssl=context(authority), server_hostname="localhost", limit=2**24
    )
    key = "dGhlIHNhbXBsZSBub25jZQ=="
    head = (
        "GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    )
    writer.write(f"{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode())
    command = b'{"id":1,"subscribe":"/flood"}'
    writer.write(bytes([0x81, 0x80 | len(command)]) + bytes(4) + command)
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
    async with Client(node.url) as client:
        for _ in range(40):
            await asyncio.gather(*(client.publish("/flood", {"n": "x" * 10_000}) for _ in range(100)))
        last = await client.publish("/flood", {"last": 1})
    writer.transport.resume_reading()  # type: ignore[attr-defined]  # as above
    seen, place = [], 0
    while not seen or seen[-1].get("at") != str(last.position):
        first, second = await reader.readexactly(2)
        size = second
        if second == 126:
            size = int.from_bytes(await reader.readexactly(2))
        elif second == 127:
            size = int.from_bytes(await reader.readexactly(8))
        payload = await reader.readexactly(size)
        if first != 0x81:
            continue
        seen.append(json.loads(payload))
        if "gap" in seen[-1] or "message" in seen[-1]:
            sequence = int(seen[-1]["at"].split(".")[1])
            assert "gap" in seen[-1] or seen[-1].get("snapshot") or sequence == place + 1 or place == 0
            place = sequence
    gaps = [one for one in seen if "gap" in one]
    assert gaps and all(gap["missed"] for gap in gaps)
    writer.close()


async def test_versions_and_suites_are_the_strong_ones(node: testing.RunningNode, authority: Authority) -> None:
    old = ssl.TLSVersion.TLSv1_2
    assert (await shake(node, context(authority)))[1] == "TLSv1.3"
    assert (await shake(node, context(authority, maximum_version=old)))[1] == "TLSv1.2"
    weak = context(authority, maximum_version=old)
    weak.set_ciphers("ECDHE+AES:!AESGCM:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        await shake(node, weak)


async def test_a_newest_only_node_speaks_nothing_else(authority: Authority) -> None:
    made = settings(authority, version_min="1.3", cipher_suites=["TLS13_CHACHA20_POLY1305_SHA256"])
    async with testing.node(made) as node, asyncio.timeout(DEADLINE_S):
        assert (await shake(node, context(authority)))[1] == "TLSv1.3"
        with pytest.raises(ssl.SSLError):
            await shake(node, context(authority, maximum_version=ssl.TLSVersion.TLSv1_2))


async def test_each_name_gets_its_certificate(authority: Authority) -> None:
    made = settings(authority)
    for host in ("a.example", "*.b.example"):
        chain, key = authority.issue(host)
        made["tls"]["certificate_files"].append(chain)
        made["tls"]["key_files"].append(key)
    async with testing.node(made) as node, asyncio.timeout(DEADLINE_S):
        for name, expected in (("a.example", "a.example"), ("x.b.example", "*.b.example"), ("localhost", "localhost")):
            assert (await shake(node, context(authority), name))[0] == expected
        for name in ("elsewhere.example", "b.example", "x.y.b.example"):
            with pytest.raises(ssl.SSLCertVerificationError):
                await shake(node, context(authority), name)


async def test_a_new_certificate_is_shown_to_who_comes_and_nobody_is_dropped(authority: Authority) -> None:
    made = settings(authority)
    async with (
        testing.node(made) as node,
        asyncio.timeout(DEADLINE_S),
        Client(url(node), ca_file=authority.file) as client,
    ):
        subscription = client.subscribe("/a")
        await subscription.joined()
        other = Authority(authority.folder, "Another authority")
        other.issue("localhost", "127.0.0.1")  # over the files there are
        table = merged(made)
        await node.node.reload(build_config(table, {}, {}))
        with pytest.raises(ssl.SSLCertVerificationError):
            await shake(node, context(authority))
        assert (await shake(node, context(other)))[0] == "localhost"
        await client.publish("/a", 1)
        assert (await anext(subscription)).json() == 1
        await asyncio.to_thread(Path(made["tls"]["key_files"][0]).write_text, "broken")
        with pytest.raises(ConfigInvalid, match="tls"):
            await node.node.reload(build_config(table, {}, {}))
        assert (await shake(node, context(other)))[0] == "localhost"
        await client.publish("/a", 2)
        assert (await anext(subscription)).json() == 2


async def test_a_file_that_the_admin_port_cannot_use_changes_the_client_ports_neither(authority: Authority) -> None:
    made = settings(authority) | {"admin": {"tls": True}}
    async with testing.node(made) as node, asyncio.timeout(DEADLINE_S):
        chain, _ = Authority(authority.folder, "Another authority").issue("localhost", "127.0.0.1")
        rest = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"  # which no client port looks into
        await asyncio.to_thread(lambda: Path(chain).write_text(Path(chain).read_text("ascii") + rest))
        with pytest.raises(ConfigInvalid, match="cannot be used"):
            await node.node.reload(build_config(merged(made), {}, {}))
        assert (await shake(node, context(authority)))[0] == "localhost"


@pytest.mark.parametrize(
    "first",
    [b"GET /v1/live HTTP/1.1\r\nHost: h\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 70_000, b"\x80\x2e\x01\x00\x02" * 20, b"\0" * 500],
)  # fmt: skip
async def test_what_is_no_tls_is_closed_and_others_live(
    node: testing.RunningNode, authority: Authority, first: bytes
) -> None:
    assert node.client_tls is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", node.client_tls.port)
    writer.write(first)
    with contextlib.suppress(ConnectionResetError):
        assert len(await reader.read()) < 100
    writer.close()
    async with Client(url(node), ca_file=authority.file) as client:
        await client.publish("/a", 1)


async def test_a_handshake_in_the_smallest_pieces_is_one(node: testing.RunningNode, authority: Authority) -> None:
    assert node.client_tls is not None
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    shaking = context(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    reader, writer = await asyncio.open_connection("127.0.0.1", node.client_tls.port)
    writer.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        try:
            shaking.do_handshake()
            break
        except ssl.SSLWantReadError:
            for byte in outgoing.read():
                writer.write(bytes([byte]))
                await asyncio.sleep(0)
            incoming.write(await reader.read(65_536))
    shaking.write(b"GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n")
    for byte in outgoing.read():
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    said = b""
    while b"\r\n\r\n" not in said:
        incoming.write(await reader.read(65_536))
        try:
            said += shaking.read(65_536)
        except ssl.SSLWantReadError:
            continue
    assert said.startswith(b"HTTP/1.1 404")
    writer.close()


async def test_the_admin_port_speaks_tls_too(authority: Authority) -> None:
    made = settings(authority)
    made["admin"] = {"tls": True}
    async with testing.node(made) as node, aiohttp.ClientSession() as http, asyncio.timeout(DEADLINE_S):
        path = f"https://127.0.0.1:{node.admin.port}/health/ready"
        async with http.get(path, ssl=context(authority)) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("tls", "why"),
    [
        ({"key_files": []}, "one file for each"),
        ({"certificate_files": [], "key_files": []}, "needs tls.certificate_files"),
        ({"certificate_files": ["/nothing.pem"]}, "nothing.pem"),
        ({"client_certificates": "required"}, "client_authorities_file"),
        ({"cipher_suites": ["TLS_RSA_WITH_3DES"]}, "expected some of"),
    ],
)
async def test_what_cannot_be_is_refused_before_a_port_opens(
    authority: Authority, tls: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        async with testing.node(settings(authority, **tls)):
            pass
