"""Cases 22, 40, 41 and 44 on every protocol: an invalid, foreign or missing token is refused in the protocol's own form."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
import pytest_asyncio

from godwit import testing
from tests.hostile.peer import DEADLINE_S, Peer, request
from tests.mqtt import packets

SECRET, ISSUER = "s" * 64, "https://login.example"
RIGHTS = {"allow": {"both": ["/a"]}}
GOOD: dict[str, Any] = {"iss": ISSUER, "aud": "here", "sub": "ann", "permissions": RIGHTS}
INVALID, EXPIRED, MISSING = 4002, 4003, 4006
Show = Callable[[testing.RunningNode, str | None], Awaitable[int]]
"""Shows a token, or none; returns the code it was refused with, 0 where it was not."""


def sign(
    secret: str = SECRET, algorithm: str = "HS256", headers: dict[str, Any] | None = None, **overrides: Any
) -> str:
    claims = {"exp": int(time.time()) + 600, **GOOD, **overrides}
    return jwt.encode({name: value for name, value in claims.items() if value is not None}, secret, algorithm, headers)


def cut() -> str:
    return sign()[:-5]


TOKENS: dict[str, Callable[[], str]] = {
    "case 40, no algorithm": lambda: sign("", "none"),
    "case 40, another secret": lambda: sign("t" * 64),
    "case 40, another algorithm": lambda: sign(algorithm="HS512"),
    "case 40, a critical extension": lambda: sign(headers={"crit": ["x"], "x": 1}),
    "case 41, expired": lambda: sign(exp=int(time.time()) - 600),
    "case 41, not yet valid": lambda: sign(nbf=int(time.time()) + 600),
    "case 41, without an end": lambda: sign(exp=None),
    "case 41, an absurd end": lambda: sign(exp=2**63),
    "case 41, for another audience": lambda: sign(aud="there"),
    "case 41, of another issuer": lambda: sign(iss="https://b.example"),
    "case 44, a cut signature": cut,
    "case 44, no token at all": lambda: "a.b.c",
    "case 44, a long one": lambda: "a." * 7_000 + "b",
}


@pytest.fixture(scope="module")
def secret_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp("keys") / "secret"
    file.write_text(SECRET)
    return file


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node(secret_file: Path) -> AsyncIterator[testing.RunningNode]:
    issuer = {"keys_file": str(secret_file), "algorithms": ["HS256"], "audience": "here"}
    settings = {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: issuer},
        "limits": {"token_failures_per_minute_per_address_max": 0},
    }
    async with testing.node(settings) as running:
        yield running


async def by_websocket(node: testing.RunningNode, token: str | None) -> int:
    async with Peer.live(node.client.host, node.client.port) as peer:
        command: dict[str, Any] = {"id": 1, "connect": {"token": token} if token else {}}
        heard = await peer.ask(command)
        return int(heard.get("error", 0) or heard.get("close", 0))


def by_http(method: str, target: str) -> Show:
    async def show(node: testing.RunningNode, token: str | None) -> int:
        async with Peer.open(node.client.host, node.client.port) as peer:
            await peer.say(request(method, target, *([f"Authorization: Bearer {token}"] if token else [])))
            head = await peer.head()
            if b" 401 " not in head.split(b"\r\n")[0]:
                return 0
            assert b"\r\nWWW-Authenticate: Bearer" in head
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            code = json.loads(await peer.reader.readexactly(length))["code"]
            return int(code)

    return show


def by_mqtt(version: int) -> Show:
    codes = {0: 0, 0x86: INVALID, 0x87: MISSING} if version == packets.V5 else {0: 0, 4: INVALID, 5: MISSING}

    def show(node: testing.RunningNode, token: str | None) -> int:
        assert node.mqtt is not None
        password = token.encode() if token else None
        with packets.Peer((node.mqtt.host, node.mqtt.port), version) as peer:
            peer.send(packets.connect("c", version, username="" if token else None, password=password))
            connack = peer.receive()
            assert connack[0] == 0x20
            return codes[connack[3]]

    return lambda node, token: asyncio.to_thread(show, node, token)


PROTOCOLS: dict[str, Show] = {
    "websocket": by_websocket,
    "publish": by_http("POST", "/v1/messages?subject=/a"),
    "read": by_http("GET", "/v1/messages?subject=/a"),
    "snapshot": by_http("GET", "/v1/snapshot?subject=/a"),
    "events": by_http("GET", "/v1/stream?subject=/a"),
    "MQTT 3.1.1": by_mqtt(packets.V3),
    "MQTT 5.0": by_mqtt(packets.V5),
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("case", TOKENS)
async def test_a_hostile_token_is_refused_in_the_words_of_the_protocol(
    node: testing.RunningNode, case: str, protocol: str
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        code = await PROTOCOLS[protocol](node, TOKENS[case]())
    is_expired = case == "case 41, expired" and not protocol.startswith("MQTT")
    assert code == (EXPIRED if is_expired else INVALID)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_22_who_shows_no_token_is_refused_and_who_shows_a_good_one_is_served(
    node: testing.RunningNode, protocol: str
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        assert await PROTOCOLS[protocol](node, None) == MISSING
        assert await PROTOCOLS[protocol](node, sign()) == 0


@pytest.mark.asyncio(loop_scope="module")
async def test_44_whose_token_was_damaged_is_told_what_is_wrong_with_it_on_every_protocol_that_has_words(
    node: testing.RunningNode,
) -> None:
    head, _, signature = sign().rpartition(".")
    other = "A" if signature[0] != "A" else "B"
    assert node.mqtt is not None
    for token, says in (
        (f"{head}.{other}{signature[1:]}", b"the token's signature is wrong"),
        (f"{head}.{signature[:-2]}", b"the token is damaged: its signature cannot be read"),
        (f"{head}.", b"this is not a signed token, or only a part of one"),
    ):
        async with asyncio.timeout(DEADLINE_S):
            async with Peer.live(node.client.host, node.client.port) as peer:
                await peer.say({"id": 1, "connect": {"token": token}})
                assert says in (await peer.frame())[1]
            for target in ("/v1/messages?subject=/a", f"/v1/stream?subject=/a&token={token}"):
                fields = [] if "token=" in target else [f"Authorization: Bearer {token}"]
                async with Peer.open(node.client.host, node.client.port) as peer:
                    await peer.say(request("GET", target, *fields, "Connection: close"))
                    assert says in await peer.rest()
            async with Peer.open(node.mqtt.host, node.mqtt.port) as peer:
                await peer.say(packets.connect("c", username="", password=token.encode()))
                assert says in await peer.rest()
