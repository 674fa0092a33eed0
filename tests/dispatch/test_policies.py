"""When and where a notification goes: times, priorities, preferences, quiet hours, collapse keys, policies of several steps."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from godwit.dispatch.fanout.lanes import Lanes
from godwit.dispatch.fanout.waiting import Held
from godwit.dispatch.model import DeliveryKey, Options, Priority, Profile, Shipment, State, Target
from godwit.dispatch.pure.policy import decide
from godwit.dispatch.pure.quiet import STAGGER_MS, find_zone, local_ms, quiet_until_ms
from tests.dispatch.conftest import Running, WallClock, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_webhook import LOOPBACK, endpoint

DEADLINE_S = 60
FAST = {"dispatch_limits": {"sweep_ms": 100}}
ANN = {"to": {"receiver": "ann"}, "content": {"title": "x"}}
SANDBOX = {"channel": "webhook", "value": "https://ok.sandbox.invalid/"}


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000


def in_one_day() -> str:
    return (datetime.now(UTC) + timedelta(days=1)).isoformat()


async def list_rows(both: Running, name: str) -> dict[tuple[str, str], tuple[str, str]]:
    _, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries")
    return {(row["receiver"], row["channel"]): (row["state"], row["reason"]) for row in answer["deliveries"]}


async def wait_for_row(both: Running, name: str, row: tuple[str, str], state: str) -> str:
    while (found := (await list_rows(both, name)).get(row, ("", "")))[0] != state:
        pass  # each answer is a turn of the loop
    return found[1]


@pytest.mark.parametrize(
    ("zone", "now", "end"),
    [
        ("Europe/Berlin", "2026-01-10T23:00:00+01:00", "2026-01-11T07:00:00+01:00"),
        ("Europe/Berlin", "2026-01-11T03:00:00+01:00", "2026-01-11T07:00:00+01:00"),
        ("Europe/Berlin", "2026-01-11T07:00:00+01:00", None),
        ("Europe/Berlin", "2026-03-28T23:30:00+01:00", "2026-03-29T07:00:00+02:00"),
        ("Europe/Berlin", "2026-10-24T23:30:00+02:00", "2026-10-25T07:00:00+01:00"),
        ("Asia/Kolkata", "2026-01-10T17:00:00+00:00", "2026-01-11T01:30:00+00:00"),
    ],
)
def test_quiet_hours_cross_midnight_and_daylight_saving(zone: str, now: str, end: str | None) -> None:
    known = find_zone(zone)
    assert known is not None
    assert quiet_until_ms(at(now), known, "22:00", "07:00", 0) == (None if end is None else at(end))


def test_an_end_that_is_skipped_or_ambiguous() -> None:
    berlin = find_zone("Europe/Berlin")
    assert berlin is not None
    assert local_ms(datetime(2026, 3, 29, 2, 30), berlin) == at("2026-03-29T03:00:00+02:00"), "the next valid time"
    assert local_ms(datetime(2026, 10, 25, 2, 30), berlin) == at("2026-10-25T02:30:00+01:00"), "the later"
    ends = {quiet_until_ms(at("2026-01-10T23:00:00+01:00"), berlin, "22:00", "07:00", n * 7_919) for n in range(500)}
    first = at("2026-01-11T07:00:00+01:00")
    assert len(ends) > 400 and all(end is not None and first <= end < first + STAGGER_MS for end in ends)


def test_the_verdict_on_a_delivery() -> None:
    now, late = at("2026-01-10T22:30:00+00:00"), at("2026-01-12T00:00:00+00:00")
    night = Profile(quiet=("22:00", "07:00"), opted_out=frozenset({"news/email", "*/webhook"}))

    def judge(options: Options, channel: str, expires_ms: int = late, **given: Any) -> tuple[State, str]:
        verdict = decide(options, night, channel, rid=1, now_ms=now, expires_ms=expires_ms, **given)
        return verdict.state, verdict.reason

    assert judge(Options(), "email") == (State.DEFERRED, "quiet_hours")
    assert judge(Options(), "inbox") == (State.QUEUED, ""), "an inbox disturbs nobody"
    assert judge(Options(critical=True), "email") == (State.QUEUED, "")
    assert judge(Options(), "email", now + 60_000) == (State.EXPIRED, "quiet_hours"), "the window ends after expiry"
    assert judge(Options(), "email", now) == (State.EXPIRED, "")
    assert judge(Options(category="news"), "email") == (State.SUPPRESSED, "preference")
    assert judge(Options(category="bill", critical=True), "webhook") == (State.SUPPRESSED, "preference")
    assert judge(Options(category="bill", critical=True), "webhook", is_required=True) == (State.QUEUED, "")
    assert judge(Options(), "email", suppression="bounced", is_required=True) == (State.SUPPRESSED, "bounced")
    assert judge(Options(is_test=True), "inbox") == (State.SUPPRESSED, "test_key")
    assert judge(Options(local="2026-01-11T08:00:00"), "inbox") == (State.DEFERRED, "local_time")


def test_high_priority_goes_before_what_waits() -> None:
    lanes = Lanes(lambda shipment: shipment.tenant, 8, 64)
    for number, priority in enumerate((Priority.NORMAL, Priority.BULK, Priority.HIGH)):
        key = DeliveryKey(1, number, "webhook", 1)
        lanes.add(Held(Shipment(key, "t", Target(number, 1), 0, 1, priority=priority), 1))
    first = lanes.take()
    assert first is not None and first.shipment.priority is Priority.HIGH


async def test_a_time_is_waited_for_also_through_a_restart_and_a_wrong_one_is_refused(
    tmp_path: Path, runtime: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        soon = datetime.now(UTC) + timedelta(seconds=4)
        async with running(tmp_path, FAST) as both:
            await both.api("PUT", "/v1/receivers/ann", {})
            assert (await both.api("PUT", "/v1/notifications/n1", {**ANN, "send_at": soon.isoformat()}))[0] == 202
            _, answer = await both.api("GET", "/v1/notifications/n1")
            assert (answer["state"], answer["counts"]) == ("accepted", {})
            for wrong, code in (
                ("2020-01-01T00:00:00Z", 4322),
                ("9999-01-01T00:00:00Z", 4300),
                ("tomorrow", 4300),
                ("2026-12-24T09:00:00", 4300),
                ({"local": "2020-01-01T00:00"}, 4322),
            ):
                for path in ("/v1/notifications", "/v1/notifications/check"):
                    status, answer = await both.api("POST", path, {**ANN, "send_at": wrong})
                    assert (status, answer["code"], answer["pointer"]) == (422, code, "/send_at"), path
        async with running(tmp_path, FAST) as both:
            answer = await wait_for(both, "n1")
            assert answer["counts"] == {"inbox": {"sent": 1}} and datetime.now(UTC) >= soon
            assert (await both.api("PUT", "/v1/notifications/n1", {**ANN, "send_at": soon.isoformat()}))[1]["repeat"]


async def test_a_local_time_that_has_passed_is_still_a_repeat(
    tmp_path: Path, runtime: Path, wall_clock: WallClock
) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        local = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()
        note = {**ANN, "send_at": {"local": local}}
        assert (await both.api("PUT", "/v1/notifications/n1", note))[0] == 202
        wall_clock.move(2 * 86_400)
        assert (await both.api("PUT", "/v1/notifications/n1", note))[1]["repeat"]
        _, answer = await both.api("POST", "/v1/notifications/batch", [{**note, "id": "n1"}, {**note, "id": "n2"}])
        assert answer["results"][0]["repeat"] and answer["results"][1]["code"] == 4322


async def test_a_local_time_comes_in_each_zone_at_its_own_moment(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        status, answer = await both.api("PUT", "/v1/receivers/bob", {"zone": "Mars/Olympus"})
        assert (status, answer["pointer"]) == (422, "/zone")
        await both.api("PUT", "/v1/receivers/east", {"zone": "Pacific/Kiritimati"})
        await both.api("PUT", "/v1/receivers/west", {"zone": "Pacific/Pago_Pago"})
        local = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()  # 14 h ago there, in 11 h here
        note = {"to": {"receivers": ["east", "west"]}, "content": {"title": "x"}, "send_at": {"local": local}}
        assert (await both.api("PUT", "/v1/notifications/n1", note))[0] == 202
        await wait_for_row(both, "n1", ("east", "inbox"), "sent")
        assert await wait_for_row(both, "n1", ("west", "inbox"), "deferred") == "local_time"


async def test_preferences_suppressions_and_required_categories(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", SANDBOX)
        token = await both.make_token("ann")
        wishes = {"categories": {"news": {"inbox": False, "webhook": False}}}
        assert (await both.api("PUT", "/v1/inbox/preferences", wishes, key=token))[0] == 200
        assert (await both.api("GET", "/v1/receivers/ann/preferences"))[1]["categories"] == wishes["categories"]
        assert (await both.api("PUT", "/v1/categories/bill", {"required": True, "expires_s": 60}))[0] == 201
        news, bill = {**ANN, "category": "news"}, {**ANN, "category": "bill"}
        _, answer = await both.api("POST", "/v1/notifications/check", news)
        assert answer["channels"]["inbox"] == {"suppressed: preference": 1}
        await both.api("PUT", "/v1/notifications/n1", news)
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"suppressed": 1}, "webhook": {"suppressed": 1}}
        everything = {"categories": {"*": {"*": False}}}
        await both.api("PUT", "/v1/receivers/ann/preferences", everything)
        await both.api("PUT", "/v1/notifications/n2", bill)
        answer = await wait_for(both, "n2")
        assert answer["counts"] == {"inbox": {"sent": 1}, "webhook": {"sent": 1}}
        assert answer["expires_ms"] - answer["accepted_ms"] == 60_000
        await both.api("PUT", "/v1/receivers/ann/preferences", {"categories": {}})
        path = f"/v1/suppressions/webhook/{SANDBOX['value']}"
        assert (await both.api("PUT", path, {"category": "news", "reason": "unsubscribed"}))[0] == 200
        for name, body, state in (("n3", news, "suppressed"), ("n4", bill, "sent"), ("n5", ANN, "sent")):
            await both.api("PUT", f"/v1/notifications/{name}", body)
            assert (await wait_for(both, name))["counts"]["webhook"] == {state: 1}
        await both.api("PUT", path, {"reason": "complained"})
        await both.api("PUT", "/v1/notifications/n6", bill)
        await wait_for(both, "n6")
        assert (await list_rows(both, "n6"))["ann", "webhook"] == ("suppressed", "complained")
        assert (await both.api("DELETE", path))[0] == 204 and (await both.api("GET", path))[1]["code"] == 4321


async def test_a_newer_notification_ends_and_replaces_the_older(tmp_path: Path, runtime: Path) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=500, headers={"Retry-After": "600"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", {"channel": "webhook", "value": url})
        note = {**ANN, "collapse_key": "score"}
        await both.api("PUT", "/v1/notifications/n1", note)
        await wait_for_row(both, "n1", ("ann", "webhook"), "deferred")
        await both.api("PUT", "/v1/notifications/n2", note)
        assert await wait_for_row(both, "n1", ("ann", "webhook"), "collapsed") == "newer"
        await wait_for_row(both, "n2", ("ann", "inbox"), "sent")
        token = await both.make_token("ann")
        _, answer = await both.api("GET", "/v1/inbox", key=token)
        assert [(item["id"], item["flags"]) for item in answer["items"]] == [("n1", ["recalled"]), ("n2", [])]
        assert answer["unread"] == 1


async def test_one_send_for_each_address_value_where_it_is_asked_for(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        for name in ("ann", "bob"):
            await both.api("PUT", f"/v1/receivers/{name}", {})
            await both.api("PUT", f"/v1/receivers/{name}/addresses/hook", SANDBOX)
        note = {"to": {"receivers": ["ann", "bob", "ann"]}, "content": {"title": "x"}}
        for name, extra, counts in (("n1", {"dedupe": True}, {"sent": 1, "collapsed": 1}), ("n2", {}, {"sent": 2})):
            await both.api("PUT", f"/v1/notifications/{name}", {**note, **extra})
            assert (await wait_for(both, name))["counts"]["webhook"] == counts


async def test_an_address_without_a_receiver_and_a_doubt_that_is_held(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        doubt = {"channel": "webhook", "value": "https://doubt.sandbox.invalid/"}
        note = {"to": {"address": doubt}, "content": {"title": "x"}, "if_in_doubt": "hold"}
        assert (await both.api("PUT", "/v1/notifications/n1", note))[0] == 202
        assert (await wait_for(both, "n1"))["counts"] == {"webhook": {"unknown": 1}}
        private = {"to": {"address": {"channel": "webhook", "value": "http://127.0.0.1/"}}, "content": {"title": "x"}}
        status, answer = await both.api("POST", "/v1/notifications", private)
        assert (status, answer["code"], answer["pointer"]) == (422, 4313, "/to/address/value")


async def test_a_policy_moves_on_when_a_step_fails_or_nobody_looks(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        bad = {"channel": "webhook", "value": "https://content.sandbox.invalid/"}
        for name in ("ann", "bob", "cid"):
            await both.api("PUT", f"/v1/receivers/{name}", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", SANDBOX)
        await both.api("PUT", "/v1/receivers/bob/addresses/hook", bad)
        note = {"to": {"receivers": ["ann", "bob", "cid"]}, "content": {"title": "x"}}
        await both.api("PUT", "/v1/notifications/n1", {**note, "policy": {"first": ["webhook", "inbox"]}})
        await wait_for(both, "n1")
        assert await list_rows(both, "n1") == {
            ("ann", "webhook"): ("sent", ""),
            ("bob", "webhook"): ("failed", "content"),
            ("bob", "inbox"): ("sent", ""),
            ("cid", "inbox"): ("sent", ""),
        }
        steps = [{"channel": "inbox", "until": "seen", "wait_s": 1}, {"channel": "webhook"}]
        await both.api("PUT", "/v1/notifications/n2", {**ANN, "policy": {"escalate": steps}})
        await wait_for_row(both, "n2", ("ann", "webhook"), "sent")
        steps[0]["wait_s"] = 600
        await both.api("PUT", "/v1/notifications/n3", {**ANN, "policy": {"escalate": steps}})
        await wait_for_row(both, "n3", ("ann", "inbox"), "sent")
        token = await both.make_token("ann")
        head = (await both.api("GET", "/v1/inbox/counts", key=token))[1]["head"]
        await both.api("POST", "/v1/inbox/marks", {"mark": "seen", "up_to": head}, key=token)
        answer = await wait_for(both, "n3")
        assert answer["counts"] == {"inbox": {"delivered": 1}}, "what was seen does not go further"


async def test_a_recall_withdraws_items_and_stops_what_waits(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/notifications/n1", ANN)
        await wait_for(both, "n1")
        status, answer = await both.api("POST", "/v1/notifications/n1/recall")
        assert (status, answer["state"], answer["recalled"]) == (200, "cancelled", 1)
        _, answer = await both.api("GET", "/v1/inbox", key=await both.make_token("ann"))
        assert [item["flags"] for item in answer["items"]] == [["recalled"]] and answer["unread"] == answer[
            "unseen"
        ] == 0
        assert (await both.api("POST", "/v1/notifications/nobody/recall"))[1]["code"] == 4305


async def test_a_cancel_says_what_happened(tmp_path: Path, runtime: Path) -> None:
    """One that is settled stays so; one that had not begun shows how many receivers it has not reached."""
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        for name in ("ann", "bob"):
            await both.api("PUT", f"/v1/receivers/{name}", {})
        to = {"to": {"receivers": ["ann", "bob"]}}
        await both.api("PUT", "/v1/notifications/done", {**ANN, **to})
        before = await wait_for(both, "done")
        status, answer = await both.api("POST", "/v1/notifications/done/cancel")
        assert (status, answer["code"]) == (409, 4341)
        assert (await both.api("GET", "/v1/notifications/done"))[1] == before and "rest" not in before
        await both.api("PUT", "/v1/notifications/later", {**ANN, **to, "send_at": in_one_day()})
        expected = {"id": "later", "state": "cancelled", "cancelled": 0}
        for _ in range(2):  # a repeat has the same answer
            assert await both.api("POST", "/v1/notifications/later/cancel") == (200, expected)
        _, answer = await both.api("GET", "/v1/notifications/later")
        assert (answer["state"], answer["receivers"], answer["rest"], answer["counts"]) == ("cancelled", 2, 2, {})
        assert (await both.api("POST", "/v1/notifications/done/recall"))[1]["recalled"] == 2
        _, answer = await both.api("GET", "/v1/notifications/done")
        assert (answer["state"], answer["rest"]) == ("cancelled", 0), "withdrawn: nothing of it is sent again"


async def test_a_batch_answers_each_in_order_and_a_cut_line_harms_no_other(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        items = [{**ANN, "id": "a"}, {**ANN, "to": {"receiver": "nobody"}}, {**ANN, "x": 1}, {**ANN, "id": "a"}]
        status, answer = await both.api("POST", "/v1/notifications/batch", items)
        results = answer["results"]
        assert status == 202 and [one.get("code") for one in results] == [None, 4306, 4300, None]
        assert results[0]["id"] == "a" and results[3]["repeat"]
        lines = b'{"to": {"receiver": "ann"}, "content": {"title": "x"}, "id": "b"}\n{"to": {"rece'
        _, answer = await both.api("POST", "/v1/notifications/batch", lines)
        assert [one.get("code") for one in answer["results"]] == [None, 4300]
        assert (await wait_for(both, "b"))["counts"] == {"inbox": {"sent": 1}}
        status, answer = await both.api("POST", "/v1/notifications/batch", [ANN] * 1_001)
        assert (status, answer["code"]) == (422, 4323)


async def test_a_test_key_ends_only_what_test_keys_sent(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["send"], "test": True})
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/notifications/live", ANN)
        trial = {**ANN, "send_at": in_one_day()}
        assert (await both.api("PUT", "/v1/notifications/trial", trial, key=made["key"]))[0] == 202
        await wait_for(both, "live")
        for what in ("cancel", "recall", "resume"):
            status, answer = await both.api("POST", f"/v1/notifications/live/{what}", key=made["key"])
            assert (status, answer["code"]) == (403, 4331), what
            assert (await both.api("POST", f"/v1/notifications/trial/{what}", key=made["key"]))[0] == 200
        assert (await both.api("GET", "/v1/notifications/live"))[1]["state"] != "cancelled"
        assert (await both.api("POST", "/v1/notifications/nobody/recall", key=made["key"]))[1]["code"] == 4305
