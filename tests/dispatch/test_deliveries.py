"""Single deliveries over HTTP: filters, ids, sending one again; and parameters, channels and receivers that requests change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from godwit.dispatch.api.receivers import merge
from godwit.dispatch.stores.sqlite.manage import deliveries
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_webhook import LOOPBACK, endpoint, put_webhook, wait_for_state

DEADLINE_S = 60
HI = {"to": {"receiver": "ann"}, "content": {"title": "hi"}}


async def test_deliveries_are_chosen_by_channel_and_state(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LOOKED_AT_MAX", 3)
    async with running(tmp_path, LOOPBACK) as both, asyncio.timeout(DEADLINE_S):
        names = [f"r{number}" for number in range(9)]
        for name in names:
            await both.api("PUT", f"/v1/receivers/{name}")
        for name in names[::4]:
            hook = {"channel": "webhook", "value": "https://ok.sandbox.invalid/"}
            await both.api("PUT", f"/v1/receivers/{name}/addresses/hook", hook)
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receivers": names}, "content": {"title": "x"}})
        while (await both.api("GET", "/v1/notifications/n1"))[1]["state"] != "settled":
            pass
        for query, expected in (
            ("", sorted([*names, *names[::4]])),
            ("&channel=webhook", names[::4]),
            ("&channel=webhook&state=failed", []),
            ("&state=sent", sorted([*names, *names[::4]])),
        ):
            found: list[str] = []
            after: int | None = 0
            while after is not None:
                _, answer = await both.api("GET", f"/v1/notifications/n1/deliveries?after={after}{query}")
                found += [row["receiver"] for row in answer["deliveries"]]
                after = answer["after"]
            assert found == expected, query
        for query in ("channel=sms", "state=lost", "chanel=webhook"):
            assert (await both.api("GET", f"/v1/notifications/n1/deliveries?{query}"))[1]["code"] == 4300


async def test_one_delivery_is_shown_by_its_id_and_sent_again(tmp_path: Path, runtime: Path) -> None:
    answers, ids = [400, 500, 200], []

    async def take(request: web.Request) -> web.Response:
        ids.append(request.headers["webhook-id"])
        return web.Response(status=answers[len(ids) - 1], headers={"Retry-After": "3000"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "n1", "failed")
        assert row["id"] == ids[0]
        status, answer = await both.api("GET", f"/v1/deliveries/{ids[0]}")
        assert [one.pop("time_ms") > 0 for one in answer["attempts"]] == [True]
        first = {"attempt": 1, "state": "failed", "reason": "content", "ref": "HTTP 400"}
        assert (status, answer) == (200, {**row, "notification": "n1", "attempts": [first]})
        for state, attempt in (("deferred", 2), ("sent", 3)):
            assert (await both.api("POST", f"/v1/deliveries/{ids[0]}/retry"))[0] == 202
            while (await wait_for_state(both, "n1", state))["attempt"] != attempt:
                pass
        _, answer = await both.api("GET", f"/v1/deliveries/{ids[0]}")
        tried = [(one["attempt"], one["state"], one["reason"], one["ref"]) for one in answer["attempts"]]
        assert tried[1:] == [(2, "deferred", "temporary", "HTTP 500"), (3, "sent", "", "HTTP 200")]
        status, answer = await both.api("POST", f"/v1/deliveries/{ids[0]}/retry")
        assert (status, answer["code"]) == (409, 4337) and ids == [ids[0]] * 3
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["read"], "tenant": "default"})
        assert (await both.api("POST", f"/v1/deliveries/{ids[0]}/retry", key=made["key"]))[0] == 403
        await both.api("PUT", "/v1/tenants/bank")
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["admin"], "tenant": "bank"})
        for name, key in ((ids[0], made["key"]), ("dlv_1_2_999_1", None), ("nonsense", None), (f"{ids[0]}9", None)):
            assert (await both.api("GET", f"/v1/deliveries/{name}", key=key))[1]["code"] == 4336


async def test_an_address_is_shown_as_it_was_given(tmp_path: Path, runtime: Path) -> None:
    """It is no receiver: lists of receivers leave it out, and deliveries, dead letters and events show its value."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=400)

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        for name in ("addr", "ann", "zoe"):
            await both.api("PUT", f"/v1/receivers/{name}")
        note = {**HI, "to": {"address": {"channel": "webhook", "value": url}}}
        assert (await both.api("PUT", "/v1/notifications/n1", note))[0] == 202
        row = await wait_for_state(both, "n1", "failed")
        assert (row["receiver"], row["address"]) == (None, url)
        _, answer = await both.api("GET", f"/v1/deliveries/{row['id']}")
        assert (answer["receiver"], answer["address"]) == (None, url)
        (letter,) = (await both.api("GET", "/v1/dead-letters"))[1]["dead_letters"]
        assert (letter["receiver"], letter["address"]) == (None, url)
        _, answer = await both.api("GET", "/v1/events?types=delivery.failed&detail=deliveries")
        (member,) = answer["events"][0]["deliveries"]
        assert (member["receiver"], member["address"]) == (None, url)
        for query, names in (
            ("", ["addr", "ann", "zoe"]),
            ("?prefix=a", ["addr", "ann"]),
            ("?prefix=address:", []),
            ("?after=ann", ["zoe"]),
            ("?limit=2", ["addr", "ann"]),
        ):
            _, answer = await both.api("GET", f"/v1/receivers{query}")
            assert [one["id"] for one in answer["receivers"]] == names, query


async def test_names_of_bare_addresses_are_reserved(dispatch: Running) -> None:
    status, answer = await dispatch.api("PUT", "/v1/receivers/address:x")
    assert (status, answer["code"]) == (422, 4300)
    status, answer = await dispatch.api("POST", "/v1/notifications", {**HI, "to": {"receiver": {"id": "address:x"}}})
    assert (status, answer["code"], answer["pointer"]) == (422, 4300, "/to/receiver/id")
    _, answer = await dispatch.api("POST", "/v1/receivers/import", b'{"id": "address:x"}\n{"id": "bob"}\n')
    assert [one["pointer"] for one in answer["rejected"]] == ["/id"]


async def test_a_replay_is_tried_dry(tmp_path: Path, runtime: Path) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=400)

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "n1", "failed")
        status, answer = await both.api("POST", "/v1/dead-letters/replay", {"dry_run": True})
        assert (status, answer) == (200, {"would_replay": 1})
        assert (await both.api("POST", "/v1/dead-letters/replay", {"dry_run": True, "reason": "address"}))[1] == {
            "would_replay": 0
        }
        assert (await wait_for_state(both, "n1", "failed"))["attempt"] == 1


async def test_a_parameter_that_does_not_exist_selects_nothing(dispatch: Running) -> None:
    for path in ("/v1/notifications?stat=settled", "/v1/receivers?prefx=a", "/v1/dead-letters?resaon=content"):
        status, answer = await dispatch.api("GET", path)
        assert (status, answer["code"]) == (422, 4300), path
    assert (await dispatch.api("PUT", "/v1/receivers/ann?dry=1"))[1]["code"] == 4300
    assert (await dispatch.api("GET", "/v1/receivers/ann"))[0] == 404
    assert (await dispatch.api("GET", "/u/x?utm_source=mail"))[1]["code"] == 4332, "links get parameters on their way"


async def test_notifications_are_chosen_by_group(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/receivers/ann")
        await dispatch.api("PUT", "/v1/groups/news")
        assert (await dispatch.api("GET", "/v1/groups/news/subscriptions/ann"))[1]["code"] == 4310
        await dispatch.api("PUT", "/v1/groups/news/subscriptions/ann")
        assert (await dispatch.api("GET", "/v1/groups/news/subscriptions/ann"))[0] == 200
        await dispatch.api("PUT", "/v1/notifications/n1", HI)
        await dispatch.api("PUT", "/v1/notifications/n2", {**HI, "to": {"group": "news"}})
        _, answer = await dispatch.api("GET", "/v1/notifications?group=news")
        assert [one["id"] for one in answer["notifications"]] == ["n2"]
        assert (await dispatch.api("GET", "/v1/notifications?group=none"))[1]["code"] == 4317


@pytest.mark.parametrize(
    "more",
    [
        {"to": {"address": {"channel": "email", "value": "a@b.example"}}},
        {"policy": {"first": ["email"]}},
        {"policy": {"escalate": [{"channel": "email"}]}},
    ],
)
async def test_what_only_a_channel_could_send_that_is_not_set_up_is_refused(
    dispatch: Running, more: dict[str, Any]
) -> None:
    await dispatch.api("PUT", "/v1/receivers/ann")
    for method, path in (("PUT", "/v1/notifications/n1"), ("POST", "/v1/notifications/check")):
        status, answer = await dispatch.api(method, path, {**HI, **more})
        assert (status, answer["code"]) == (422, 4338) and answer["pointer"] in ("/to/address/channel", "/policy")
    both = {"policy": {"first": ["email", "inbox"]}}
    assert (await dispatch.api("PUT", "/v1/notifications/n2", {**HI, **both}))[0] == 202, "the next step can"


async def test_a_patch_changes_what_it_names(dispatch: Running) -> None:
    whole = {"locale": "de", "zone": "Europe/Vienna", "quiet": {"start": "22:00", "end": "07:00"}}
    await dispatch.api("PUT", "/v1/receivers/ann", {**whole, "attributes": {"a": "1", "b": "2"}})
    patch = {"locale": "fr", "quiet": None, "attributes": {"a": None, "c": "3"}}
    status, answer = await dispatch.api("PATCH", "/v1/receivers/ann", patch)
    expected = {"locale": "fr", "zone": "Europe/Vienna", "attributes": {"b": "2", "c": "3"}}
    assert (status, answer) == (200, {"id": "ann", **expected, "addresses": []})
    assert (await dispatch.api("GET", "/v1/receivers/ann"))[1] == answer
    for wrong in ({"zone": "Nowhere/Town"}, {"quiet": {"start": "22:00"}}, {"name": "x"}, [], {"attributes": {"a": 1}}):
        assert (await dispatch.api("PATCH", "/v1/receivers/ann", wrong))[1]["code"] == 4300, wrong
    assert (await dispatch.api("PATCH", "/v1/receivers/bob", {}))[1]["code"] == 4310
    assert (await dispatch.api("GET", "/v1/receivers/ann"))[1] == answer


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": None}, {}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": "c"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1], {"a": "b", "c": None}, {"a": "b"}),
    ],
)
def test_a_merge_is_that_of_rfc_7396(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


async def test_a_receiver_gets_all_that_is_stored_about_them(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await dispatch.api("PUT", "/v1/receivers/ann", {"locale": "de", "attributes": {"plan": "pro"}})
        await dispatch.api("PUT", "/v1/receivers/ann/preferences", {"categories": {"news": {"email": False}}})
        mail = {"channel": "email", "value": "ann@mail.example"}
        await dispatch.api("PUT", "/v1/receivers/ann/addresses/mail", mail)
        hook = {"channel": "webhook", "value": "https://ok.sandbox.invalid/"}
        _, made = await dispatch.api("PUT", "/v1/receivers/ann/addresses/hook", hook)
        assert (await dispatch.api("GET", "/v1/receivers/ann/addresses/mail"))[1] == {
            **mail,
            "id": "mail",
            "state": "active",
        }
        assert (await dispatch.api("GET", "/v1/receivers/ann/addresses/none"))[1]["code"] == 4334
        await dispatch.api("PUT", "/v1/suppressions/email/Ann@mail.example", {"reason": "complained"})
        await dispatch.api("PUT", "/v1/groups/news")
        await dispatch.api("PUT", "/v1/groups/news/subscriptions/ann")
        await dispatch.api("PUT", "/v1/notifications/n1", HI)
        await wait_for(dispatch, "n1")
        status, answer = await dispatch.api("GET", "/v1/receivers/ann/export")
        assert status == 200 and made["secret"] not in str(answer)
        assert (answer["id"], answer["attributes"], answer["groups"]) == ("ann", {"plan": "pro"}, ["news"])
        assert answer["preferences"] == {"news": {"email": False}}
        assert [one["id"] for one in answer["addresses"]] == ["mail", "hook"]
        assert answer["addresses"][0]["suppressions"][0]["reason"] == "complained"
        assert [(item["id"], item["content"]["title"]) for item in answer["inbox"]] == [("n1", "hi")]
        assert (await dispatch.api("GET", "/v1/receivers/bob/export"))[1]["code"] == 4310


async def test_the_files_of_the_database_are_its_owners_and_the_process_says_that_it_lives(
    dispatch: Running, tmp_path: Path
) -> None:
    assert (await dispatch.api("GET", "/health/live"))[1] == {"live": True}
    files = list((tmp_path / "dispatch").glob("dispatch.sqlite*"))
    assert len(files) == 3 and not any(file.stat().st_mode & 0o077 for file in files)
