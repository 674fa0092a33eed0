"""Permissions on a real node: tokens, a custom authorizer that answers, fails or times out, and questions after the connect."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from godwit import testing
from godwit.client import Client, CommandRefused, SessionClosed
from godwit.codes import Code
from tests.desk import Desk
from tests.raw_client import raw_client

TOKEN = "correct-horse-battery-staple"
DEADLINE_S = 20


DESK = Desk()


OF_DESK = {"mode": "custom", "authorizer": f"{__name__}:DESK"}


@pytest.fixture
async def node() -> AsyncIterator[testing.RunningNode]:
    DESK.asked.clear()
    async with testing.node({"access": {**OF_DESK, "authorizer_timeout_ms": 1_000}}) as running:
        yield running


@asynccontextmanager
async def connected(node: testing.RunningNode, token: str | None) -> AsyncIterator[Any]:
    async with raw_client(f"ws://{node.client}") as client:
        command: dict[str, Any] = {"id": 1, "connect": {"token": token} if token else {}}
        assert (await client.ask(command))["ok"] == "connected"
        yield client


async def test_a_publishing_token_lets_its_holder_publish_and_nobody_else() -> None:
    access = {"mode": "basic", "publish_tokens": [TOKEN]}
    async with testing.node({"access": access}) as node, asyncio.timeout(DEADLINE_S):
        async with Client(node.url, token=TOKEN) as client, Client(node.url) as anybody:
            subscription = anybody.subscribe("/a")
            await subscription.joined()
            await client.publish("/a", 1)
            assert (await anext(subscription)).json() == 1
            with pytest.raises(CommandRefused, check=lambda error: error.code == Code.PUBLISH_FORBIDDEN):
                await anybody.publish("/a", 2)
        async with Client(node.url, token=TOKEN + "x") as stranger:
            with pytest.raises(SessionClosed, check=lambda error: error.code == Code.TOKEN_INVALID):
                await stranger.publish("/a", 3)


async def test_rules_are_judged_by_the_engine_and_a_pattern_is_granted_whole(node: testing.RunningNode) -> None:
    async with connected(node, "ann") as client:
        assert (await client.ask({"id": 2, "subscribe": "/news/*"}))["name"] == "SubscribeForbidden"
        assert (await client.ask({"id": 3, "subscribe": "/news/sport"}))["ok"] == "subscribed"
        assert (await client.ask({"id": 4, "publish": "/news/secret", "content": 1}))["name"] == "PublishForbidden"
        assert (await client.ask({"id": 5, "publish": "/elsewhere", "content": 1}))["name"] == "PublishForbidden"
        assert DESK.asked == []


async def test_what_a_rule_asks_about_is_asked_once_a_selector(node: testing.RunningNode) -> None:
    async with connected(node, "ann") as client:
        for number in range(2, 12):
            received = await client.ask({"id": number, "publish": f"/orders/{number % 2}", "content": 1})
            assert received.get("ok") == "published" if number % 2 else received["name"] == "PublishForbidden"
    assert sorted(question.selector for question in DESK.asked) == ["/orders/0", "/orders/1"]
    assert {question.identity for question in DESK.asked} == {"ann"}


async def test_commands_behind_a_question_wait_and_keep_their_order(node: testing.RunningNode) -> None:
    async with raw_client(f"ws://{node.client}") as client:
        commands = [{"id": 1, "connect": {"token": "ann"}}]
        commands += [{"id": n, "publish": "/orders/1", "content": n} for n in range(2, 50)]
        for command in commands:
            await client.send(command)
        received = [await client.receive() or {} for _ in commands]
    assert [one["id"] for one in received] == list(range(1, 50))
    positions = [one["at"].split(".")[1] for one in received[1:]]
    assert positions == [str(number) for number in range(1, 49)]


@pytest.mark.parametrize("token", ["late", "failing", "wrong answer"])
async def test_an_authorizer_that_gives_no_answer_refuses_and_the_client_may_come_back(
    node: testing.RunningNode, token: str
) -> None:
    async with raw_client(f"ws://{node.client}") as client:
        await client.send({"id": 1, "connect": {"token": token}})
        async for _ in client.rest():
            pass
        assert client.close is not None and client.close[0] == 4204
    async with connected(node, "ann") as well:  # and nobody else is held up
        assert (await well.ask({"id": 2, "ping": True}))["ok"] == "pong"


async def test_without_a_token_the_authorizer_is_asked_too(node: testing.RunningNode) -> None:
    async with connected(node, None) as client:
        assert (await client.ask({"id": 2, "subscribe": "/news/sport"}))["ok"] == "subscribed"
        assert (await client.ask({"id": 3, "publish": "/news/sport", "content": 1}))["name"] == "PublishForbidden"


async def test_a_token_that_is_not_renewed_ends_the_connection(node: testing.RunningNode) -> None:
    async with raw_client(f"ws://{node.client}") as client:
        assert (await client.ask({"id": 1, "connect": {"token": "short"}}))["ok"] == "connected"
        received = [one async for one in client.rest()]
        assert any(one.get("notice") == "token_expiring" for one in received)
        assert client.close is not None and client.close[0] == 4003


async def test_a_renewed_token_replaces_the_rights_and_ends_what_is_no_longer_allowed(
    node: testing.RunningNode,
) -> None:
    async with raw_client(f"ws://{node.client}") as client:
        assert (await client.ask({"id": 1, "connect": {"token": "short"}}))["ok"] == "connected"
        assert (await client.ask({"id": 2, "subscribe": "/news/secret"}))["ok"] == "subscribed"
        assert (await client.ask({"id": 3, "connect": {"token": "ann"}}))["ok"] == "connected"
        received = await client.receive()
        assert received is not None and (received["ended"], received["name"]) == ("/news/secret", "SubscribeForbidden")
        assert (await client.ask({"id": 4, "ping": True}))["ok"] == "pong"


async def test_questions_of_many_at_once_are_all_answered() -> None:
    async with testing.node({"access": {**OF_DESK, "authorizer_timeout_ms": 60_000}}) as node:

        async def come(number: int) -> None:
            async with connected(node, f"client-{number}"):
                pass

        await asyncio.gather(*(come(number) for number in range(300)))
        assert node.node.gate.counts["granted"] == 300 and node.node.gate.waiting == 0


@pytest.mark.parametrize(
    ("origin", "is_welcome"), [(None, True), ("https://a.example", True), ("https://b.example", False), ("null", False)]
)
async def test_pages_of_origins_that_are_not_listed_cannot_connect(origin: str | None, is_welcome: bool) -> None:
    async with testing.node({"client": {"origins": ["https://a.example"]}}) as node:
        try:
            async with connect(node.url, origin=origin, proxy=None) as socket:  # type: ignore[arg-type]  # a NewType of str
                await socket.send('{"id":1,"ping":true}')
                assert "pong" in str(await socket.recv())
        except InvalidStatus as refused:
            assert not is_welcome and refused.response.status_code == 403
            assert json.loads(refused.response.body or b"")["code"] == 4158
        else:
            assert is_welcome
