"""The lists that people need: notifications, receivers, and why deliveries failed; and that the console's files are what is served."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from godwit.dispatch.stores.sqlite.manage import lists
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.vault import Vault
from tests.dispatch.conftest import Running
from tests.dispatch.inbox.test_lists import send

VAULT = Vault([bytes(32)])
DEADLINE_S = 60


async def test_notifications_are_listed_page_by_page_and_by_state(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a", "b", "c")
        later = {"to": {"receiver": "ann"}, "content": {"body": "later"}, "send_at": "2030-01-01T00:00:00Z"}
        assert (await dispatch.api("PUT", "/v1/notifications/d", later))[0] in (202, 422)
        _, first = await dispatch.api("GET", "/v1/notifications?limit=2&state=settled")
        _, rest = await dispatch.api("GET", f"/v1/notifications?limit=2&state=settled&after={first['after']}")
        shown = first["notifications"] + rest["notifications"]
        assert [(row["id"], row["title"], row["receivers"]) for row in shown] == [
            ("c", "c", 1),
            ("b", "b", 1),
            ("a", "a", 1),
        ]
        assert shown[0]["counts"] == {"inbox": {"sent": 1}} and rest["after"] == 0
        status, answer = await dispatch.api("GET", "/v1/notifications?state=odd")
        assert (status, answer["code"]) == (422, 4300) and "settled" in answer["detail"]


async def test_receivers_are_found_by_the_beginning_of_their_name(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for name in ("user:1", "user:2", "user:10", "shop", "%", "us_r"):
            await dispatch.api("PUT", f"/v1/receivers/{name.replace('%', '%25')}", {})
        _, first = await dispatch.api("GET", "/v1/receivers?prefix=user:&limit=2")
        _, rest = await dispatch.api("GET", f"/v1/receivers?prefix=user:&limit=2&after={first['after']}")
        assert [row["id"] for row in first["receivers"] + rest["receivers"]] == ["user:1", "user:10", "user:2"]
        assert rest["after"] is None and first["receivers"][0] == {"id": "user:1", "unread": 0, "items": 0}
        _, odd = await dispatch.api("GET", "/v1/receivers?prefix=%25")
        assert [row["id"] for row in odd["receivers"]] == ["%"]
        other = (
            await dispatch.api("PUT", "/v1/tenants/shop", {}),
            await dispatch.api("POST", "/v1/keys", {"scopes": ["read"], "tenant": "shop"}),
        )
        _, theirs = await dispatch.api("GET", "/v1/receivers", key=other[1][1]["key"])
        assert theirs["receivers"] == []


async def test_failures_are_counted_by_channel_and_reason(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for number in range(3):
            body = {
                "to": {"address": {"channel": "webhook", "value": "https://content.sandbox.invalid/"}},
                "content": {"title": "x"},
            }
            assert (await dispatch.api("PUT", f"/v1/notifications/n{number}", body))[0] == 202
        answer: dict[str, list[dict[str, object]]] = {"reasons": []}
        while sum(int(str(row["deliveries"])) for row in answer["reasons"]) < 3:
            _, answer = await dispatch.api("GET", "/v1/dead-letters/reasons")
        assert [(row["channel"], row["state"], row["deliveries"]) for row in answer["reasons"]] == [
            ("webhook", "failed", 3)
        ]


async def test_the_console_is_served_without_a_key_and_may_not_be_framed(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for path, media in (
            ("/console/", "text/html"),
            ("/console/dispatch/console.js", "text/javascript"),
            ("/console/style/theme.css", "text/css"),
        ):
            async with dispatch.http.get(dispatch.url + path) as answer:
                assert (answer.status, answer.content_type) == (200, media)
                assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        for path in ("/console/../api.py", "/console/package.json", "/console/index.html"):
            async with dispatch.http.get(dispatch.url + path) as answer:
                assert answer.status == 404


async def test_a_list_costs_no_more_than_its_bounds(dispatch: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, *"abcde")
        monkeypatch.setattr(lists, "CHECKED_MAX", 2)
        names, after, pages = [], 0, 0
        while pages == 0 or after:
            _, answer = await dispatch.api("GET", f"/v1/notifications?state=settled&after={after}")
            names += [row["id"] for row in answer["notifications"]]
            after, pages = answer["after"], pages + 1
        assert names == list("edcba") and pages == 3


def test_lists_read_in_the_order_of_the_index(tmp_path: Path) -> None:
    asked: list[str] = []
    with closing(open_writer(tmp_path / "x.sqlite", VAULT)) as connection:
        connection.set_trace_callback(asked.append)
        lists.list_notifications(connection, "t", "", None, 0, 10)
        lists.count_reasons(connection, "t")
        connection.set_trace_callback(None)
        assert len(asked) == 3
        for query in asked:
            plan = str(connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall())
            assert ("SCAN notification" not in plan and "SCAN delivery USING INDEX delivery_failed" in plan) or (
                "delivery" not in plan and "TEMP B-TREE" not in plan
            ), plan
