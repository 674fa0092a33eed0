"""Client certificates as identities: real handshakes with real certificates, the same permissions on every protocol, also MQTT over TLS."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.access.revocation import Revocation
from godwit.config import build_config
from tests.authority import Authority
from tests.mqtt import packets

DEADLINE_S = 60


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(authority: Authority, *, certificates: str = "required", part: str = "subject_cn") -> dict[str, Any]:
    chain, key = authority.issue("localhost", "127.0.0.1")
    return {
        "client": {"tls_address": "127.0.0.1:0"},
        "mqtt": {"tls_address": "127.0.0.1:0"},
        "access": {
            "mode": "basic",
            "publish_tokens": ["correct-horse-battery-staple"],
            "certificate_publish": ["/devices/{identity}/**"],
        },
        "tls": {
            "certificate_files": [chain],
            "key_files": [key],
            "client_certificates": certificates,
            "client_authorities_file": str(authority.file),
            "client_identity": part,
        },
    }


def context(authority: Authority, client: str = "", **issued: Any) -> ssl.SSLContext:
    """A client's side: whom it believes, and the certificate it shows."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(authority.file)
    if client:
        made.load_cert_chain(*authority.issue(client=client, **issued))
    return made


async def post(node: testing.RunningNode, made: ssl.SSLContext, subject: str, **headers: str) -> int:
    assert node.client_tls is not None
    url = f"https://localhost:{node.client_tls.port}/v1/messages?subject={subject}"
    headers = {"Content-Type": "text/plain", **headers}
    async with aiohttp.ClientSession() as http, http.post(url, data="x", ssl=made, headers=headers) as answer:
        return answer.status


@asynccontextmanager
async def websocket(node: testing.RunningNode, made: ssl.SSLContext) -> AsyncIterator[Any]:
    assert node.client_tls is not None
    url = f"https://localhost:{node.client_tls.port}/v1/live"
    async with aiohttp.ClientSession() as http, http.ws_connect(url, ssl=made) as socket:
        yield socket


async def ask(socket: Any, command: dict[str, Any]) -> dict[str, Any]:
    await socket.send_json(command)
    while (reply := await socket.receive_json()).get("id") != command["id"]:
        pass
    return dict(reply)


class Device:
    """An MQTT client over TLS, in bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, node: testing.RunningNode, made: ssl.SSLContext) -> Device:
        assert node.mqtt_tls is not None
        opened = await asyncio.open_connection("127.0.0.1", node.mqtt_tls.port, ssl=made, server_hostname="localhost")
        return cls(*opened)

    async def ask(self, packet: bytes) -> bytes:
        """Sends one and reads one."""
        self.writer.write(packet)
        first, length = await self.reader.readexactly(2)
        return bytes([first]) + await self.reader.readexactly(length)


async def test_a_certificates_holder_has_the_same_rights_on_every_protocol(authority: Authority) -> None:
    async with testing.node(settings(authority)) as node, asyncio.timeout(DEADLINE_S):
        made = context(authority, "d1")
        assert await post(node, made, "/devices/d1/t") == 201
        assert await post(node, made, "/devices/d2/t") == 403
        async with websocket(node, made) as socket:
            assert (await ask(socket, {"id": 1, "publish": "/devices/d1/t", "content": 1}))["ok"] == "published"
            assert (await ask(socket, {"id": 2, "publish": "/devices/d2/t", "content": 1}))["error"] == 4114
            assert (await ask(socket, {"id": 3, "subscribe": "/devices/d2/t"}))["ok"] == "subscribed"
        device = await Device.open(node, made)
        assert (await device.ask(packets.connect("x")))[2] == 0
        assert (await device.ask(packets.publish("devices/d1/t", b"1", 1)))[-1] != 0x87
        assert (await device.ask(packets.publish("devices/d2/t", b"1", 1)))[-1] == 0x87, "not authorized"
        rows, _ = await asyncio.to_thread(node.node.engine.connections, 0, 10, None, False)
        assert {row["identity"] for row in rows} == {"d1"}
        device.writer.close()


async def test_who_is_revoked_is_closed_and_not_let_in_again(authority: Authority) -> None:
    async with testing.node(settings(authority)) as node, asyncio.timeout(DEADLINE_S):
        made = context(authority, "d1")
        async with websocket(node, made) as socket:
            await ask(socket, {"id": 1, "ping": True})
            await node.node.revoke(Revocation(identity="d1"))
            while (await socket.receive()).type is not aiohttp.WSMsgType.CLOSE:
                pass
            assert socket.close_code == 4005
        assert await post(node, made, "/devices/d1/t") == 401
        assert await post(node, context(authority, "d2"), "/devices/d2/t") == 201


async def test_where_certificates_are_required_nobody_comes_without_a_good_one(authority: Authority) -> None:
    async with testing.node(settings(authority)) as node, asyncio.timeout(DEADLINE_S):
        stranger = Authority(authority.folder, "Stranger")
        foreign = context(authority)
        foreign.load_cert_chain(*stranger.issue(client="d1", file="foreign"))
        past = context(authority)
        past.load_cert_chain(*authority.issue(client="d1", file="past", lives=datetime.timedelta(hours=-1)))
        for made in (context(authority), foreign, past):
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await post(node, made, "/devices/d1/t")
        assert await post(node, context(authority, "d1"), "/devices/d1/t") == 201
        while len(rows := node.node.refusals.list()) < 3:
            await asyncio.to_thread(node.node.engine.stats)  # reports come in batches, a moment later
        assert [row["name"] for row in rows] == ["HandshakeBroken"] * 3
        reasons = [row["reason"] for row in reversed(rows)]
        assert "sent no certificates" in reasons[0] and "expired" in reasons[2], reasons


async def test_where_they_are_optional_a_token_serves_as_well_and_decides_where_both_are_shown(
    authority: Authority,
) -> None:
    async with testing.node(settings(authority, certificates="optional")) as node, asyncio.timeout(DEADLINE_S):
        token = {"Authorization": "Bearer correct-horse-battery-staple"}
        assert await post(node, context(authority), "/a") == 403
        assert await post(node, context(authority), "/a", **token) == 201
        assert await post(node, context(authority, "d1"), "/a") == 403
        assert await post(node, context(authority, "d1"), "/a", **token) == 201


async def test_a_holder_is_named_by_the_part_that_is_set_and_by_no_other(authority: Authority) -> None:
    async with testing.node(settings(authority, part="san_uri")) as node, asyncio.timeout(DEADLINE_S):
        named = context(authority, "d1", uris=("d7",))
        assert await post(node, named, "/devices/d7/t") == 201
        assert await post(node, named, "/devices/d1/t") == 403
        assert await post(node, context(authority, "d1"), "/devices/d1/t") == 403, "it names nobody of that kind"


async def test_in_mode_none_a_certificate_still_names_its_holder(authority: Authority) -> None:
    made = settings(authority, certificates="optional")
    made["access"] = {"mode": "none"}
    async with testing.node(made) as node, asyncio.timeout(DEADLINE_S):
        async with websocket(node, context(authority, "d1")) as socket:
            assert (await ask(socket, {"id": 1, "publish": "/a", "content": 1}))["ok"] == "published"
            rows, _ = await asyncio.to_thread(node.node.engine.connections, 0, 10, None, False)
            assert [row["identity"] for row in rows] == ["d1"]
        assert await post(node, context(authority), "/a") == 201


async def test_other_patterns_are_taken_over_by_a_running_node(authority: Authority) -> None:
    made = settings(authority)
    async with testing.node(made) as node, asyncio.timeout(DEADLINE_S):
        assert await post(node, context(authority, "d1"), "/other/d1") == 403
        table = {
            name: {**testing.FREE_PORTS.get(name, {}), **made.get(name, {})} for name in (*testing.FREE_PORTS, *made)
        }
        table["access"] = {**made["access"], "certificate_publish": ["/other/{identity}"]}
        await node.node.reload(build_config(table, {}, {}))
        assert await post(node, context(authority, "d1"), "/other/d1") == 201


async def test_mqtt_over_tls_shows_each_host_its_certificate(authority: Authority) -> None:
    made = settings(authority, certificates="optional")
    chain, key = authority.issue("devices.example")
    made["tls"]["certificate_files"].append(chain)
    made["tls"]["key_files"].append(key)
    async with testing.node(made) as node, asyncio.timeout(DEADLINE_S):
        assert node.mqtt_tls is not None
        for name in ("devices.example", "localhost"):
            _, writer = await asyncio.open_connection(
                "127.0.0.1", node.mqtt_tls.port, ssl=context(authority), server_hostname=name
            )
            shown = writer.get_extra_info("ssl_object").getpeercert()
            assert shown["subject"][0][0][1] == name
            writer.close()
        device = await Device.open(node, context(authority))
        assert (await device.ask(packets.connect("x")))[2] == 0
        assert (await device.ask(packets.subscribe(("devices/#", 1))))[-1] == 1
        other = await Device.open(node, context(authority, "d1"))
        await other.ask(packets.connect("y"))
        other.writer.write(packets.publish("devices/d1/t", b"hello"))
        first, length = await device.reader.readexactly(2)
        assert first == 0x30 and (await device.reader.readexactly(length)).endswith(b"hello")
        for one in (device, other):
            one.writer.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("certificates", ["none", "optional", "required"])
async def test_a_certificate_is_verified_at_each_connection(
    authority: Authority, certificates: str, version: ssl.TLSVersion
) -> None:
    """A session that is resumed would hold the certificate as it was verified once: it may have expired since."""
    made = context(authority, "dev1")
    made.maximum_version = version
    given = settings(authority, certificates=certificates)
    if certificates == "none":
        given["tls"] = {name: given["tls"][name] for name in ("certificate_files", "key_files")}
        given["access"] = {"mode": "none"}

    def ask(address: tuple[str, int], session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool | None]:
        plain = socket.create_connection(address)
        with made.wrap_socket(plain, server_hostname="localhost", session=session) as secured:
            secured.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert secured.recv(16).startswith(b"HTTP/1.1 ")  # what comes before it, a ticket, was read
            return secured.session, secured.session_reused

    async with testing.node(given) as node, asyncio.timeout(DEADLINE_S):
        assert node.client_tls is not None
        address = ("localhost", node.client_tls.port)
        session, _ = await asyncio.to_thread(ask, address, None)
        _, is_reused = await asyncio.to_thread(ask, address, session)
        assert is_reused is (certificates == "none")
