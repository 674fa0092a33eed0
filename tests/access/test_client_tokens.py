"""A new token for a connected client: the same identity continues, another one gets a new connection, and publishes of the
two are not mixed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import jwt
import pytest

from godwit import testing
from godwit.client import AnswerLost, Client, ClientError, SessionClosed, Settings
from godwit.client.codec.encodings import EncodingName
from tests.unit.client.peer import Peer
from tests.waiting import until

ISSUER, SECRET = "https://login.example", "0123456789abcdef0123456789abcdef"
QUICK = Settings(reconnect_first_ms=5, reconnect_max_ms=20)
ENCODINGS: list[EncodingName] = ["json", "binary"]


def make_token(name: str, secret: str = SECRET) -> str:
    permissions = {"allow": {"both": ["/all/**", f"/of/{name}/**"]}}
    claims = {"iss": ISSUER, "sub": name, "exp": time.time() + 600, "permissions": permissions}
    return jwt.encode(claims, secret, "HS256")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[testing.RunningNode]:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    issuer = {"keys_file": str(file), "algorithms": ["HS256"]}
    async with testing.node({"access": {"mode": "jwt"}, "issuers": {ISSUER: issuer}}) as running:
        yield running


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_same_identity_renews_on_the_connection(node: testing.RunningNode, encoding: EncodingName) -> None:
    async with (
        asyncio.timeout(30),
        Client(node.url, token=make_token("ann"), encoding=encoding, settings=QUICK) as client,
    ):
        subscription = client.subscribe("/all/a", snapshot=False)
        await subscription.joined()
        before = [asyncio.create_task(client.publish("/all/a", number)) for number in range(100)]
        await client.set_token(make_token("ann"))
        after = [asyncio.create_task(client.publish("/all/a", number)) for number in range(100, 200)]
        await asyncio.gather(*before, *after)
        assert [(await anext(subscription)).json() for _ in range(200)] == [*range(200)]
        assert subscription.counts["joins"] == 1


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_another_identity_resumes_where_the_first_one_was(
    node: testing.RunningNode, encoding: EncodingName
) -> None:
    async with (
        asyncio.timeout(30),
        Client(node.url, token=make_token("ann"), encoding=encoding, settings=QUICK) as client,
    ):
        subscription = client.subscribe("/all/*", snapshot=False)
        await subscription.joined()
        before = [asyncio.create_task(client.publish("/all/a", number)) for number in range(100)]
        await client.set_token(make_token("bob"))
        await client.publish("/all/a", 100)
        assert all(each.done() and each.result().position for each in before)
        assert [(await anext(subscription)).json() for _ in range(101)] == [*range(101)]
        assert (await client.publish("/of/bob/1", 1)).position is not None
        assert subscription.counts["joins"] > 1 and subscription.counts["gaps"] == 0


async def test_last_of_two_calls_wins_and_a_refused_token_ends_the_client(node: testing.RunningNode) -> None:
    async with asyncio.timeout(30), Client(node.url, token=make_token("ann"), settings=QUICK) as client:
        await client.connected()
        first = asyncio.create_task(client.set_token(make_token("bob")))
        await asyncio.sleep(0)
        await client.set_token(make_token("ann"))
        with pytest.raises(ClientError, match="another token"):
            await first
        assert (await client.publish("/of/ann/1", 1)).position is not None
        with pytest.raises(SessionClosed):
            await client.set_token(make_token("ann", secret="f" * 32))
        with pytest.raises(SessionClosed):
            await client.publish("/all/a", 1)


async def test_before_the_connection_it_is_the_token_of_the_first_one(node: testing.RunningNode) -> None:
    async with asyncio.timeout(30), Client(node.url, token="wrong", settings=QUICK) as client:
        waiting = asyncio.create_task(client.publish("/of/bob/1", 1))
        await client.set_token(make_token("bob"))
        assert (await waiting).position is not None


async def test_what_waits_while_disconnected_is_not_sent_under_another_token() -> None:
    async with asyncio.timeout(30), contextlib.AsyncExitStack() as served:
        peer = await served.enter_async_context(Peer())
        async with Client(peer.url, token="first", settings=QUICK) as client:
            await client.publish("/a", 1)
            await served.aclose()
            waiting = asyncio.create_task(client.publish("/a", 2))
            await until(lambda: not client.is_connected)
            setting = asyncio.create_task(client.set_token("second"))
            with pytest.raises(AnswerLost):
                await waiting
            setting.cancel()
