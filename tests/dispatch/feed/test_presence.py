"""Connections as feedback: an event when a receiver comes and leaves, only for tenants that ask for it, and right after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from godwit.client import Client
from godwit.dispatch.channels.inbox.announcer import Announcer
from godwit.dispatch.errors import StoreFailed
from godwit.dispatch.feed import presence
from godwit.dispatch.feed.presence import Presence
from godwit.dispatch.model import Head
from godwit.dispatch.tokens import SigningKey
from tests.dispatch.conftest import Running, running

DEADLINE_S = 60


async def next_event(both: Running, after: int) -> dict[str, Any]:
    types = "receiver.connected,receiver.disconnected"
    while True:
        _, answer = await both.api("GET", f"/v1/events?after={after}&types={types}&wait=30&detail=deliveries")
        if answer["events"]:
            event: dict[str, Any] = answer["events"][0]
            return event


def number_of(event: dict[str, Any]) -> int:
    return int(str(event["id"]).removeprefix("evt_"))


async def look(both: Running) -> dict[str, Any]:
    _, answer = await both.api("GET", "/v1/receivers/ann")
    shown: dict[str, Any] = answer
    return shown


def connect(both: Running, token: str) -> Client:
    async def show() -> str:
        return token

    return Client(both.node_url, token=show)


async def test_who_comes_and_leaves_is_an_event_and_seen(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/receivers/ann", {})
        assert "connected" not in await look(dispatch)
        assert (await dispatch.api("PUT", "/v1/tenants/default", {"presence": True}))[0] == 200
        assert (await dispatch.api("GET", "/v1/tenants/default"))[1]["presence"] is True
        assert (await look(dispatch))["connected"] is False
        token = await dispatch.make_token("ann")
        async with connect(dispatch, token) as client:
            await client.subscribe("/$inbox/default/ann").joined()
            came = await next_event(dispatch, 0)
            assert (came["type"], came["deliveries"][0]["receiver"]) == ("receiver.connected", "ann")
            shown = await look(dispatch)
            assert shown["connected"] and shown["last_seen_ms"] > 0
        left = await next_event(dispatch, number_of(came))
        assert left["type"] == "receiver.disconnected"
        assert (await look(dispatch))["connected"] is False
        await dispatch.api("PUT", "/v1/tenants/default", {"presence": False})
        assert "last_seen_ms" not in await look(dispatch)
        await dispatch.api("PUT", "/v1/tenants/default", {"presence": True})
        assert (await look(dispatch))["last_seen_ms"] is None, "what was recorded is gone"


async def test_who_left_while_dispatch_was_down_is_not_connected(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async with running(tmp_path) as both:
            await both.api("PUT", "/v1/receivers/ann", {})
            await both.api("PUT", "/v1/tenants/default", {"presence": True})
            async with connect(both, await both.make_token("ann")) as client:
                await client.subscribe("/$inbox/default/ann").joined()
                came = await next_event(both, 0)
                assert both.part is not None
                await both.part.stop()
        async with running(tmp_path) as both:
            assert (await next_event(both, number_of(came)))["type"] == "receiver.disconnected"


async def test_a_tenant_that_begins_to_ask_gets_who_is_connected_already(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/receivers/ann", {})
        async with connect(dispatch, await dispatch.make_token("ann")) as client:
            await client.subscribe("/$inbox/default/ann").joined()
            await dispatch.api("PUT", "/v1/tenants/default", {"presence": True})
            came = await next_event(dispatch, 0)
            await dispatch.api("PUT", "/v1/tenants/default", {"presence": False})
            await dispatch.api("PUT", "/v1/tenants/default", {"presence": True})
            again = await next_event(dispatch, number_of(came))
            assert again["type"] == "receiver.connected"


class Kept:
    """A store that fails the first time, and says what it was given."""

    def __init__(self, *present: tuple[int, str, str]) -> None:
        self.present, self.is_failing = present, True
        self.noted: asyncio.Queue[tuple[str, str, bool]] = asyncio.Queue()

    async def note_presence(self, changes: Sequence[tuple[str, str, bool]], now_ms: int) -> None:
        if self.is_failing:
            self.is_failing = False
            raise StoreFailed("the disk is full")
        for change in changes:
            self.noted.put_nowait(change)

    async def list_present(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        return [row for row in self.present if row[0] > after]


async def test_what_the_store_did_not_take_is_stored_later_and_nobody_leaves_before_all_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(presence, "PACE_S", 0)
    connected = {("t", "ann")}
    store = Kept((1, "t", "ann"), (2, "t", "bob"))
    role = Presence(store, lambda tenant, name: (tenant, name) in connected)
    async with asyncio.timeout(DEADLINE_S):
        role.take(("t", "ann"), ("t", "bob"))
        with pytest.raises(StoreFailed):
            await role.run()
        running_again = asyncio.create_task(role.run())
        assert await store.noted.get() == ("t", "ann", True)
        assert store.noted.empty(), "bob may be connected: the node has not reported yet"
        role.settle(True)
        assert await store.noted.get() == ("t", "bob", False)
        running_again.cancel()


async def test_an_announcer_that_runs_again_knows_nobody_of_before(dispatch: Running, tmp_path: Path) -> None:
    async def read_heads(owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
        return {}

    complete: asyncio.Queue[bool] = asyncio.Queue()
    changed = asyncio.Event()
    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    announcer = Announcer(
        dispatch.node_url, signing.sign_service, read_heads, lambda owner: changed.set(), complete.put_nowait
    )

    async def knows(*names: str) -> None:
        while [name for _, name in announcer.list_connected("default")] != list(names):
            changed.clear()
            await changed.wait()

    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/receivers/ann", {})
        async with connect(dispatch, await dispatch.make_token("ann")) as client:
            await client.subscribe("/$inbox/default/ann").joined()
            task = asyncio.create_task(announcer.run())
            assert [await complete.get(), await complete.get()] == [False, True]
            await knows("ann")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        task = asyncio.create_task(announcer.run())
        assert [await complete.get(), await complete.get()] == [False, True]
        await knows()  # the node reports a moment later that the last client left
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
