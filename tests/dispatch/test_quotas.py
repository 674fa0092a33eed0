"""Quotas and retention of a tenant, the addresses of a test key, and dead letters over several pages."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from godwit.dispatch.api import lines
from godwit.dispatch.api.rates import AcceptRates
from godwit.dispatch.errors import RequestRefused
from godwit.dispatch.model import Options, Outcome, Quotas, State, Step
from godwit.dispatch.stores.sqlite import accept, contents, fanout, jobs, receivers, retention, steps, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.many import accepts
from godwit.dispatch.stores.sqlite.schema import TABLES, add_functions
from godwit.dispatch.vault import Vault
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import FAST, list_rows
from tests.dispatch.test_tenants import make_key

DEADLINE_S = 60
NOW_MS = 1_767_225_600_000
BAD = {"channel": "webhook", "value": "https://content.sandbox.invalid/"}
HI = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}}


async def put_quotas(both: Running, **quotas: int) -> str:
    key = await make_key(both, "shop", "admin")
    assert (await both.api("PUT", "/v1/tenants/shop", {"quotas": quotas}))[0] == 200
    return key


async def test_a_bucket_holds_a_second_and_fills_with_time() -> None:
    clock = [0]

    async def read_rate(tenant: str) -> int:
        return 10 if tenant == "shop" else 0

    rates = AcceptRates(read_rate, lambda: clock[0])

    async def count(tenant: str) -> int:
        for taken in range(100):
            try:
                await rates.take(tenant)
            except RequestRefused:
                return taken
        return 100

    assert await count("shop") == 10 and await count("bank") == 100
    clock[0] = 500
    assert await count("shop") == 5
    clock[0] = 60_000
    assert await count("shop") == 10, "a pause is no burst"


async def test_a_write_beyond_a_quota_is_refused_and_harms_no_other_tenant(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        key = await put_quotas(dispatch, receivers=1, stored_bytes=100, deliveries_per_day=2)
        assert (await dispatch.api("PUT", "/v1/receivers/ann", {}, key=key))[0] == 201
        status, answer = await dispatch.api("PUT", "/v1/receivers/bob", {}, key=key)
        assert (status, answer["code"], answer["accepted"]) == (429, 4330, False)
        assert (await dispatch.api("GET", "/v1/receivers/bob", key=key))[0] == 404
        await dispatch.api("DELETE", "/v1/receivers/ann", key=key)
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI, key=key))[0] == 202, "room again"
        big = {**HI, "content": {"title": "x" * 200}}
        assert (await dispatch.api("POST", "/v1/notifications", big, key=key))[1]["code"] == 4330
        cid = {**big, "to": {"receiver": {"id": "cid"}}}
        assert (await dispatch.api("POST", "/v1/notifications", cid, key=key))[1]["code"] == 4330
        assert (await dispatch.api("GET", "/v1/receivers/cid", key=key))[0] == 404, "what was refused changed nothing"
        await dispatch.api("PUT", "/v1/notifications/n2", HI, key=key)
        for name in ("n1", "n2"):  # also on channels of which nobody has an address, although the day is used up
            while (answer := (await dispatch.api("GET", f"/v1/notifications/{name}", key=key))[1])[
                "state"
            ] != "settled":
                pass
            assert answer["counts"] == {"inbox": {"sent": 1}}
        assert (await dispatch.api("PUT", "/v1/notifications/n3", HI, key=key))[1]["code"] == 4330
        _, answer = await dispatch.api("GET", "/v1/tenants/shop", key=key)
        assert answer["usage"] == {"receivers": 1, "stored_bytes": 44, "deliveries_today": 2}
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI))[0] == 202
        assert (await dispatch.api("PUT", "/v1/tenants/shop", {"quotas": {}}, key=key))[1]["code"] == 4304


async def test_a_million_accepts_of_one_tenant_meet_its_rate(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        key = await put_quotas(dispatch, accepts_per_s=5)
        answers = await asyncio.gather(*(dispatch.api("POST", "/v1/notifications", HI, key=key) for _ in range(60)))
        refused = [answer for status, answer in answers if status == 429]
        assert (
            refused and {answer["code"] for answer in refused} == {4330} and all(answer["retry"] for answer in refused)
        )
        assert (await dispatch.api("POST", "/v1/notifications", HI))[0] == 202, "another tenant is not slower"


async def test_a_test_key_reaches_the_sandbox_only(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["admin"], "test": True})
        key = made["key"]
        assert key.startswith("gwt_") and made["test"]
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/sandbox:bob", {}, key=key)
        await both.api("PUT", "/v1/receivers/ann/addresses/real", {**BAD, "value": "https://example.com/"})
        await both.api(
            "PUT", "/v1/receivers/sandbox:bob/addresses/a", {**BAD, "value": "https://ok.sandbox.invalid/"}, key=key
        )
        note = {"to": {"receivers": ["ann", "sandbox:bob"]}, "content": {"title": "x"}}
        await both.api("PUT", "/v1/notifications/n1", note, key=key)
        await wait_for(both, "n1")
        assert await list_rows(both, "n1") == {
            ("ann", "inbox"): ("suppressed", "test_key"),
            ("ann", "webhook"): ("suppressed", "test_key"),
            ("sandbox:bob", "inbox"): ("sent", ""),
            ("sandbox:bob", "webhook"): ("sent", ""),
        }


async def test_dead_letters_of_one_notification_are_all_listed(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        names = [f"r{number}" for number in range(1_100)]
        rows: list[Any] = [{"id": name, "addresses": [{"id": "a", **BAD}]} for name in names]
        lines = "\n".join(json.dumps(row) for row in rows).encode()
        assert (await both.api("POST", "/v1/receivers/import", lines))[1]["rejected_count"] == 0
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receivers": names}, "content": {"title": "x"}})
        await wait_for(both, "n1")
        seen, after = [], ""
        while True:
            _, page = await both.api("GET", f"/v1/dead-letters{after}")
            seen += [letter["receiver"] for letter in page["dead_letters"]]
            if page["after"] is None:
                break
            after = f"?after={page['after']}"
        assert sorted(seen) == sorted(names)
        for forged in ("x", "1.2.3", "1.2.a.b", f"{'9' * 30}.1.webhook.1"):
            assert (await both.api("GET", f"/v1/dead-letters?after={forged}"))[1]["code"] == 4300


def open_store(**quotas: int) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    add_functions(database, Vault([bytes(32)]))
    tenants.put_tenant(database, "t", Quotas(**quotas))
    return database


def test_one_new_receiver_too_many_harms_no_other_item_of_a_batch() -> None:
    database = open_store(receivers=1)
    drafts = [Draft("t", name, b"f", b"{}", (name,), ((name, b"{}"),), True, 10**13) for name in ("a", "b")]
    drafts.append(Draft("t", "c", b"f", b"{}", ("a",), (), True, 10**13))
    answer = accepts.accept_all(database, drafts, NOW_MS)
    assert [bool(one.quota) for one in answer] == [False, True, False]
    assert database.execute("SELECT id FROM notification ORDER BY id").fetchall() == [("a",), ("c",)]


def test_stored_bytes_count_all_that_is_stored_and_are_given_back() -> None:
    database = open_store(stored_bytes=1_000)
    receivers.put_receiver(database, "t", "ann", b"{}", 1)
    rendered = (("", "es", b"x" * 300), ("email", "", b"y" * 300))
    draft = Draft(
        "t", "n", b"f", b"z" * 100, ("ann",), (), True, NOW_MS, options=Options(critical=True), rendered=rendered
    )
    assert not accept.accept(database, draft, NOW_MS).quota
    found = tenants.read_tenant(database, "t", NOW_MS)
    assert found is not None and found[1].stored_bytes > 700
    assert accept.accept(database, draft._replace(id="m"), NOW_MS).quota, "the rendered locales count"
    while retention.forget_old(database, NOW_MS + 1, 100):
        pass
    found = tenants.read_tenant(database, "t", NOW_MS)
    assert found is not None and found[1].stored_bytes == 0


def test_deliveries_beyond_the_days_quota_wait_for_the_next_day() -> None:
    database = open_store(deliveries_per_day=3)
    names = tuple(f"r{number}" for number in range(5))
    for name in names:
        receivers.put_receiver(database, "t", name, b"{}", 1)
        receivers.put_address(database, "t", name, "w", "webhook", "https://a.example/")
    accept.accept(database, Draft("t", "n", b"f", b"{}", names, (), False, 10**13), NOW_MS)
    accept.route(database, ["webhook"], NOW_MS, 9)
    for now_ms, made in ((NOW_MS, 3), (NOW_MS + tenants.DAY_MS, 5)):
        while (job := jobs.claim_job(database, "webhook", "t", now_ms, 1_000)) is not None:
            jobs.commit_page(database, job, jobs.read_page(database, job, 100, now_ms), now_ms + 1_000, now_ms)
        assert database.execute("SELECT count(*) FROM delivery").fetchone() == (made,)


def test_the_next_step_of_a_policy_waits_for_the_next_day_of_the_quota() -> None:
    database = open_store(deliveries_per_day=1)
    receivers.put_receiver(database, "t", "ann", b"{}", 1)
    receivers.put_address(database, "t", "ann", "w", "webhook", "https://a.example/")
    receivers.put_address(database, "t", "ann", "m", "email", "ann@mail.example")
    options = Options(steps=(Step("webhook"), Step("email")))
    accept.accept(database, Draft("t", "n", b"f", b"{}", ("ann",), (), True, 10**13, options=options), NOW_MS)
    channels = ["webhook", "email"]
    accept.route(database, channels, NOW_MS, 9)
    job = jobs.claim_job(database, "webhook", "t", NOW_MS, 1_000)
    assert job is not None
    page = jobs.read_page(database, job, 100, NOW_MS)
    [key] = jobs.commit_page(database, job, page, NOW_MS + 1_000, NOW_MS) or ()
    [shipment] = fanout.claim_due(database, "webhook", NOW_MS + 2_000, NOW_MS + 9_000, 9, ())
    fanout.advance(database, [], [shipment], [], NOW_MS + 2_000, NOW_MS + 9_000)
    failed = Outcome(key, 1, State.FAILED, reason="content")
    fanout.advance(database, [failed], [], [], NOW_MS + 3_000, NOW_MS + 9_000)
    late = tenants.next_day_ms(NOW_MS)
    for now_ms, made in ((NOW_MS + 4_000, ["webhook"]), (late - 1, ["webhook"]), (late, ["email", "webhook"])):
        for _ in range(3):
            steps.advance_routes(database, channels, now_ms, 9)
        assert [row[0] for row in database.execute("SELECT channel FROM delivery ORDER BY channel")] == made
    found = tenants.read_tenant(database, "t", late)
    assert found is not None and found[1].deliveries_today == 1, "the second delivery is of the second day"
    assert database.execute("SELECT state FROM delivery WHERE channel = 'webhook'").fetchone() == (int(State.FAILED),)


def test_old_versions_of_a_template_go() -> None:
    database = open_store()
    for number in range(contents.VERSIONS_MAX + 5):
        contents.put_template(database, "t", "x", b"%d" % number, b"[]", 1)
    assert contents.list_templates(database, "t") == [("x", contents.VERSIONS_MAX + 5)]
    assert database.execute("SELECT count(*), min(version) FROM template").fetchone() == (contents.VERSIONS_MAX, 6)


def test_the_receiver_of_an_address_goes_with_its_last_notification() -> None:
    database = open_store()
    name = receivers.ADDRESS_PREFIX + "0"
    for number, expires_ms in enumerate((NOW_MS, NOW_MS + 5_000)):
        options = Options(channel="email")
        draft = Draft("t", f"n{number}", b"f", b"{}", (name,), ((name, b"{}"),), True, expires_ms, options=options)
        accept.accept(database, draft._replace(address=("email", "a@a.example")), NOW_MS)
    for before_ms, left in ((NOW_MS + 1_000, 1), (NOW_MS + 6_000, 0)):
        while retention.forget_old(database, before_ms, 100):
            pass
        assert database.execute("SELECT count(*) FROM receiver").fetchone() == (left,)
        assert database.execute("SELECT count(*) FROM address").fetchone() == (left,)


def test_a_job_goes_on_after_the_days_quota_as_far_as_nobody_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "LOOKED_AT_MAX", 0)  # as with more receivers than routing looks at
    database = open_store(deliveries_per_day=1)
    for name in ("a", "b", "c", "d"):
        receivers.put_receiver(database, "t", name, b"{}", 1)
    receivers.put_address(database, "t", "c", "w", "webhook", "https://a.example/")
    for name, names in (("used", ("a",)), ("some", ("a", "b", "c", "d")), ("none", ("a", "b", "d"))):
        draft = Draft("t", name, b"f", b"{}", names, (), False, NOW_MS + 10**9)
        if name != "used":  # accepted before the day was used up
            accept.accept(database, draft, NOW_MS)
            accept.route(database, ("webhook",), NOW_MS, 9)
        else:
            first = draft
    database.execute("UPDATE tenant SET deliveries = 1, day = ?", (NOW_MS // tenants.DAY_MS,))
    assert accept.accept(database, first, NOW_MS).quota
    while job := jobs.claim_job(database, "webhook", None, NOW_MS, 1_000):
        page = jobs.read_page(database, job, 500, NOW_MS)
        assert jobs.commit_page(database, job, page, NOW_MS, NOW_MS) == ()
    shown = "SELECT id, is_done, cursor, lease_end_ms FROM job JOIN notification USING (nid) ORDER BY id"
    assert database.execute(shown).fetchall() == [("none", 1, 4, 0), ("some", 2, 2, tenants.next_day_ms(NOW_MS))]
    tomorrow = NOW_MS + tenants.DAY_MS
    job = jobs.claim_job(database, "webhook", "t", tomorrow, 1_000)
    assert job is not None
    assert jobs.commit_page(database, job, jobs.read_page(database, job, 500, tomorrow), tomorrow, tomorrow)


def test_jobs_that_wait_for_the_next_day_cost_the_claims_of_others_nothing() -> None:
    def count_steps(waiting: int) -> tuple[int, int]:
        database = open_store(deliveries_per_day=1)
        rows = [(nid, "webhook", "t", 0, 0, tenants.next_day_ms(NOW_MS), 2, 2, 0) for nid in range(1, waiting + 1)]
        database.executemany("INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        steps = []
        for tenant in ("t", None):
            ticks: list[int] = []
            database.set_progress_handler(lambda ticks=ticks: ticks.append(1), 1)
            assert jobs.claim_job(database, "webhook", tenant, NOW_MS, 1_000) is None
            database.set_progress_handler(None, 1)
            steps.append(len(ticks))
        return steps[0], steps[1]

    assert count_steps(3) == count_steps(3_000)


async def test_an_import_beyond_the_quota_says_where_to_continue(
    dispatch: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "PART_LINES", 2)
    async with asyncio.timeout(DEADLINE_S):
        key = await put_quotas(dispatch, receivers=3)
        body = "\n".join(json.dumps({"id": name}) for name in ("ann", "bob", "cid", "dan", "eve")).encode()
        status, answer = await dispatch.api("POST", "/v1/receivers/import", body, key=key)
        assert (status, answer["code"]) == (429, 4330) and answer["detail"].endswith("continue with after_line=2")
        assert (await dispatch.api("GET", "/v1/receivers/bob", key=key))[0] == 200
        await dispatch.api("PUT", "/v1/tenants/shop", {"quotas": {}})
        status, answer = await dispatch.api("POST", "/v1/receivers/import?after_line=2", body, key=key)
        assert (status, answer["lines"], answer["rejected_count"]) == (200, 5, 0)
        assert (await dispatch.api("GET", "/v1/tenants/shop"))[1]["usage"]["receivers"] == 5
