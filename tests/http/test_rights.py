"""Permissions over HTTP: tokens in headers and addresses, an authorizer and its timeouts, expiry and revocation on an open event stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.access import SelectorQuestion
from tests.desk import Desk

ADMIN = "an-admin-token-of-length"


class Counter(Desk):
    """The same, and the first order may be listened to."""

    async def subscribe(self, question: SelectorQuestion) -> bool:
        return await self.publish(question)


DESK = Counter()


@pytest.fixture
async def node() -> AsyncIterator[testing.RunningNode]:
    access = {"mode": "custom", "authorizer": f"{__name__}:DESK", "authorizer_timeout_ms": 1_000}
    DESK.asked.clear()
    async with testing.node({"access": access, "admin": {"token": ADMIN}}) as running:
        yield running


@asynccontextmanager
async def asking(
    node: testing.RunningNode, target: str, token: str | None = "ann", method: str = "GET", **more: Any
) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    url = f"http://{node.client}{target}"
    async with aiohttp.ClientSession() as http, http.request(method, url, headers=headers, **more) as answer:
        yield answer


async def status_of(node: testing.RunningNode, target: str, token: str | None = "ann", **more: Any) -> tuple[int, int]:
    """The status, and the code of a refusal."""
    async with asking(node, target, token, **more) as answer:
        is_stream = answer.content_type == "text/event-stream"
        body = {} if is_stream else await answer.json(content_type=None)
        return answer.status, body.get("code", 0) if isinstance(body, dict) else 0


async def events_of(answer: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    kind = "message"
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))
            kind = "message"


async def test_every_request_is_judged_by_the_same_rights(node: testing.RunningNode) -> None:
    for path in ("/v1/stream", "/v1/messages"):
        assert await status_of(node, f"{path}?subject=/news/sport") == (200, 0)
        assert await status_of(node, f"{path}?subject=/news/secret") == (403, 4113)
        assert await status_of(node, f"{path}?subject=/news/**") == (403, 4113), "a pattern is granted whole"
        assert await status_of(node, f"{path}?subject=/news/sport&subject=/other") == (403, 4113), "all or none"
        assert await status_of(node, f"{path}?subject=/news/sport", "stranger") == (403, 4004)
    assert await status_of(node, "/v1/snapshot?subject=/news/secret") == (403, 4113)
    assert await status_of(node, "/v1/snapshot?subject=/news/sport") == (404, 4162)
    assert await status_of(node, "/v1/messages?subject=/news/sport", method="POST", json=1) == (201, 0)
    assert await status_of(node, "/v1/messages?subject=/news/secret", method="POST", json=1) == (403, 4114)


async def test_a_token_counts_in_the_field_before_the_address(node: testing.RunningNode) -> None:
    target = "/v1/messages?subject=/news/sport&token="
    assert await status_of(node, target + "ann", None) == (200, 0)
    assert await status_of(node, target + "ann", "stranger") == (403, 4004)
    assert await status_of(node, target + "stranger", "ann") == (200, 0)


async def test_what_a_rule_leaves_open_is_asked_and_the_request_waits(node: testing.RunningNode) -> None:
    for path in ("/v1/stream", "/v1/messages"):
        assert await status_of(node, f"{path}?subject=/orders/1") == (200, 0)
        assert await status_of(node, f"{path}?subject=/news/sport&subject=/orders/2") == (403, 4113)
    assert await status_of(node, "/v1/messages?subject=/orders/1", method="POST", json=1) == (201, 0)
    assert await status_of(node, "/v1/messages?subject=/orders/2", method="POST", json=1) == (403, 4114)
    assert {question.selector for question in DESK.asked} == {"/orders/1", "/orders/2"}
    batch = [{"id": n, "publish": f"/orders/{n}", "content": n} for n in (1, 2, 1)]
    async with asking(node, "/v1/messages", method="POST", json=batch) as answer:
        outcomes = await answer.json()
    assert [(one["id"], one.get("error")) for one in outcomes] == [(1, None), (2, 4114), (1, None)]


async def test_an_authorizer_that_is_late_is_a_503_and_the_next_request_is_asked_anew(
    node: testing.RunningNode,
) -> None:
    assert await status_of(node, "/v1/stream?subject=/news/sport", "late") == (503, 4204)
    assert await status_of(node, "/v1/stream?subject=/news/sport", "ann") == (200, 0)


async def test_a_stream_is_warned_and_ends_with_its_token(node: testing.RunningNode) -> None:
    async with asking(node, "/v1/stream?subject=/news/sport&subject=/a", "short") as answer:
        received = [event async for event in events_of(answer)]
    assert [value["notice"] for kind, value in received if kind == "notice"] == ["token_expiring"]
    assert received[-1][0] == "closed" and received[-1][1]["closed"] == 4003
    assert "new token and the id of the last event" in received[-1][1]["reason"]


async def test_a_revocation_ends_streams_and_waiting_requests_alike(node: testing.RunningNode) -> None:
    async with (
        asking(node, "/v1/stream?subject=/news/sport", "bob") as stream,
        asking(node, "/v1/stream?subject=/news/sport", "ann") as other,
    ):
        events = events_of(stream)
        assert (await anext(events))[0] == "subscribed"
        headers = {"Authorization": f"Bearer {ADMIN}"}
        async with (
            aiohttp.ClientSession(headers=headers) as http,
            http.post(f"{node.admin_url}/v1/revocations", json={"identity": "bob"}) as answer,
        ):
            assert answer.status == 201
        kind, value = await anext(events)
        assert (kind, value["closed"]) == ("closed", 4005)
        assert [event async for event in events] == [], "nothing comes behind it"
        assert await status_of(node, "/v1/stream?subject=/news/sport", "bob") == (401, 4005)
        assert await status_of(node, "/v1/messages?subject=/news/sport", method="POST", json=1) == (201, 0)
        heard = [await anext(events_of(other)) for _ in range(2)]
        assert heard[1][1]["content"] == 1, "others go on"
