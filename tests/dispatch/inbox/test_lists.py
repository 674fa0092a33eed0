"""Lists of an inbox: their order, their filters, marks by id, and which item is removed when the inbox is full."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from godwit.dispatch.channels.inbox.announcer import Announcer
from godwit.dispatch.model import Head
from godwit.dispatch.tokens import SigningKey
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for

DEADLINE_S = 60
NEWEST = "0.999999999999999999"


async def send(both: Running, *names: str, **more: Any) -> None:
    for name in names:
        body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": name}, **more}
        assert (await both.api("PUT", f"/v1/notifications/{name}", body))[0] == 202
        await wait_for(both, name)


async def list_ids(both: Running, token: str, more: str = "", before: str = NEWEST) -> list[str]:
    status, answer = await both.api("GET", f"/v1/inbox?before={before}{more}", key=token)
    assert status == 200, answer
    return [item["id"] for item in answer["items"]]


async def mark(both: Running, token: str, kind: str, *ids: str) -> Any:
    status, answer = await both.api("POST", "/v1/inbox/marks", {"mark": kind, "ids": list(ids)}, key=token)
    assert status == 200, answer
    return answer


async def test_a_mark_does_not_move_an_item_within_a_list(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a", "b", "c")
        token = await dispatch.make_token("ann")
        marked = await mark(dispatch, token, "read", "a")
        assert [(item["id"], item["at"].split(".")[1], item["first"].split(".")[1]) for item in marked["items"]] == [
            ("a", "4", "1")
        ]
        assert await list_ids(dispatch, token) == ["c", "b", "a"]
        _, page = await dispatch.api("GET", f"/v1/inbox?before={NEWEST}&limit=2", key=token)
        assert not page["complete"] and page["subject"] == "/$inbox/default/ann"
        assert await list_ids(dispatch, token, before=page["items"][-1]["first"]) == ["a"]


async def test_a_list_shows_one_state_or_one_category(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a", "b", "c", "d")
        await send(dispatch, "e", category="news")
        token = await dispatch.make_token("ann")
        await mark(dispatch, token, "read", "a", "b")
        await mark(dispatch, token, "archived", "b", "c")
        assert (await dispatch.api("POST", "/v1/notifications/d/recall"))[0] == 200
        shown = {
            state: await list_ids(dispatch, token, f"&state={state}")
            for state in ("active", "unread", "read", "archived")
        }
        assert shown == {"active": ["e", "a"], "unread": ["e"], "read": ["a"], "archived": ["c", "b"]}
        assert await list_ids(dispatch, token, "&category=news") == ["e"]
        for wrong in (
            "after=0.0&state=unread",
            "state=unread",
            "category=news",
            f"before={NEWEST}&after=0.0",
            f"before={NEWEST}&wait=1",
        ):
            status, answer = await dispatch.api("GET", f"/v1/inbox?{wrong}", key=token)
            assert (status, answer["code"]) == (422, 4300) and "before" in answer["detail"], wrong
        status, answer = await dispatch.api("GET", f"/v1/inbox?before={NEWEST}&state=odd", key=token)
        assert (status, answer["code"]) == (422, 4300) and "active, unread, read, archived" in answer["detail"]


async def test_a_mark_by_id_reaches_an_item_that_another_device_has_changed(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        token = await dispatch.make_token("ann")
        await mark(dispatch, token, "seen", "a")  # the position that the other device knows is old by now
        answer = await mark(dispatch, token, "read", "a", "a", "unknown")
        assert answer["unread"] == 0 and [item["flags"] for item in answer["items"]] == [["seen", "read"]]
        for wrong in (
            {"mark": "read"},
            {"mark": "read", "ids": ["a"], "items": []},
            {"mark": "delivered", "ids": ["a"]},
        ):
            assert (await dispatch.api("POST", "/v1/inbox/marks", wrong, key=token))[1]["code"] == 4300


async def test_a_full_inbox_loses_the_item_that_arrived_first(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, {"dispatch_limits": {"inbox_items_max": 10}}) as both:
        await send(both, *(f"n{number}" for number in range(10)))
        token = await both.make_token("ann")
        await mark(both, token, "read", "n0")
        await send(both, "n10")
        assert await list_ids(both, token) == [f"n{number}" for number in range(10, 0, -1)]
        assert (await both.api("GET", "/v1/inbox/counts", key=token))[1]["unread"] == 10


async def test_a_head_that_was_read_earlier_is_not_published_later(
    dispatch: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    active, peak, done = 0, 0, asyncio.Event()

    async def read_heads(owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
        nonlocal active, peak
        active += 1
        peak = max(peak, active)
        for _ in range(5):
            await asyncio.sleep(0)  # a turn of the loop, in which another could begin
            announcer._want_head(("default", "ann"))
        active -= 1
        done.set()
        return {("default", "ann"): Head(1, 1, 0, 0)}

    signing = SigningKey(tmp_path / "dispatch" / "token.key")
    announcer = Announcer(dispatch.node_url, signing.sign_service, read_heads)
    announcer._want_head(("default", "ann"))
    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(announcer.run())
        await done.wait()
        done.clear()
        await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert peak == 1
