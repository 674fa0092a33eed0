"""Signed tokens on a real node, in both encodings: their permissions, expiry, renewal and revocation, and invalid ones."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from godwit import testing
from godwit.client import Client, CommandRefused, SessionClosed
from godwit.codes import Code
from tests.raw_client import raw_client

KEY = ec.generate_private_key(ec.SECP256R1())
STRANGER = ec.generate_private_key(ec.SECP256R1())
ISSUER, ADMIN = "https://login.example", "an-admin-token-of-length"
PERMISSIONS = {"allow": {"subscribe": ["/news/**"], "both": ["/rooms/ann/*"]}, "deny": {"both": ["/news/internal/**"]}}


def make_token(key: Any = KEY, *, lives_s: float = 600, **claims: Any) -> str:
    received = {"iss": ISSUER, "sub": "ann", "exp": time.time() + lives_s, "permissions": PERMISSIONS, **claims}
    return jwt.encode({name: value for name, value in received.items() if value is not None}, key, "ES256")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[testing.RunningNode]:
    file = tmp_path / "issuer.pem"
    file.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    settings = {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: {"keys_file": str(file), "algorithms": ["ES256"]}},
        "admin": {"token": ADMIN},
    }
    async with testing.node(settings) as running:
        yield running


@asynccontextmanager
async def connected(node: testing.RunningNode, token: str) -> AsyncIterator[Any]:
    async with raw_client(f"ws://{node.client}") as client:
        assert (await client.ask({"id": 1, "connect": {"token": token}}))["ok"] == "connected"
        yield client


async def change(node: testing.RunningNode, method: str, path: str, body: object = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.request(method, node.admin_url + path, json=body) as answer,
    ):
        return answer.status, await answer.json(content_type=None)


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_a_token_grants_what_it_says_on_both_encodings(node: testing.RunningNode, encoding: str) -> None:
    async with Client(node.url, token=make_token(), encoding=encoding) as client:
        await client.publish("/rooms/ann/1", {"n": 1})
        subscription = client.subscribe("/rooms/ann/*")
        assert (await anext(subscription)).json() == {"n": 1}
        for refused in ("/rooms/bob/1", "/news/sport", "/elsewhere"):
            with pytest.raises(CommandRefused, check=lambda error: error.code == Code.PUBLISH_FORBIDDEN):
                await client.publish(refused, 1)


async def test_a_wildcard_that_overlaps_a_deny_is_refused_whole(node: testing.RunningNode) -> None:
    async with connected(node, make_token()) as client:
        for selector in ("/news/**", "/news/*", "/**", "/news/internal/x", "/*/internal/**", "/rooms/**"):
            received = await client.ask({"id": 2, "subscribe": selector})
            assert received.get("name") == "SubscribeForbidden" or selector == "/news/*", selector
        assert (await client.ask({"id": 3, "subscribe": "/news/sport/*"}))["ok"] == "subscribed"
        assert (await client.ask({"id": 4, "publish": "/news/internal/x", "content": 1}))["name"] == "PublishForbidden"


async def close_code(node: testing.RunningNode, token: str) -> int:
    async with raw_client(f"ws://{node.client}") as client:
        await client.send({"id": 1, "connect": {"token": token}})
        async for received in client.rest():
            assert received.get("ok") is None, received
        assert client.close is not None
        return client.close[0]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(lambda: make_token(STRANGER), 4002, id="a stranger's key"),
        pytest.param(lambda: make_token(lives_s=-1), 4003, id="expired"),
        pytest.param(lambda: make_token(exp=None), 4002, id="no exp"),
        pytest.param(lambda: make_token(exp=2**63), 4002, id="exp beyond time"),
        pytest.param(lambda: make_token(exp="soon"), 4002, id="exp no number"),
        pytest.param(lambda: make_token(nbf=time.time() + 600), 4002, id="not yet"),
        pytest.param(lambda: make_token(iss="https://other.example"), 4002, id="another issuer"),
        pytest.param(lambda: make_token(aud="somebody-else"), 4002, id="another audience"),
        pytest.param(lambda: make_token(sub=None), 4002, id="no subject"),
        pytest.param(lambda: make_token(sub="a\nb"), 4002, id="a line feed in the subject"),
        pytest.param(lambda: make_token(permissions={"allow": {"read": ["/a"]}}), 4002, id="unknown permission"),
        pytest.param(lambda: make_token(permissions={"allow": {"both": ["a"]}}), 4002, id="no pattern"),
        pytest.param(lambda: make_token(permissions=["/a"]), 4002, id="permissions no table"),
        pytest.param(lambda: make_token()[:-10], 4002, id="cut short"),
        pytest.param(lambda: make_token().rpartition(".")[0] + ".", 4002, id="no signature"),
        pytest.param(lambda: "a.b.c", 4002, id="no token"),
        pytest.param(lambda: "x" * 60_000, 4002, id="too long"),
        pytest.param(
            lambda: jwt.encode({"iss": ISSUER, "sub": "ann", "exp": 2**33}, None, "none"), 4002, id="algorithm none"
        ),
    ],
)
async def test_what_is_no_good_token_lets_nobody_in(
    node: testing.RunningNode, make: Callable[[], str], code: int
) -> None:
    assert await close_code(node, make()) == code


async def test_who_shows_no_token_is_refused(node: testing.RunningNode) -> None:
    async with raw_client(f"ws://{node.client}") as client:
        await client.send({"id": 1, "subscribe": "/news/sport"})
        assert await client.receive() is None and client.close is not None and client.close[0] == 4001


async def test_a_token_is_renewed_or_ends_with_a_warning(node: testing.RunningNode) -> None:
    async with connected(node, make_token(lives_s=2)) as client:
        assert (await client.ask({"id": 2, "subscribe": "/news/sport"}))["ok"] == "subscribed"
        narrow = {"allow": {"subscribe": ["/rooms/**"]}}
        assert (await client.ask({"id": 3, "connect": {"token": make_token(permissions=narrow)}}))["ok"] == "connected"
        received = await client.receive()
        assert received is not None and (received.get("ended"), received.get("name")) == (
            "/news/sport",
            "SubscribeForbidden",
        )
    async with connected(node, make_token(lives_s=1.5)) as client:
        received = [one async for one in client.rest()]
        assert [one["notice"] for one in received if "notice" in one] == ["token_expiring"]
        assert client.close is not None and client.close[0] == 4003
    async with connected(node, make_token()) as client:
        await client.send({"id": 2, "connect": {"token": make_token(STRANGER)}})
        assert [one async for one in client.rest()] == []
        assert client.close is not None and client.close[0] == 4002


async def test_a_revocation_closes_the_connected_and_refuses_who_comes_back(node: testing.RunningNode) -> None:
    ann, other = make_token(jti="t1"), make_token(sub="bob", jti="t2")
    async with connected(node, ann) as first, connected(node, other) as second:
        status, _ = await change(node, "POST", "/v1/revocations", {"token_id": "t1"})
        assert status == 201
        assert await first.receive() is None and first.close is not None and first.close[0] == 4005
        assert await close_code(node, ann) == 4005
        async with connected(node, make_token(jti="t3")):
            pass
        assert (await second.ask({"id": 2, "ping": True}))["ok"] == "pong"
        await change(node, "POST", "/v1/revocations", {"identity": "bob"})
        assert await second.receive() is None and second.close is not None and second.close[0] == 4005
        assert await close_code(node, make_token(sub="bob", jti="t9")) == 4005
    status, listed = await change(node, "GET", "/v1/revocations")
    assert [(row.get("identity"), row.get("token_id")) for row in listed["rows"]] == [("bob", None), (None, "t1")]
    assert (await change(node, "DELETE", "/v1/revocations?identity=bob"))[0] == 200
    async with connected(node, other):
        pass
    assert (await change(node, "DELETE", "/v1/revocations?identity=bob"))[0] == 404


async def test_a_purge_takes_back_messages_and_snapshot_also_from_the_windows(node: testing.RunningNode) -> None:
    async with Client(node.url, token=make_token()) as client, Client(node.url, token=make_token()) as other:
        # one to the subject itself, so that it is not forgotten while nothing is kept of it
        subscriptions = [client.subscribe("/rooms/ann/*"), other.subscribe("/rooms/ann/1")]
        for subscription in subscriptions:
            await subscription.joined()
        for number in range(3):
            await client.publish("/rooms/ann/1", {"secret": number})
        for subscription in subscriptions:
            assert [(await anext(subscription)).json()["secret"] for _ in range(3)] == [0, 1, 2]
        assert await change(node, "POST", "/v1/purge?subject=/rooms/ann/1") == (
            200,
            {"subject": "/rooms/ann/1", "purged": 3, "kept": True},
        )
        assert (await change(node, "POST", "/v1/purge?subject=/nothing"))[0] == 404
        assert (await change(node, "POST", "/v1/purge?subject=nothing"))[0] == 400
        published = await client.publish("/rooms/ann/1", {"fresh": 1})
        assert published.position is not None and published.position.sequence == 5
        for subscription in subscriptions:
            assert (await anext(subscription)).is_removal
            assert (await anext(subscription)).json() == {"fresh": 1}
    async with connected(node, make_token()) as late:
        await late.send({"id": 2, "subscribe": "/rooms/ann/1", "last": 10})
        seen = []
        while (received := await late.receive()) is not None and ("message" not in received or "removed" in received):
            seen.append(received)
        assert received is not None and "secret" not in str(seen) and received["content"] == {"fresh": 1}


async def test_a_stranger_is_told_before_anything_else_happens(node: testing.RunningNode) -> None:
    async with Client(node.url, token=make_token(STRANGER)) as client:
        with pytest.raises(SessionClosed, check=lambda error: error.code == Code.TOKEN_INVALID):
            await client.publish("/rooms/ann/1", 1)
