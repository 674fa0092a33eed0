"""Groups, imports, and which receivers a notification to a group reaches."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.dispatch.conftest import Running, WallClock, running
from tests.dispatch.test_inbox import wait_for

DEADLINE_S = 60
SWEEPS = {"dispatch_limits": {"sweep_ms": 100}}


def make_lines(*rows: Any) -> bytes:
    return b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)


async def test_every_rejected_line_of_an_import_is_named(tmp_path: Path, runtime: Path) -> None:
    async with (
        running(tmp_path, {"dispatch": {"private_targets": ["127.0.0.1:9000"]}}) as both,
        asyncio.timeout(DEADLINE_S),
    ):
        hook = {"id": "h", "channel": "webhook", "value": "http://127.0.0.1:9000/x"}
        rows = make_lines(
            {"id": "ann", "locale": "de", "addresses": [hook]},
            b"",
            {"id": "bob", "unknown": 1},
            {"id": "cid", "addresses": [{**hook, "value": "http://127.0.0.1:9001/x"}]},
            b"x" * 70_000,
            {"id": "dan"},
            b'{"id": "cut',
        )
        status, answer = await both.api("POST", "/v1/receivers/import", rows)
        assert (status, answer["lines"], answer["rejected_count"]) == (200, 7, 4)
        assert {(row["line"], row["code"]) for row in answer["rejected"]} == {
            (3, 4300),
            (4, 4313),
            (5, 4301),
            (7, 4300),
        }
        _, ann = await both.api("GET", "/v1/receivers/ann")
        assert (ann["locale"], ann["addresses"][0]["value"]) == ("de", hook["value"])
        assert [(await both.api("GET", f"/v1/receivers/{name}"))[0] for name in ("bob", "cid", "dan")] == [
            404,
            404,
            200,
        ]
        status, answer = await both.api("POST", "/v1/receivers/import?after_line=6", rows)
        assert (answer["lines"], answer["rejected_count"]) == (7, 1)


async def test_who_left_gets_nothing_of_an_earlier_version_either(dispatch: Running, wall_clock: WallClock) -> None:
    """A letter that waits until tomorrow belongs to the version that was current when it was accepted."""
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/groups/news")
        for name in ("ann", "bob"):
            await dispatch.api("PUT", f"/v1/receivers/{name}")
            await dispatch.api("PUT", f"/v1/groups/news/subscriptions/{name}")
        tomorrow = datetime.fromtimestamp(wall_clock.time_ns() / 1e9 + 86_400, UTC)
        letter = {"to": {"group": "news"}, "content": {"title": "x"}, "send_at": tomorrow.isoformat()}
        assert (await dispatch.api("PUT", "/v1/notifications/n1", letter))[0] == 202
        rows = make_lines({"receiver": "ann"}, {"receiver": "bob"})
        await dispatch.api("POST", "/v1/groups/news/import?version=1", rows)
        await dispatch.api("PUT", "/v1/groups/news/version", {"version": 1})
        assert (await dispatch.api("DELETE", "/v1/groups/news/subscriptions/bob"))[0] == 204
        wall_clock.move(90_000)
        while (await dispatch.api("GET", "/v1/notifications/n1"))[1]["state"] != "settled":
            pass
        _, listed = await dispatch.api("GET", "/v1/notifications/n1/deliveries")
        assert [one["receiver"] for one in listed["deliveries"]] == ["ann"]


async def test_a_group_reaches_those_who_subscribed_before_and_leaves_out_exceptions(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        names = [f"r{number}" for number in range(1_200)]
        await dispatch.api("POST", "/v1/receivers/import", make_lines(*({"id": name} for name in names)))
        note = {"to": {"group": "news", "except": ["r0", "r1199"]}, "content": {"title": "x"}}
        assert (await dispatch.api("PUT", "/v1/notifications/early", note))[1]["code"] == 4316
        assert (await dispatch.api("PUT", "/v1/groups/news"))[0] == 201
        rows = make_lines(*({"receiver": name} for name in [*names, "nobody"]))
        assert (await dispatch.api("POST", "/v1/groups/news/import?version=0", rows))[0] == 422, "the current one"
        _, answer = await dispatch.api("POST", "/v1/groups/news/import?version=1", rows)
        assert answer["rejected"] == [
            {"line": 1_201, "code": 4310, "detail": answer["rejected"][0]["detail"], "pointer": "/receiver"}
        ]
        assert (await dispatch.api("GET", "/v1/groups/news"))[1]["receivers"] == 0
        await dispatch.api("PUT", "/v1/groups/news/version", {"version": 1})
        assert (await dispatch.api("GET", "/v1/groups/news"))[1] == {
            "id": "news",
            "version": 1,
            "receivers": 1_200,
            "last_version": 1,
        }
        assert (await dispatch.api("PUT", "/v1/notifications/n1", note))[0] == 202
        assert (await wait_for(dispatch, "n1"))["counts"] == {"inbox": {"sent": 1_198}}
        _, page = await dispatch.api("GET", "/v1/notifications/n1/deliveries")
        rest = await dispatch.api("GET", f"/v1/notifications/n1/deliveries?after={page['after']}")
        seen = [row["receiver"] for row in page["deliveries"] + rest[1]["deliveries"]]
        assert len(seen) == len(set(seen)) == 1_000 and seen[0] == "r1"


async def test_a_group_switches_only_to_a_version_that_was_imported(tmp_path: Path, runtime: Path) -> None:
    """A version without receivers would empty the group in silence, and one whose import was cut would be a part of it."""
    async with running(tmp_path, SWEEPS) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann")
        await both.api("PUT", "/v1/groups/news")
        await both.api("PUT", "/v1/groups/news/subscriptions/ann")
        status, answer = await both.api("PUT", "/v1/groups/news/version", {"version": 7})
        assert (status, answer["code"], answer["pointer"]) == (409, 4342, "/version")
        assert (await both.api("PUT", "/v1/groups/news/version", {"version": 0}))[0] == 200, "the current one"
        assert (await both.api("PUT", "/v1/groups/none/version", {"version": 1}))[1]["code"] == 4317
        lines = make_lines(*({"receiver": "ann"} for _ in range(5_000)))
        _, writer = await asyncio.open_connection(*both.url.removeprefix("http://").split(":"))
        head = f"POST /v1/groups/news/import?version=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {both.key}\r\n"
        writer.write(head.encode() + f"Content-Length: {len(lines) + 1}\r\n\r\n".encode() + lines)
        while (await both.api("GET", "/v1/groups/news"))[1]["last_version"] != 1:
            pass
        writer.transport.abort()
        status, answer = await both.api("PUT", "/v1/groups/news/version", {"version": 1})
        assert (status, answer["code"]) == (409, 4342)
        assert (await both.api("GET", "/v1/groups/news"))[1]["version"] == 0
        assert (await both.api("POST", "/v1/groups/news/import?version=1&after_line=4999", lines))[0] == 200
        assert (await both.api("PUT", "/v1/groups/news/version", {"version": 1}))[0] == 200
        assert (await both.api("POST", "/v1/groups/news/import?version=0", lines))[1]["code"] == 4300


async def test_old_versions_of_a_group_go_once_nothing_reads_them(tmp_path: Path, runtime: Path) -> None:
    """The current version and the one before are kept, and those of a notification that has not gone out."""
    async with running(tmp_path, SWEEPS) as both, asyncio.timeout(DEADLINE_S):
        assert both.part is not None
        for name in ("ann", "bob", "cid"):
            await both.api("PUT", f"/v1/receivers/{name}")
        await both.api("PUT", "/v1/groups/news")
        await both.api("PUT", "/v1/groups/news/subscriptions/ann")
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        later = {"to": {"group": "news"}, "content": {"title": "x"}, "send_at": tomorrow}
        for version, name in ((1, "bob"), (2, "cid"), (3, "ann"), (4, "bob")):
            if version == 2:
                assert (await both.api("PUT", "/v1/notifications/later", later))[0] == 202
            await both.api("POST", f"/v1/groups/news/import?version={version}", make_lines({"receiver": name}))
            assert (await both.api("PUT", "/v1/groups/news/version", {"version": version}))[0] == 200

        async def wait_for_versions(*expected: int) -> None:
            while tuple(list_versions(tmp_path)) != expected:
                await both.api("GET", "/v1/groups/news")

        await wait_for_versions(1, 3, 4)
        assert (await both.api("POST", "/v1/notifications/later/cancel"))[0] == 200
        await wait_for_versions(3, 4)
        assert (await both.api("PUT", "/v1/groups/news/version", {"version": 3}))[0] == 200, "the one before"


def list_versions(folder: Path) -> list[int]:
    (path,) = (folder / "dispatch").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT DISTINCT version FROM subscription ORDER BY version")]


async def test_who_subscribes_after_the_accept_is_not_reached(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/groups/news")
        for name in ("ann", "bob"):
            await dispatch.api("PUT", f"/v1/receivers/{name}", {})
        await dispatch.api("PUT", "/v1/groups/news/subscriptions/ann")
        note = {"to": {"group": "news"}, "content": {"title": "x"}}
        await dispatch.api("PUT", "/v1/notifications/n1", note)
        assert (await dispatch.api("PUT", "/v1/groups/news/subscriptions/bob"))[0] == 200
        assert (await wait_for(dispatch, "n1"))["counts"] == {"inbox": {"sent": 1}}
        await dispatch.api("DELETE", "/v1/groups/news/subscriptions/ann")
        await dispatch.api("PUT", "/v1/notifications/n2", note)
        await wait_for(dispatch, "n2")
        _, answer = await dispatch.api("GET", "/v1/notifications/n2/deliveries")
        assert [row["receiver"] for row in answer["deliveries"]] == ["bob"]
        assert (await dispatch.api("PUT", "/v1/groups/news/subscriptions/nobody"))[1]["code"] == 4310
        assert (await dispatch.api("DELETE", "/v1/groups/news"))[0] == 204
        assert (await dispatch.api("GET", "/v1/groups/news"))[1]["code"] == 4317
