"""One receiver's body that does not render fails one delivery; bodies that mostly do not render pause their job until corrected."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from godwit.dispatch.stores.sqlite.manage import pausing
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_webhook import LOOPBACK, endpoint

pytest.importorskip("liquid", reason="needs the extra `dispatch`")
DEADLINE_S = 90
COUNT = 140
BROKEN = {"body": '{"x": {{ content.data.missing }}}'}
GOOD = {"body": '{"to": {{ receiver | json }}}'}
SLOW = {**LOOPBACK, "dispatch_limits": {"sweep_ms": 100, "page_receivers_max": 20, "webhook_sends_max": 4}}
NEWS = {"to": {"group": "news"}, "content": {"title": "x"}}


async def put_form(both: Running, url: str, number: int, form: dict[str, Any]) -> None:
    body = {"channel": "webhook", "value": url, "format": form}
    assert (await both.api("PUT", f"/v1/receivers/r{number}/addresses/hook", body))[0] == 200


async def put_group(both: Running) -> None:
    await both.api("PUT", "/v1/groups/news")
    for number in range(COUNT):
        await both.api("PUT", f"/v1/receivers/r{number}")
        await both.api("PUT", f"/v1/groups/news/subscriptions/r{number}")


async def wait_until(both: Running, state: str) -> dict[str, Any]:
    while (answer := (await both.api("GET", "/v1/notifications/n1"))[1])["state"] != state:
        pass
    return dict(answer)


async def wait_until_quiet(both: Running) -> dict[str, Any]:
    """The counts of the paused job, once what was in flight when it paused has ended."""
    while (counts := (await wait_until(both, "paused"))["counts"]["webhook"]).get("sending"):
        pass
    return dict(counts)


async def test_a_broken_body_pauses_its_job_until_it_is_corrected(tmp_path: Path, runtime: Path) -> None:
    taken: Counter[str] = Counter()

    async def take(request: web.Request) -> web.Response:
        taken[(await request.json())["to"]] += 1
        return web.Response()

    async with running(tmp_path, SLOW) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_group(both)
        for number in range(COUNT):
            await put_form(both, url, number, BROKEN)
        assert (await both.api("PUT", "/v1/notifications/n1", NEWS))[0] == 202
        answer = await wait_until(both, "paused")
        assert answer["paused"] == ["webhook"]
        counts = await wait_until_quiet(both)
        assert 51 <= counts["failed"] < 51 + 8 and set(counts) <= {"failed", "deferred"} and not taken
        _, listed = await both.api("GET", "/v1/notifications?state=paused")
        assert [one["id"] for one in listed["notifications"]] == ["n1"]
        _, answer = await both.api("GET", "/v1/events?types=notification.paused")
        assert [(one["notification"], one["channel"]) for one in answer["events"]] == [("n1", "webhook")]
        for number in range(COUNT):
            await put_form(both, url, number, GOOD)
        status, answer = await both.api("POST", "/v1/notifications/n1/resume")
        assert (status, answer["resumed"], answer["released"]) == (200, ["webhook"], counts.get("deferred", 0))
        answer = await wait_until(both, "settled")
        assert answer["counts"]["webhook"] == {"failed": counts["failed"], "sent": COUNT - counts["failed"]}
        _, answer = await both.api("POST", "/v1/dead-letters/replay", {"notification": "n1", "reason": "content"})
        assert answer["replayed"] == counts["failed"]
        assert (await wait_until(both, "settled"))["counts"]["webhook"] == {"sent": COUNT}
        assert taken == {f"r{number}": 1 for number in range(COUNT)}
        assert (await both.api("POST", "/v1/notifications/n1/resume"))[1]["resumed"] == []
        assert (await both.api("POST", "/v1/notifications/no/resume"))[1]["code"] == 4305


async def test_a_job_pauses_again_where_nothing_was_corrected_and_a_paused_one_is_cancelled(
    tmp_path: Path, runtime: Path
) -> None:
    async with running(tmp_path, SLOW) as both, asyncio.timeout(DEADLINE_S):
        await put_group(both)
        for number in range(COUNT):
            await put_form(both, "http://127.0.0.1:9/", number, BROKEN)
        await both.api("PUT", "/v1/notifications/n1", NEWS)
        before = (await wait_until_quiet(both))["failed"]
        await both.api("PUT", "/v1/tenants/default", {"quotas": {"deliveries_per_day": 100_000}})
        await both.api("PUT", "/v1/notifications/n2", {"to": {"receiver": "r1"}, "content": {"title": "x"}})
        while not (await both.api("GET", "/v1/notifications/n2"))[1]["counts"].get("webhook"):
            pass  # its job was worked on after the quota was set
        assert (await wait_until_quiet(both))["failed"] == before, "a quota resumes nothing"
        await both.api("POST", "/v1/notifications/n1/resume")
        while (await wait_until(both, "paused"))["counts"]["webhook"]["failed"] < before + 51:
            pass
        assert (await both.api("POST", "/v1/notifications/n1/cancel"))[0] == 200
        answer = await wait_until(both, "cancelled")
        assert "paused" not in answer and not answer["counts"]["webhook"].get("deferred")


async def test_bodies_of_a_few_receivers_that_do_not_render_fail_only_their_deliveries(
    tmp_path: Path, runtime: Path
) -> None:
    async def take(request: web.Request) -> web.Response:
        return web.Response()

    async with running(tmp_path, SLOW) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_group(both)
        for number in range(COUNT):
            await put_form(both, url, number, BROKEN if number % 3 == 0 else GOOD)
        await both.api("PUT", "/v1/notifications/n1", NEWS)
        counts = (await wait_until(both, "settled"))["counts"]["webhook"]
        assert counts == {"failed": (COUNT + 2) // 3, "sent": COUNT - (COUNT + 2) // 3}


async def test_a_resume_that_was_cut_is_finished_by_the_next(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take(request: web.Request) -> web.Response:
        return web.Response()

    def cut(*_: object, **__: object) -> tuple[int, int]:
        raise OSError("no space left on device")

    async with running(tmp_path, SLOW) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_group(both)
        for number in range(COUNT):
            await put_form(both, url, number, BROKEN)
        await both.api("PUT", "/v1/notifications/n1", NEWS)
        await wait_until(both, "paused")
        held = (await wait_until_quiet(both))["deferred"]
        for number in range(COUNT):
            await put_form(both, url, number, GOOD)
        with monkeypatch.context() as patched:
            patched.setattr(pausing, "release_some", cut)
            assert (await both.api("POST", "/v1/notifications/n1/resume"))[0] >= 500
        _, answer = await both.api("POST", "/v1/notifications/n1/resume")
        assert (answer["resumed"], answer["released"]) == ([], held)
        await wait_until(both, "settled")
