"""The Python inbox against a node and dispatch, both real: lists, marks on all devices, following, and a dispatch that restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from godwit.client import Client, ClientClosed, ClientError
from godwit.client.inbox import DispatchRefused, Inbox
from tests import waiting
from tests.dispatch.conftest import Running, running
from tests.dispatch.inbox.test_lists import send

DEADLINE_S = 60


@asynccontextmanager
async def device(both: Running, **options: Any) -> AsyncIterator[Inbox]:
    token = await both.make_token("ann")
    async with Client(both.node_url, token=token) as client, Inbox(both.url, token, client=client, **options) as inbox:
        yield inbox


async def until(inbox: Inbox, ids: list[str], unread: int) -> None:
    while [item.id for item in inbox.items] != ids or inbox.unread != unread:
        await inbox.changed()


async def test_two_devices_share_marks_also_after_one_was_away(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as open_devices:
        await send(dispatch, "a", "b")
        phone, desk = [await open_devices.enter_async_context(device(dispatch)) for _ in range(2)]
        await send(dispatch, "c")
        for inbox in (phone, desk):
            await until(inbox, ["c", "b", "a"], 3)
        await phone.mark("read", [phone.items[2]])
        await until(desk, ["c", "b", "a"], 2)
        assert desk.items[2].flags == ("seen", "read")
        await desk.close()
        with pytest.raises(ClientClosed):
            await desk.changed()
        await phone.archive([phone.items[0]])
        await dispatch.api("POST", "/v1/notifications/b/recall")
        await until(phone, ["a"], 0)
        back = await open_devices.enter_async_context(device(dispatch))
        await until(back, ["a"], 0)
        await back.show("archived")
        await back.mark("unarchived", back.items)
        await back.show("unread")
        assert [item.id for item in back.items] == ["c"]
        await back.mark_all_read()
        await until(phone, ["c", "a"], 0)
        await back.write_preferences({"news": {"email": False}})
        assert await back.read_preferences() == {"news": {"email": False}}


async def test_following_yields_each_item_and_change_once(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        async with device(dispatch, confirm_ms=20) as inbox:
            following = aiter(inbox.follow())
            assert (await anext(following)).id == "a"
            await send(dispatch, "b")
            assert (await anext(following)).id == "b"
            await inbox.mark("read", [inbox.items[1]])
            changed = await anext(following)
            assert (changed.id, changed.flags, changed.unread) == ("a", ("seen", "read"), 1)
            state = ""
            while state != "delivered":
                deliveries = (await dispatch.api("GET", "/v1/notifications/b/deliveries"))[1]["deliveries"]
                state = deliveries[0]["state"]


async def test_without_a_node_an_inbox_follows_by_long_polls(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        token = await dispatch.make_token("ann")
        async with Inbox(dispatch.url, lambda: token) as inbox:
            await send(dispatch, "b")
            await until(inbox, ["b", "a"], 2)
            await dispatch.api("DELETE", "/v1/receivers/ann")
            await send(dispatch, "c")
            await until(inbox, ["c"], 1)


async def test_an_inbox_that_follows_by_long_polls_waits_for_a_receiver_that_is_created_again(
    dispatch: Running, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        async with Inbox(dispatch.url, await dispatch.make_token("ann")) as inbox:
            await dispatch.api("DELETE", "/v1/receivers/ann")
            await waiting.until(lambda: "(4310)" in caplog.text)
            await send(dispatch, "c")
            await until(inbox, ["c"], 1)


async def test_an_inbox_ends_with_its_client(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        token = await dispatch.make_token("ann")
        async with Client(dispatch.node_url, token=token) as client, Inbox(dispatch.url, token, client=client) as inbox:
            following = aiter(inbox.follow())
            assert (await anext(following)).id == "a"
            await client.close()
            with pytest.raises(ClientClosed):
                while True:
                    await anext(following)
            with pytest.raises(ClientClosed):
                while True:
                    await inbox.changed()


async def test_a_mark_of_everything_after_a_restart_waits_until_something_is_known(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        async with Inbox(dispatch.url, await dispatch.make_token("ann")) as inbox:
            inbox._take_fetched(inbox._state._restart())
            await inbox.mark_all_read()
            await until(inbox, ["a"], 0)


async def test_older_items_are_loaded_page_by_page(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        names = [f"n{number}" for number in range(60)]
        await send(dispatch, *names)
        async with device(dispatch) as inbox:
            await inbox.mark("read", [item for item in inbox.items if item.id == "n20"])
            while inbox.has_older:
                await inbox.load_older()
            await until(inbox, names[::-1], 59)


async def test_items_that_came_while_dispatch_and_node_were_gone_are_there(tmp_path: Path, runtime: Path) -> None:
    """The addresses stay, so that clients return to what runs there then."""
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as devices:
        async with running(tmp_path) as both:
            await send(both, "a")
            node, dispatch = both.node_url.removeprefix("ws://"), both.url.removeprefix("http://")
            inbox = await devices.enter_async_context(device(both))
        there = {"client": {"address": node}, "dispatch": {"address": dispatch}}
        async with running(tmp_path, there) as both:
            await send(both, "b", "c")
            await until(inbox, ["c", "b", "a"], 3)
            await devices.aclose()


async def test_a_refusal_ends_the_inbox_and_a_filter_must_exist(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(DispatchRefused) as refused:
            async with Inbox(dispatch.url, "forged"):
                pass
        assert (refused.value.status, refused.value.code) == (401, 4312)
        with pytest.raises(ClientError, match="expected one of active"):
            Inbox(dispatch.url, "forged", filter="odd")  # type: ignore[arg-type]  # as one without a type checker


@pytest.mark.parametrize("is_polling", [False, True])
async def test_counts_follow_when_retention_removes_an_unread_item(
    tmp_path: Path, runtime: Path, is_polling: bool
) -> None:
    limits = {"retention_ms": 3_000, "sweep_ms": 100}
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, {"dispatch_limits": limits}) as both:
        await both.api("PUT", "/v1/receivers/ann", {})
        token = await both.make_token("ann")
        async with AsyncExitStack() as devices:
            if is_polling:
                inbox = await devices.enter_async_context(Inbox(both.url, token))
            else:
                inbox = await devices.enter_async_context(device(both))
            await send(both, "a", expires_s=1)  # now: what retention leaves is counted from here
            while not inbox.unread:
                await inbox.changed()
            while inbox.unread:
                await inbox.changed()
            assert inbox.unseen == 0
