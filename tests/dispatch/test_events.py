"""The event feed, event webhooks, live counts and metrics: in order, complete, and without a storm after a failure."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from godwit.client import Client
from godwit.dispatch.feed.live import LiveCounts
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_tenants import make_key
from tests.dispatch.test_webhook import LOOPBACK, endpoint

DEADLINE_S = 60
HI = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}}


async def send(both: Running, *names: str) -> None:
    for name in names:
        await both.api("PUT", f"/v1/notifications/{name}", HI)
        await wait_for(both, name)


async def test_the_feed_is_complete_in_order_and_each_tenants_own(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "n1", "n2")
        _, answer = await dispatch.api("GET", "/v1/events?detail=deliveries")
        assert [(one["type"], one["notification"], one["channel"]) for one in answer["events"]] == [
            ("delivery.sent", "n1", "inbox"),
            ("delivery.sent", "n2", "inbox"),
        ]
        assert answer["events"][0]["deliveries"][0]["receiver"] == "ann" and answer["complete"]
        _, rest = await dispatch.api("GET", "/v1/events?after=0&limit=1")
        assert len(rest["events"]) == 1 and not rest["complete"]
        poll = asyncio.create_task(dispatch.api("GET", f"/v1/events?after={answer['after']}&types=item.read&wait=30"))
        token = await dispatch.make_token("ann")
        head = (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]["head"]
        await dispatch.api("POST", "/v1/inbox/marks", {"mark": "read", "items": [head]}, key=token)
        while not (found := (await poll)[1])["events"]:  # woken by another event
            poll = asyncio.create_task(
                dispatch.api("GET", f"/v1/events?after={answer['after']}&types=item.read&wait=30")
            )
        assert [one["type"] for one in found["events"]] == ["item.read"]
        shop = await make_key(dispatch, "shop", "events")
        assert (await dispatch.api("GET", "/v1/events", key=shop))[1]["events"] == []
        assert (await dispatch.api("GET", "/v1/events", key=await make_key(dispatch, "shop", "read")))[1][
            "code"
        ] == 4304
        for wrong in ("after=x", "types=a b", "after=-1", "types=delivery.fialed", "types=delivery.sending"):
            assert (await dispatch.api("GET", f"/v1/events?{wrong}"))[1]["code"] == 4300
        await dispatch.api("DELETE", "/v1/receivers/ann")
        _, answer = await dispatch.api("GET", "/v1/events?detail=deliveries")
        assert '"ann"' not in json.dumps(answer), "an erased receiver has no name in the feed"


async def test_a_number_beyond_the_newest_event_passes_over_nothing(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, LOOPBACK) as both, asyncio.timeout(DEADLINE_S):
        await send(both, "n1")
        newest = (await both.api("GET", "/v1/events"))[1]["after"]
        assert (await both.api("GET", "/v1/events?after=123456789"))[1]["after"] == newest
        await both.api("PUT", "/v1/webhooks/w", {"url": "https://hooks.example.com/"})
        status, answer = await both.api("POST", "/v1/webhooks/w/replay", {"after": newest + 1})
        assert (status, answer["code"], answer["pointer"]) == (422, 4300, "/after")
        assert (await both.api("POST", "/v1/webhooks/w/replay", {"after": newest}))[0] == 202
        status, answer = await both.api(
            "PUT", "/v1/webhooks/w", {"url": "https://x.example/", "types": ["item.opened"]}
        )
        assert (status, answer["code"], answer["pointer"]) == (422, 4300, "/types")


async def test_event_webhooks_are_signed_in_order_and_go_on_after_a_failure(tmp_path: Path, runtime: Path) -> None:
    taken: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
    answers = {"status": 503}

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        return web.Response(status=answers["status"], headers={"Retry-After": "1"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        hook = {"url": url, "types": ["delivery.sent"], "detail": "deliveries"}
        status, made = await both.api("PUT", "/v1/webhooks/w", hook)
        assert (status, made["state"]) == (201, "active")
        await send(both, "n1", "n2", "n3")
        probe = await taken.get()
        while (await both.api("GET", "/v1/webhooks/w"))[1].get("failures") != 1:
            pass
        assert taken.empty(), "one probe, and nothing behind it"
        answers["status"] = 204
        got = [probe, *[await taken.get() for _ in range(3)]]
        events = [json.loads(body) for _, body in got]
        assert [event["data"]["notification"] for event in events] == ["n1", "n1", "n2", "n3"]
        assert (
            events[0]["id"] == events[1]["id"] == got[0][0]["webhook-id"]
            and events[1]["type"] == "godwit.delivery.sent"
        )
        assert events[1]["data"]["deliveries"][0]["receiver"] == "ann"
        assert Webhook(made["secret"]).verify(got[1][1], got[1][0])
        _, rotated = await both.api("POST", "/v1/webhooks/w/rotate")
        _, answer = await both.api("POST", "/v1/webhooks/w/test")
        assert answer == {"result": "ok", "detail": "HTTP 204"}
        headers, body = await taken.get()
        assert Webhook(made["secret"]).verify(body, headers) == Webhook(rotated["secret"]).verify(body, headers)
        first = int(events[0]["id"].removeprefix("evt_"))
        assert (await both.api("POST", "/v1/webhooks/w/replay", {"after": first}))[0] == 202
        assert json.loads((await taken.get())[1])["data"]["notification"] == "n2"


@pytest.mark.parametrize(("status", "state"), [(410, "disabled"), (400, "active")])
async def test_an_endpoint_that_is_gone_is_disabled_and_a_rejected_event_is_passed_over(
    tmp_path: Path, runtime: Path, status: int, state: str
) -> None:
    seen: asyncio.Queue[Any] = asyncio.Queue()

    async def refuse(request: web.Request) -> web.Response:
        seen.put_nowait(await request.json())
        return web.Response(status=status)

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/webhooks/w", {"url": url})
        await send(both, "n1")
        await seen.get()
        while True:
            _, answer = await both.api("GET", "/v1/webhooks/w")
            if (answer["state"] == "disabled") if state == "disabled" else answer["rejected"]:
                break
        assert answer["state"] == state
        if state == "active":
            assert answer["rejected"][0]["reason"] == "HTTP 400"
        else:
            _, found = await both.api("GET", "/v1/events?types=webhook.disabled")
            assert [one["reason"] for one in found["events"]] == ["w"]


@pytest.mark.parametrize("change", ["replay", "put", "delete"])
async def test_what_changes_a_webhook_while_it_sends_is_not_overwritten(
    tmp_path: Path, runtime: Path, change: str
) -> None:
    seen: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    may_answer = asyncio.Event()

    async def take(request: web.Request) -> web.Response:
        seen.put_nowait((request.query_string, (await request.json())["data"]["notification"]))
        await may_answer.wait()
        return web.Response(status=400 if change == "delete" else 204)

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await send(both, "n1")
        await both.api("PUT", "/v1/webhooks/w", {"url": f"{url}?old"})
        await send(both, "n2", "n3")
        assert await seen.get() == ("old", "n2")
        if change == "replay":
            await both.api("POST", "/v1/webhooks/w/replay", {"after": 0})
        elif change == "put":
            await both.api("PUT", "/v1/webhooks/w", {"url": f"{url}?new"})
        else:
            await both.api("DELETE", "/v1/webhooks/w")
            await both.api("PUT", "/v1/webhooks/v", {"url": f"{url}?other"})
            await send(both, "n4")
        may_answer.set()
        following = await seen.get()
        while change != "delete" and following[1] == "n2" and following[0] == "old":
            following = await seen.get()
        expected = {"replay": ("old", "n1"), "put": ("new", "n2"), "delete": ("other", "n4")}
        assert following == expected[change]
    rows = sqlite3.connect(tmp_path / "dispatch" / "dispatch.sqlite")
    left = rows.execute("SELECT count(*) FROM webhook_letter WHERE wid NOT IN (SELECT wid FROM webhook)").fetchone()
    assert left == (0,), "a letter of a webhook that is gone"


async def test_counts_of_a_notification_that_comes_later_reach_whoever_looked_before(
    dispatch: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = asyncio.Event()
    read_counts = LiveCounts._publish_one

    async def publish(self: LiveCounts, client: Client, looked: tuple[str, str]) -> None:
        await read_counts(self, client, looked)
        missed.set()

    monkeypatch.setattr(LiveCounts, "_publish_one", publish)
    async with asyncio.timeout(DEADLINE_S):
        _, answer = await dispatch.api("POST", "/v1/live-token")
        async with Client(dispatch.node_url, token=answer["token"]) as client:
            counts = aiter(client.subscribe("/$dispatch/default/notifications/n1"))
            first = asyncio.ensure_future(anext(counts))
            await missed.wait()
            await send(dispatch, "n1")
            shown = (await first).json()
            while shown["counts"] != {"inbox": {"sent": 1}}:
                shown = (await anext(counts)).json()


async def test_live_counts_reach_whoever_looks(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        later = {**HI, "send_at": "2099-01-01T00:00:00Z"}
        assert (await dispatch.api("POST", "/v1/notifications", later))[1]["code"] == 4300
        await send(dispatch, "n1")
        _, answer = await dispatch.api("POST", "/v1/live-token")
        async with Client(dispatch.node_url, token=answer["token"]) as client:
            counts = aiter(client.subscribe("/$dispatch/default/notifications/n1"))
            shown = (await anext(counts)).json()
            assert shown == {"id": "n1", "state": "settled", "counts": {"inbox": {"sent": 1}}}
            token = await dispatch.make_token("ann")
            head = (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]["head"]
            await dispatch.api("POST", "/v1/inbox/marks", {"mark": "read", "items": [head]}, key=token)
            while shown["counts"] != {"inbox": {"delivered": 1}}:
                shown = (await anext(counts)).json()


async def test_metrics_are_the_operators(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "n1")
        headers = {"Authorization": f"Bearer {dispatch.key}"}
        line = 'godwit_dispatch_deliveries_total{tenant="default",channel="inbox",state="sent"} 1'
        while True:
            async with dispatch.http.get(dispatch.url + "/metrics", headers=headers) as answer:
                text = await answer.text()
            if line in text.splitlines():
                break
        assert "godwit_dispatch_wal_bytes" in text
        assert (await dispatch.api("GET", "/metrics", key=await make_key(dispatch, "shop", "admin")))[1]["code"] == 4304
