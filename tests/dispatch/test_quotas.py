"""What a tenant may use, what a test key reaches, and dead letters of one notification over several pages."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from godwit.dispatch.api.rates import AcceptRates
from godwit.dispatch.errors import RequestRefused
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import FAST, list_rows
from tests.dispatch.test_tenants import make_key

DEADLINE_S = 60
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
        status, told = await dispatch.api("PUT", "/v1/receivers/bob", {}, key=key)
        assert (status, told["code"], told["accepted"]) == (429, 4330, False)
        assert (await dispatch.api("GET", "/v1/receivers/bob", key=key))[0] == 404
        await dispatch.api("DELETE", "/v1/receivers/ann", key=key)
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI, key=key))[0] == 202, "room again"
        big = {**HI, "content": {"title": "x" * 200}}
        assert (await dispatch.api("POST", "/v1/notifications", big, key=key))[1]["code"] == 4330
        cid = {**big, "to": {"receiver": {"id": "cid"}}}
        assert (await dispatch.api("POST", "/v1/notifications", cid, key=key))[1]["code"] == 4330
        assert (await dispatch.api("GET", "/v1/receivers/cid", key=key))[0] == 404, "what was refused changed nothing"
        await dispatch.api("PUT", "/v1/notifications/n2", HI, key=key)
        for name in ("n1", "n2"):
            while (await dispatch.api("GET", f"/v1/notifications/{name}", key=key))[1]["state"] != "settled":
                pass
        assert (await dispatch.api("PUT", "/v1/notifications/n3", HI, key=key))[1]["code"] == 4330
        _, told = await dispatch.api("GET", "/v1/tenants/shop", key=key)
        assert told["usage"] == {"receivers": 1, "stored_bytes": 28, "deliveries_today": 2}
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI))[0] == 202
        assert (await dispatch.api("PUT", "/v1/tenants/shop", {"quotas": {}}, key=key))[1]["code"] == 4304


async def test_a_million_accepts_of_one_tenant_meet_its_rate(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        key = await put_quotas(dispatch, accepts_per_s=5)
        answers = await asyncio.gather(*(dispatch.api("POST", "/v1/notifications", HI, key=key) for _ in range(60)))
        refused = [told for status, told in answers if status == 429]
        assert refused and {told["code"] for told in refused} == {4330} and all(told["retry"] for told in refused)
        assert (await dispatch.api("POST", "/v1/notifications", HI))[0] == 202, "another tenant is not slower"


async def test_a_test_key_reaches_the_sandbox_only(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["admin"], "test": True})
        key = made["key"]
        assert key.startswith("gwt_") and made["test"]
        for name in ("ann", "sandbox:bob"):
            await both.api("PUT", f"/v1/receivers/{name}", {}, key=key)
        await both.api("PUT", "/v1/receivers/ann/addresses/real", {**BAD, "value": "https://example.com/"}, key=key)
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
        hook = await both.api("PUT", "/v1/webhooks/w", {"url": "https://example.com/"}, key=key)
        assert hook[1]["code"] == 4331
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["send"]}, key=key)
        assert made["test"], "a test key makes test keys"


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
