"""Hostile users' code in every method, against a live node under load: the client it concerns is refused with a code that lets it try
again, the node stays well, and nobody else notices."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.client import Client
from godwit.errors import AuthorizerFailed, CommandRefused, SessionClosed
from tests.hostile import extensions
from tests.raw_client import raw_client
from tests.waiting import until

DEADLINE_S = 60
PLACE = "tests.hostile.extensions"
UNAVAILABLE, SILENT = 4204, 4125
SETTINGS: dict[str, Any] = {
    "access": {
        "mode": "custom",
        "authorizer": f"{PLACE}:AUTHORIZER",
        "authorizer_timeout_ms": 300,
        "authorizer_calls_max": 4,
        "authorizer_stop_timeout_ms": 200,
    }
}
BLOCKING = {"block_the_loop"}
"""What holds up the extension's thread also holds up its other questions, which is all that it may."""


@asynccontextmanager
async def load(node: testing.RunningNode) -> AsyncIterator[list[int]]:
    """Messages from one good client to another all the while; in order and without a gap, or the test fails."""
    seen: list[int] = []
    is_over = asyncio.Event()

    async def publish(client: Client) -> int:
        number = 0
        while not is_over.is_set():
            await client.publish("/free/load", number)
            number += 1
        return number

    async def read(client: Client) -> None:
        async for message in client.subscribe("/free/load"):
            seen.append(message.json())

    async with Client(node.url, token="good") as publisher, Client(node.url, token="reader") as reader:
        reading = asyncio.create_task(read(reader))
        publishing = asyncio.create_task(publish(publisher))
        await until(lambda: len(seen) >= 10)
        yield seen
        before = len(seen)
        await until(lambda: len(seen) >= before + 10)  # still flowing
        is_over.set()
        await publishing
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert seen == list(range(seen[0], seen[0] + len(seen)))


async def refuse(node: testing.RunningNode, token: str) -> int:
    """The code with which a client of this token is refused."""
    async with aiohttp.ClientSession() as http, http.ws_connect(node.url, protocols=["godwit.v1.json"]) as socket:
        await socket.send_json({"connect": {"token": token, "client": "test/1"}, "id": 1})
        async for _ in socket:
            pass
        return socket.close_code or 0


async def is_well(node: testing.RunningNode) -> bool:
    async with aiohttp.ClientSession() as http, http.get(f"{node.admin_url}/health/ready") as answer:
        return answer.status == 200


@pytest.mark.parametrize("harm", [*extensions.HARMS, *extensions.ANSWERS])
async def test_a_hostile_connect_refuses_its_own_client_alone(harm: str) -> None:
    async with testing.node(SETTINGS) as node, asyncio.timeout(DEADLINE_S), load(node):
        codes = await asyncio.gather(*(refuse(node, harm) for _ in range(6)))
        assert set(codes) == {UNAVAILABLE} and await is_well(node)
        if harm not in BLOCKING:
            async with Client(node.url, token="good") as client:
                await client.publish("/free/after", 1)
        assert node.node.gate.waiting == 0


@pytest.mark.parametrize("harm", [*extensions.HARMS, *extensions.ANSWERS])
@pytest.mark.parametrize("action", ["publish", "subscribe"])
async def test_a_hostile_answer_to_a_rule_that_asks_refuses_that_command_alone(harm: str, action: str) -> None:
    async with testing.node(SETTINGS) as node, asyncio.timeout(DEADLINE_S), load(node):
        async with Client(node.url, token="careless") as client:
            with pytest.raises(CommandRefused) as refused:
                if action == "publish":
                    await client.publish(f"/asked/{harm}", 1)
                else:
                    await client.subscribe(f"/asked/{harm}").joined()
            assert refused.value.code == SILENT
            await client.publish("/free/after", 1)
        assert await is_well(node)


@pytest.mark.parametrize("harm", [*extensions.HARMS])
async def test_a_hostile_take_gets_the_next_batch_and_is_counted(harm: str) -> None:
    audit = {"plugins": [f"{PLACE}:AUDIT"], "batch_ms": 10, "take_timeout_ms": 200, "stop_timeout_ms": 500}
    extensions.AUDIT.harm, extensions.AUDIT.harms_left, extensions.AUDIT.taken = harm, 1, 0
    async with testing.node({**SETTINGS, "audit": audit}) as node, asyncio.timeout(DEADLINE_S), load(node):
        await until(lambda: node.node.audits.counts["failed"])
        assert await is_well(node)
        if harm != "hang":
            await until(lambda: extensions.AUDIT.taken)
        else:
            assert "take has run longer" in str(node.node.describe_troubles())


async def test_an_audit_that_hangs_stops_blocking_publishers() -> None:
    audit = {"plugins": [f"{PLACE}:AUDIT"], "batch_ms": 10, "take_timeout_ms": 200, "block_ms_max": 300}
    audit |= {"overflow": "block", "queue_events_max": 100, "stop_timeout_ms": 100}
    extensions.AUDIT.harm, extensions.AUDIT.harms_left = "hang", 1
    async with testing.node({**SETTINGS, "audit": audit}) as node, asyncio.timeout(DEADLINE_S):
        async with Client(node.url, token="good") as client:
            for number in range(1_000):
                await client.publish("/free/a", number)
        assert node.node.audits.counts["lost"] > 0


async def test_a_start_that_hangs_or_exits_keeps_the_node_from_starting() -> None:
    access = {"mode": "custom", "authorizer": f"{PLACE}:ENDS", "authorizer_stop_timeout_ms": 100}
    for harm, why in (
        ("hang", "access.authorizer_start_timeout_ms"),
        ("exit_now", "SystemExit"),
        ("interrupt", "Keyboard"),
    ):
        extensions.ENDS.in_start = harm
        with pytest.raises(AuthorizerFailed, match=why):
            async with testing.node({"access": {**access, "authorizer_start_timeout_ms": 200}}):
                pass
    extensions.ENDS.in_start = ""


@pytest.mark.parametrize("harm", [*extensions.HARMS])
async def test_a_hostile_stop_does_not_keep_the_node(harm: str) -> None:
    access = {"mode": "custom", "authorizer": f"{PLACE}:ENDS", "authorizer_stop_timeout_ms": 100}
    extensions.ENDS.in_stop = harm
    try:
        async with asyncio.timeout(DEADLINE_S), testing.node({"access": access}) as node, Client(node.url, token="any"):
            pass
        assert node.node.health.condition == "stopped"
    finally:
        extensions.ENDS.in_stop = ""


async def test_more_stuck_calls_than_places_lock_nobody_out() -> None:
    async with testing.node(SETTINGS) as node, asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(refuse(node, "swallow_cancellation") for _ in range(12)))
        with contextlib.suppress(SessionClosed):
            async with Client(node.url, token="good") as client:
                await client.publish("/free/after", 1)
        assert node.node.gate.counts["granted"] >= 1


@pytest.mark.parametrize("harm", [*extensions.HARMS, *extensions.ANSWERS])
async def test_a_hostile_update_token_ends_its_own_connection_alone(harm: str) -> None:
    async with testing.node(SETTINGS) as node, asyncio.timeout(DEADLINE_S), load(node):
        async with raw_client(f"ws://{node.client}") as client:
            assert (await client.ask({"id": 1, "connect": {"token": "good"}}))["ok"] == "connected"
            await client.send({"id": 2, "connect": {"token": harm}})
            assert not [line async for line in client.rest() if line.get("ok")]
            assert client.close is not None and client.close[0] == UNAVAILABLE
        assert await is_well(node) and node.node.gate.waiting == 0


@pytest.mark.parametrize("harm", ["hang", "exit_now", "interrupt", "swallow_cancellation"])
async def test_a_hostile_start_of_an_audit_keeps_the_node_from_starting(harm: str) -> None:
    audit = {"plugins": [f"{PLACE}:AUDIT"], "start_timeout_ms": 200, "stop_timeout_ms": 100}
    extensions.AUDIT.in_start = harm
    try:
        with pytest.raises(AuthorizerFailed, match="did not start"):
            async with asyncio.timeout(DEADLINE_S), testing.node({"audit": audit}):
                pass
    finally:
        extensions.AUDIT.in_start = ""


@pytest.mark.parametrize("harm", [*extensions.HARMS])
async def test_a_hostile_stop_of_an_audit_does_not_keep_the_node(harm: str) -> None:
    audit = {"plugins": [f"{PLACE}:AUDIT"], "stop_timeout_ms": 100}
    extensions.AUDIT.in_stop = harm
    try:
        async with asyncio.timeout(DEADLINE_S), testing.node({"audit": audit}) as node, Client(node.url):
            pass
        assert node.node.health.condition == "stopped"
    finally:
        extensions.AUDIT.in_stop = ""
