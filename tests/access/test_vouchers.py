"""A reload that removes an issuer, or an authority that signs certificates, ends the connections, sessions and wills of their holders."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest

from godwit import testing
from godwit.access import Authorizer, ConnectQuestion, Grant, Rule
from godwit.config import build_config
from tests.access.test_client_certificates import Device, ask, context, settings, websocket
from tests.access.test_key_sets import ISSUER, Login, listening
from tests.authority import Authority
from tests.hostile.peer import Peer
from tests.mqtt import packets
from tests.waiting import until

DEADLINE_S = 60
OTHER = "https://other.example"
KEPT = b"\x11" + (600).to_bytes(4)
"""Session Expiry Interval."""
DELAYED = b"\x18" + (60).to_bytes(4)
"""Will Delay Interval."""


class Names(Authorizer):
    """Everybody is who their certificate says."""

    async def connect(self, question: ConnectQuestion) -> Grant:
        return Grant(question.certificate_identity or "nobody", [Rule.allow("/**")])


NAMES = Names()


async def reload(node: testing.RunningNode, table: dict[str, Any]) -> None:
    names = (*testing.FREE_PORTS, *table)
    merged = {name: {**testing.FREE_PORTS.get(name, {}), **table.get(name, {})} for name in names}
    await node.node.reload(build_config(merged, {}, {}))


async def read_end(socket: Any) -> int:
    """The code that a WebSocket ends with."""
    while (await socket.receive()).type is not aiohttp.WSMsgType.CLOSE:
        pass
    return int(socket.close_code)


@asynccontextmanager
async def issuers(folder: Path, source: str) -> AsyncIterator[tuple[Login, dict[str, dict[str, Any]]]]:
    """Two issuers, the first with its keys over HTTP or in a file, and what signs for it."""
    login = Login()
    login.gate.set()
    (folder / "other").write_text("o" * 64)
    rights = {"subscribe": ["/a"], "publish": ["/a"]}
    other = {"keys_file": str(folder / "other"), "algorithms": ["HS256"], "identity_prefix": "other:", **rights}
    async with listening(login) as url:
        first: dict[str, Any] = {"algorithms": ["ES256"], "identity_prefix": "first:", **rights}
        if source == "keys_url":
            first["keys_url"] = url
        else:
            async with aiohttp.ClientSession() as http, http.get(url) as answer:
                (folder / "keys.json").write_bytes(await answer.read())
            first["keys_file"] = str(folder / "keys.json")
        yield login, {ISSUER: first, OTHER: other}


@pytest.mark.parametrize("source", ["keys_url", "keys_file"])
async def test_an_issuer_that_is_removed_takes_connections_sessions_and_wills_with_it(
    source: str, tmp_path: Path
) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        issuers(tmp_path, source) as (login, named),
        testing.node({"access": {"mode": "jwt"}, "issuers": named}) as node,
    ):
        token = login.token("one")
        other = jwt.encode({"iss": OTHER, "sub": "bob", "exp": time.time() + 600}, "o" * 64, "HS256")
        for client, will in (("away", None), ("lost", ("a", b"gone"))):
            await leave(node, client, token, will)
        async with (
            Peer.live(node.client.host, node.client.port) as peer,
            Peer.live(node.client.host, node.client.port) as listener,
        ):
            await listener.ask({"id": 1, "connect": {"token": other}})
            assert (await listener.ask({"id": 2, "subscribe": "/a"}))["ok"] == "subscribed"
            assert (await peer.ask({"id": 1, "connect": {"token": token}}))["ok"] == "connected"
            await until(lambda: node.node.engine.stats()["mqtt_sessions"] == 2)
            await reload(node, {"access": {"mode": "jwt"}, "issuers": {OTHER: named[OTHER]}})
            answer = await peer.ask({"id": 2, "ping": True})
            while "close" not in answer:
                answer = await peer.ask({"id": 3, "ping": True})
            assert answer["close"] == 4002
            await until(lambda: node.node.engine.stats()["mqtt_sessions"] == 0)
            heard = await listener.ask({"id": 3, "publish": "/a", "content": "the first"})
            while "message" not in heard:
                heard = await listener.hear()
            assert heard["content"] == "the first", "the will went with its session"


async def leave(node: testing.RunningNode, client: str, token: str, will: tuple[str, bytes] | None) -> None:
    """Connects by MQTT with a session that is kept, and is gone."""
    assert node.mqtt is not None
    reader, writer = await asyncio.open_connection(node.mqtt.host, node.mqtt.port)
    writer.write(
        packets.connect(
            client,
            will=will,
            will_properties=DELAYED if will else b"",
            properties=KEPT,
            username="",
            password=token.encode(),
        )
    )
    answer = await reader.readexactly(4)
    assert answer[0] == 0x20 and answer[3] == 0
    writer.transport.abort()


@pytest.mark.parametrize("is_chained", [False, True])
@pytest.mark.parametrize("mode", ["basic", "custom"])
async def test_an_authority_that_is_removed_ends_the_connections_of_its_certificates_alone(
    mode: str, is_chained: bool, tmp_path: Path
) -> None:
    first, second = Authority(tmp_path), Authority(tmp_path, "Second authority")
    table = settings(first)
    both, rest = tmp_path / "both.pem", tmp_path / "rest.pem"
    both.write_bytes(first.file.read_bytes() + second.file.read_bytes())
    rest.write_bytes(second.file.read_bytes())
    table["tls"]["client_authorities_file"] = str(both)
    if mode == "custom":
        table["access"] = {"mode": "custom", "authorizer": f"{__name__}:NAMES"}
    made, other = context(first), context(first)
    signers = [
        Authority(tmp_path, f"Under {one.file.stem}", under=one) if is_chained else one for one in (first, second)
    ]
    made.load_cert_chain(*signers[0].issue(client="d1", file="first"))
    other.load_cert_chain(*signers[1].issue(client="d2", file="second"))
    async with testing.node(table) as node, asyncio.timeout(DEADLINE_S):
        async with websocket(node, made) as gone, websocket(node, other) as stays:
            late = await Device.open(node, made)
            for socket in (gone, stays):
                assert (await ask(socket, {"id": 1, "subscribe": "/a"}))["ok"] == "subscribed"
            table["tls"]["client_authorities_file"] = str(rest)
            await reload(node, table)
            assert await read_end(gone) == 4002
            assert (await ask(stays, {"id": 2, "ping": True}))["ok"] == "pong"
            refused = await late.ask(packets.connect("late"))
            late.writer.close()
            assert refused[0] == 0x20 and refused[2] == 0x86, "its handshake is older than the reload"
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            async with websocket(node, context(first, "d1")):
                pass


async def test_patterns_of_certificates_that_are_narrowed_end_the_connections_until_they_come_again(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    table = settings(authority)
    async with testing.node(table) as node, asyncio.timeout(DEADLINE_S):
        made = context(authority, "d1")
        async with websocket(node, made) as socket:
            publish = {"publish": "/devices/d1/t", "content": 1}
            assert (await ask(socket, {"id": 1, **publish}))["ok"] == "published"
            table["access"] = {**table["access"], "certificate_publish": ["/other/{identity}"]}
            await reload(node, table)
            assert await read_end(socket) == 4209
        async with websocket(node, made) as socket:
            assert (await ask(socket, {"id": 1, **publish}))["error"] == 4114
