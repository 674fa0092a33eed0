"""Hostile users' code in every method, against a live node under load: its client is refused with a code that permits a retry, the node
stays ready, and other clients are not affected. matrix.py has the expected answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.client import Client
from godwit.errors import AuthorizerFailed, CommandRefused, SessionClosed
from tests.hostile import extensions
from tests.hostile.matrix import Outcome, list_cells, list_methods, read_outcome
from tests.raw_client import raw_client
from tests.waiting import until

DEADLINE_S = 120
PLACE = "tests.hostile.extensions"
UNAVAILABLE, SILENT = 4204, 4125
LIMIT_MS = 300
SETTINGS: dict[str, Any] = {
    "access": {
        "mode": "custom",
        "authorizer": f"{PLACE}:AUTHORIZER",
        "authorizer_timeout_ms": LIMIT_MS,
        "authorizer_calls_max": 4,
        "authorizer_stop_timeout_ms": 200,
    }
}
ENDS: dict[str, Any] = {"mode": "custom", "authorizer": f"{PLACE}:ENDS"}
ENDS |= {"authorizer_stop_timeout_ms": 100}
AUDIT: dict[str, Any] = {"plugins": [f"{PLACE}:AUDIT"], "batch_ms": 10, "take_timeout_ms": 200}
AUDIT |= {"stop_timeout_ms": 100}


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


async def attack_connect(node: testing.RunningNode, harm: str) -> Outcome | None:
    codes = await asyncio.gather(*(refuse(node, harm) for _ in range(6)))
    return Outcome.REFUSED if set(codes) == {UNAVAILABLE} else None


async def attack_update_token(node: testing.RunningNode, harm: str) -> Outcome | None:
    async with raw_client(f"ws://{node.client}") as client:
        assert (await client.ask({"id": 1, "connect": {"token": "good"}}))["ok"] == "connected"
        await client.send({"id": 2, "connect": {"token": harm}})
        answered = [line async for line in client.rest() if line.get("ok")]
        is_ended = client.close is not None and client.close[0] == UNAVAILABLE
        return Outcome.ENDED if is_ended and not answered else None


async def attack_subscribe(node: testing.RunningNode, harm: str) -> Outcome | None:
    async with Client(node.url, token="careless") as client:
        with pytest.raises(CommandRefused) as refused:
            await client.subscribe(f"/asked/{harm}").joined()
    return Outcome.LATER if refused.value.code == SILENT else None


async def attack_publish(node: testing.RunningNode, harm: str) -> Outcome | None:
    async with Client(node.url, token="careless") as client:
        with pytest.raises(CommandRefused) as refused:
            await client.publish(f"/asked/{harm}", 1)
        await client.publish("/free/after", 1)
    return Outcome.LATER if refused.value.code == SILENT else None


ASKED: dict[str, Callable[[testing.RunningNode, str], Awaitable[Outcome | None]]] = {
    "Authorizer.connect": attack_connect,
    "Authorizer.update_token": attack_update_token,
    "Authorizer.subscribe": attack_subscribe,
    "Authorizer.publish": attack_publish,
}


async def run_questions(method: str, kind: str) -> None:
    """All harms of a kind, one after the other, on one node: what an earlier one left behind is there for the next."""
    async with testing.node(SETTINGS) as node, asyncio.timeout(DEADLINE_S), load(node):
        for harm in extensions.list_harms(kind):
            await until(lambda: not node.node.describe_troubles())
            async with Client(node.url, token="good"):
                pass
            granted = node.node.gate.counts["granted"]
            assert await ASKED[method](node, harm) == read_outcome(method, kind), harm
            await until(lambda: not node.node.describe_troubles())  # late answers have come
            others = {"Authorizer.connect": 0}.get(method, 1)  # the client that asked had to come in
            assert node.node.gate.counts["granted"] == granted + others, f"{harm}: a late answer granted something"
            assert await is_well(node), harm
        async with Client(node.url, token="good") as client:
            await client.publish("/free/after", 1)
        assert node.node.gate.waiting == 0


async def run_takes(method: str, kind: str) -> None:
    """Only a call that hangs reaches its limit: where an answer is expected, a busy machine is no hang."""
    audit = extensions.AUDIT
    is_failure = read_outcome(method, kind) is Outcome.FAILED
    settings = {**SETTINGS, "audit": AUDIT if is_failure else {**AUDIT, "take_timeout_ms": 60_000}}
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S), load(node):
        for harm in extensions.list_harms(kind):
            before = node.node.audits.counts["failed"]
            audit.harm, audit.harms_left, audit.taken = harm, 1, 0
            if is_failure:
                await until(lambda: node.node.audits.counts["failed"] > before)  # noqa: B023 - awaited in this turn
            else:
                await until(lambda: audit.taken)
                assert node.node.audits.counts["failed"] == before, harm
            assert await is_well(node), harm
            if harm == "hang":
                assert "take has run longer" in str(node.node.describe_troubles())
            else:
                await until(lambda: audit.taken)


async def run_starts(method: str, kind: str) -> None:
    """A node that does not start leaves nothing behind; one that starts works."""
    extension = _choose(method)
    try:
        for harm in extensions.list_harms(kind):
            extension.in_start = harm
            if read_outcome(method, kind) is Outcome.IGNORED:
                settings = _configure(extension, start_timeout_ms=60_000)
                async with asyncio.timeout(DEADLINE_S), testing.node(settings) as node, load(node):
                    assert await is_well(node), harm
                continue
            with pytest.raises(AuthorizerFailed):
                settings = _configure(extension, start_timeout_ms=LIMIT_MS)
                async with asyncio.timeout(DEADLINE_S), testing.node(settings):
                    pass
    finally:
        extension.in_start = ""


async def run_stops(method: str, kind: str) -> None:
    extension = _choose(method)
    settings = _configure(extension, start_timeout_ms=60_000)
    try:
        for harm in extensions.list_harms(kind):
            extension.in_stop = harm
            async with asyncio.timeout(DEADLINE_S), testing.node(settings) as node, load(node):
                pass
            assert node.node.health.condition == "stopped", harm
    finally:
        extension.in_stop = ""


def _choose(method: str) -> Any:
    """The extension that has this method."""
    return extensions.AUDIT if method.startswith("Audit.") else extensions.ENDS


def _configure(extension: Any, *, start_timeout_ms: int) -> dict[str, Any]:
    """A configuration with it. Only a start that hangs is waited for: a busy machine is no hang."""
    if extension is extensions.AUDIT:
        return {"audit": {**AUDIT, "start_timeout_ms": start_timeout_ms}}
    return {"access": {**ENDS, "authorizer_start_timeout_ms": start_timeout_ms}}


RUNS: dict[str, Callable[[str, str], Awaitable[None]]] = {
    **dict.fromkeys(ASKED, run_questions),
    "Authorizer.start": run_starts,
    "Authorizer.stop": run_stops,
    "Audit.take": run_takes,
    "Audit.start": run_starts,
    "Audit.stop": run_stops,
}


def test_every_method_has_its_attack_and_every_kind_its_harms() -> None:
    assert set(RUNS) == set(list_methods())
    assert all(extensions.list_harms(kind) for kind in extensions.KINDS)
    assert set(extensions.ANSWERS) <= set(extensions.KINDS)


@pytest.mark.parametrize(("method", "kind"), list_cells())
async def test_nobody_else_notices_a_method_that(method: str, kind: str) -> None:
    await RUNS[method](method, kind)


@pytest.mark.parametrize(
    ("harm", "timeout_ms", "why"),
    [
        ("hang", 200, "access.authorizer_start_timeout_ms"),
        ("exit_now", 30_000, "SystemExit"),
        ("interrupt", 30_000, "Keyboard"),
    ],
)
async def test_a_node_that_does_not_start_says_why(harm: str, timeout_ms: int, why: str) -> None:
    extensions.ENDS.in_start = harm
    try:
        with pytest.raises(AuthorizerFailed, match=why):
            async with testing.node({"access": {**ENDS, "authorizer_start_timeout_ms": timeout_ms}}):
                pass
    finally:
        extensions.ENDS.in_start = ""


async def test_an_audit_that_hangs_stops_blocking_publishers() -> None:
    audit = {**AUDIT, "block_ms_max": 300, "overflow": "block", "queue_events_max": 100}
    extensions.AUDIT.harm, extensions.AUDIT.harms_left = "hang", 1
    async with testing.node({**SETTINGS, "audit": audit}) as node, asyncio.timeout(DEADLINE_S):
        async with Client(node.url, token="good") as client:
            for number in range(1_000):
                await client.publish("/free/a", number)
        assert node.node.audits.counts["lost"] > 0


async def test_more_stuck_calls_than_places_lock_nobody_out() -> None:
    async with testing.node(SETTINGS) as node, asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(refuse(node, "swallow_cancellation") for _ in range(12)))
        with suppress(SessionClosed):
            async with Client(node.url, token="good") as client:
                await client.publish("/free/after", 1)
        assert node.node.gate.counts["granted"] >= 1
