"""Tenants see nothing of each other, scopes hold, and hostile requests get a code."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from godwit.dispatch.stores.sqlite.manage import leaving
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_forgetting import find_files

DEADLINE_S = 60
HI = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}}


async def make_key(both: Running, tenant: str, *scopes: str) -> str:
    await both.api("PUT", f"/v1/tenants/{tenant}")
    status, answer = await both.api("POST", "/v1/keys", {"tenant": tenant, "scopes": list(scopes)})
    assert status == 201, answer
    return str(answer["key"])


async def test_a_tenant_sees_nothing_of_another(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        shop, bank = await make_key(dispatch, "shop", "admin"), await make_key(dispatch, "bank", "admin")
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI, key=shop))[0] == 202
        assert (await dispatch.api("GET", "/v1/notifications/n1", key=shop))[0] == 200
        for key in (bank, dispatch.key):
            assert (await dispatch.api("GET", "/v1/notifications/n1", key=key))[1]["code"] == 4305
            assert (await dispatch.api("GET", "/v1/notifications/n1/deliveries", key=key))[1]["code"] == 4305
            assert (await dispatch.api("POST", "/v1/notifications/n1/cancel", key=key))[1]["code"] == 4305
            assert (await dispatch.api("GET", "/v1/receivers/ann", key=key))[1]["code"] == 4310
            assert (await dispatch.api("POST", "/v1/receivers/ann/token", key=key))[1]["code"] == 4310
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI, key=bank))[1].get("repeat") is None


async def test_scopes_hold_and_a_deleted_key_is_refused_at_once(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        send, admin = await make_key(dispatch, "shop", "send"), await make_key(dispatch, "shop", "admin")
        assert (await dispatch.api("PUT", "/v1/notifications/n1", HI, key=send))[0] == 202
        assert (await dispatch.api("GET", "/v1/notifications/n1", key=send))[1]["code"] == 4304
        assert (await dispatch.api("GET", "/v1/keys", key=send))[1]["code"] == 4304
        for body in ({"scopes": ["send"], "tenant": "default"}, {"scopes": ["operator"]}):
            assert (await dispatch.api("POST", "/v1/keys", body, key=admin))[1]["code"] == 4304
        for scope in ("operator\n", "admin\nfoo", "ADMIN"):
            assert (await dispatch.api("POST", "/v1/keys", {"scopes": [scope]}, key=admin))[1]["code"] == 4300
        assert (await dispatch.api("PUT", "/v1/tenants/evil", key=admin))[1]["code"] == 4304
        assert (await dispatch.api("POST", "/v1/keys", {"scopes": ["send"], "tenant": "none"}))[1]["code"] == 4318
        _, answer = await dispatch.api("GET", "/v1/keys", key=admin)
        [name] = [key["id"] for key in answer["keys"] if key["scopes"] == ["send"]]
        assert (await dispatch.api("DELETE", f"/v1/keys/{name}", key=admin))[0] == 204
        assert (await dispatch.api("DELETE", f"/v1/keys/{name}", key=admin))[1]["code"] == 4319
        assert (await dispatch.api("PUT", "/v1/notifications/n2", HI, key=send))[1]["code"] == 4303


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/v1/notifications", b"x" * 1_048_577, 4301),
        ("POST", "/v1/notifications", b'{"to": {}, "to": {}}', 4300),
        ("PUT", "/v1/notifications/" + "a" * 129, b"{}", 4300),
        ("PUT", "/v1/notifications/a%00b", b"{}", 4300),
        ("PUT", "/v1/notifications/a%2Fb", b"{}", 4300),
        ("POST", "/v1/notifications", {"to": {"receivers": ["a"] * 10_001}, "content": {"title": "x"}}, 4300),
        ("POST", "/v1/notifications", {"to": {"receiver": "nobody"}, "content": {"title": "x"}}, 4306),
        ("POST", "/v1/notifications", {"to": {"receiver": "nobody"}, "content": {}}, 4300),
        ("POST", "/v1/notifications", {**HI, "expires_s": 2**63}, 4300),
        ("GET", "/v1/notifications/n/deliveries?after=-1", None, 4300),
        ("GET", "/v1/nothing", None, 4308),
        ("PATCH", "/v1/notifications/n", None, 4309),
        ("GET", "/v1/inbox", None, 4312),
    ],
)
async def test_a_hostile_request_gets_a_code(
    dispatch: Running, method: str, path: str, body: object, code: int
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        _, answer = await dispatch.api(method, path, body)
        assert (answer["code"], answer["accepted"]) == (code, False)
        assert (await dispatch.api("GET", "/health/ready"))[0] == 200


async def test_ten_wrong_keys_bar_the_address(dispatch: Running) -> None:
    codes = [(await dispatch.api("GET", "/v1/keys", key="gwk_wrong"))[1]["code"] for _ in range(11)]
    assert codes == [4303] * 10 + [4314]
    status, body = await dispatch.api("GET", "/v1/keys")
    assert (status, body["code"], body["retry"]) == (429, 4314, True)
    async with dispatch.http.get(f"{dispatch.url}/v1/keys", headers={"Authorization": "Bearer x"}) as answer:
        assert answer.headers["Retry-After"] == "60", "wrong keys are counted by the minute"


async def test_another_receivers_token_opens_no_other_inbox(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for name in ("ann", "bob"):
            await dispatch.api("PUT", f"/v1/receivers/{name}", {})
        await dispatch.api("PUT", "/v1/notifications/n1", HI)
        token = await dispatch.make_token("bob")
        assert (await dispatch.api("GET", "/v1/inbox", key=token))[1]["items"] == []
        _, answer = await dispatch.api("POST", "/v1/inbox/marks", {"mark": "read", "up_to": "1.999"}, key=token)
        assert answer["items"] == []


async def test_wrong_keys_behind_a_trusted_proxy_bar_only_the_client_that_shows_them(
    tmp_path: Path, runtime: Path
) -> None:
    for proxies, expected in ((["127.0.0.0/8"], 404), ([], 429)):
        async with running(tmp_path / str(expected), {"dispatch": {"trusted_proxies": proxies}}) as both:
            headers = {"X-Forwarded-For": "6.6.6.6, 9.9.9.9"}
            answers = [await both.api("GET", "/v1/receivers/x", key="gwk_no", **headers) for _ in range(11)]
            assert [status for status, _ in answers] == [401] * 10 + [429]
            assert (await both.api("GET", "/v1/receivers/x", **{"X-Forwarded-For": "9.9.9.8"}))[0] == expected


async def test_a_deleted_tenant_leaves_nothing_and_disturbs_nobody(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(tmp_path) as both:
        for tenant in ("shop", "bank"):
            key = await make_key(both, tenant, "admin")
            await both.api("PUT", f"/v1/tenants/{tenant}", {"presence": True})
            for name in ("ann", "bob"):
                await both.api("PUT", f"/v1/receivers/{name}", {}, key=key)
                hook = {"channel": "webhook", "value": f"https://ok.sandbox.invalid/{tenant}-path"}
                await both.api("PUT", f"/v1/receivers/{name}/addresses/w", hook, key=key)
            await both.api("PUT", "/v1/groups/news", key=key)
            await both.api("PUT", "/v1/groups/news/subscriptions/ann", key=key)
            await both.api("PUT", "/v1/categories/c", {}, key=key)
            await both.api("PUT", f"/v1/suppressions/email/{tenant}@mail.example", {}, key=key)
            await both.api("PUT", "/v1/webhooks/w", {"url": "https://example.com/"}, key=key)
            await both.api("PUT", "/v1/templates/t", {"locales": {"default": {"title": "x"}}}, key=key)
            for number in range(3):
                body = {"to": {"group": "news"}, "content": {"title": f"{tenant}-title"}}
                await both.api("PUT", f"/v1/notifications/n{number}", body, key=key)
                while (await both.api("GET", f"/v1/notifications/n{number}", key=key))[1]["state"] != "settled":
                    pass
        other = key
        key = await make_key(both, "shop", "admin")
        assert (await both.api("DELETE", "/v1/tenants/shop", key=key))[0] == 403
        assert (await both.api("DELETE", "/v1/tenants/default"))[1]["code"] == 4300
        assert find_files(tmp_path, b"shop-path") and find_files(tmp_path, b"shop-title")
        assert (await both.api("DELETE", "/v1/tenants/shop"))[0] == 204
        assert (await both.api("DELETE", "/v1/tenants/shop"))[1]["code"] == 4318
        assert (await both.api("GET", "/v1/receivers/ann", key=key))[0] == 401
        assert not find_files(tmp_path, b"shop-path") and not find_files(tmp_path, b"shop-title")
        assert (await both.api("GET", "/v1/notifications/n0", key=other))[1]["state"] == "settled"
        assert (await both.api("GET", "/v1/groups/news", key=other))[1]["receivers"] == 1
    with closing(sqlite3.connect(tmp_path / "dispatch" / "dispatch.sqlite")) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in names:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            if "tenant" in columns:
                assert not database.execute(f"SELECT 1 FROM {table} WHERE tenant = 'shop'").fetchall(), table
        count = {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in names}
        kept = ("receiver", "address", "head", "notification", "subscription", "webhook", "item")
        assert [count[table] for table in kept] == [2, 2, 2, 3, 1, 1, 3]


@pytest.mark.parametrize("ends_by", ["restart", "retention", "creation"])
async def test_a_deletion_that_was_interrupted_is_finished(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch, ends_by: str
) -> None:
    delete_some, deleted = leaving.delete_some, list[str]()

    def fail_later(connection: sqlite3.Connection, tenant: str) -> bool:
        deleted.append(tenant)
        if len(deleted) > 1:
            raise sqlite3.OperationalError("disk I/O error")
        return delete_some(connection, tenant)

    relay = {"relay": "127.0.0.1:2525", "sender": "news@shop.example", "security": "none", "tenants": ["shop"]}
    sweep = 10_000 if ends_by == "creation" else 100
    settings = {"dispatch_limits": {"sweep_ms": sweep}}
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, settings) as both:
        key = await make_key(both, "shop", "admin")
        await both.api("PUT", "/v1/providers/own", relay)
        await both.api("PUT", "/v1/receivers/ann", {"attributes": {"x": "shop-path"}}, key=key)
        await both.api("PUT", "/v1/notifications/n1", {**HI, "to": {"receiver": "ann"}}, key=key)
        monkeypatch.setattr(leaving, "delete_some", fail_later)
        assert (await both.api("DELETE", "/v1/tenants/shop"))[0] == 503
        for method, path, body in (("DELETE", "shop", None), ("GET", "shop", None)):
            assert (await both.api(method, f"/v1/tenants/{path}", body))[1]["code"] == 4318
        assert (await both.api("POST", "/v1/keys", {"tenant": "shop", "scopes": ["send"]}))[1]["code"] == 4318
        assert (await both.api("GET", "/v1/providers"))[1]["providers"] == []
        if ends_by != "restart":
            monkeypatch.undo()
            if ends_by == "creation":
                assert (await both.api("PUT", "/v1/tenants/shop", {}))[0] == 201
            await wait_until_gone(both, tmp_path)
    monkeypatch.undo()
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, settings) as both:
        await wait_until_gone(both, tmp_path)
        found, answer = await both.api("GET", "/v1/tenants/shop")
        assert found == (200 if ends_by == "creation" else 404)
        assert ends_by != "creation" or answer["usage"]["receivers"] == 0


async def wait_until_gone(both: Running, folder: Path) -> None:
    """Until the deleted tenant's content is in no file."""
    while find_files(folder, b"shop-path"):
        await both.api("GET", "/v1/tenants/shop")


async def test_a_tenant_of_a_deleted_ones_name_has_none_of_its_providers(tmp_path: Path, runtime: Path) -> None:
    relay = {"relay": "127.0.0.1:2525", "sender": "news@shop.example", "security": "none"}
    forged = {**HI, "to": {"receiver": {"id": "ann"}}, "override": {"email": {"from": "news@shop.example"}}}
    async with asyncio.timeout(DEADLINE_S), running(tmp_path) as both:
        first = await make_key(both, "shop", "admin")
        await both.api("PUT", "/v1/providers/own", {**relay, "tenants": ["shop"]})
        await both.api("PUT", "/v1/providers/shared", {**relay, "tenants": ["shop", "bank"], "weight": 7})
        assert (await both.api("PUT", "/v1/notifications/n1", forged, key=first))[0] == 202
        assert (await both.api("DELETE", "/v1/tenants/shop"))[0] == 204
        again = await make_key(both, "shop", "admin")
        assert (await both.api("PUT", "/v1/notifications/n1", forged, key=again))[1]["code"] == 4340
        _, answer = await both.api("GET", "/v1/providers")
        assert [(one["id"], one["tenants"], one["weight"]) for one in answer["providers"]] == [("shared", ["bank"], 7)]
    async with asyncio.timeout(DEADLINE_S), running(tmp_path) as both:
        assert (await both.api("PUT", "/v1/notifications/n1", forged, key=again))[1]["code"] == 4340
