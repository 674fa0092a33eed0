"""A test key sends, sees what it sent, and manages receivers of the sandbox; the rest of the API is for live keys."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from godwit.dispatch.api.keys import SCOPES
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_policies import ANN, FAST

DEADLINE_S = 60
NOTE = {"to": {"receiver": "sandbox:bob"}, "content": {"title": "x"}}
FOR_TEST_KEYS = {
    "POST /v1/notifications",
    "POST /v1/notifications/batch",
    "POST /v1/notifications/check",
    "PUT /v1/notifications/{id}",
    "GET /v1/templates",
    "GET /v1/templates/{template}",
    "POST /v1/templates/{template}/preview",
    "GET /v1/categories",
    "GET /v1/categories/{category}",
    "GET /v1/groups/{group}",
}
"""Requests about a live resource that a test key may make: it sends, and reads what content needs."""
WITHOUT_KEYS = ("/v1/inbox", "/v1/keys.json", "/v1/openapi.json", "/health/", "/u/", "/console")


async def make_test_key(both: Running, *scopes: str) -> str:
    status, made = await both.api("POST", "/v1/keys", {"scopes": list(scopes), "test": True})
    assert status == 201, made
    return str(made["key"])


async def test_no_route_lets_a_test_key_see_or_change_what_is_live(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        key = await make_test_key(both, *(scope for scope in SCOPES if scope != "operator"))
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/notifications/live", ANN)
        _, document = await both.api("GET", "/v1/openapi.json")
        names = {"id": "live", "receiver": "ann", "delivery": "1.1.inbox.0"}
        allowed = set()
        for path, methods in document["paths"].items():
            for method in methods:
                if path.startswith(WITHOUT_KEYS):
                    continue
                url = re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "x"), path)
                body = None if method in ("get", "delete") else {}
                status, answer = await both.api(method.upper(), url, body, key=key)
                # 4304: for an operator
                if status != 403 or answer["code"] not in (4331, 4304):
                    allowed.add(f"{method.upper()} {path}")
        assert allowed - {"GET /v1/deliveries/{delivery}"} == FOR_TEST_KEYS


async def test_a_test_key_sees_what_it_sent_and_manages_the_sandbox(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        key = await make_test_key(both, "admin")
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/notifications/live", ANN)
        for method, path in (("PUT", ""), ("GET", ""), ("POST", "/token"), ("GET", "/export"), ("DELETE", "")):
            body = {} if method == "PUT" else None
            assert (await both.api(method, f"/v1/receivers/sandbox:ann{path}", body, key=key))[0] < 300, (method, path)
        await both.api("PUT", "/v1/receivers/sandbox:bob", {}, key=key)
        _, answer = await both.api("GET", "/v1/receivers?prefix=sandbox:", key=key)
        assert [one["id"] for one in answer["receivers"]] == ["sandbox:bob"]
        assert (await both.api("PUT", "/v1/notifications/trial", NOTE, key=key))[0] == 202
        assert (await both.api("GET", "/v1/notifications/trial", key=key))[0] == 200
        for name, expected in (("trial", 200), ("live", 403)):
            assert (await both.api("GET", f"/v1/notifications/{name}", key=key))[0] == expected
            status, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries", key=key)
            assert status == expected
            _, listed = await both.api("GET", f"/v1/notifications/{name}/deliveries")
            for row in listed["deliveries"]:
                assert (await both.api("GET", f"/v1/deliveries/{row['id']}", key=key))[0] == expected


@pytest.mark.parametrize(("name", "code"), [("ann", 4331), ("sandbox:ann", None)])
async def test_a_test_key_changes_no_live_receiver_with_a_notification(
    dispatch: Running, name: str, code: int | None
) -> None:
    key = await make_test_key(dispatch, "send")
    await dispatch.api("PUT", "/v1/receivers/ann", {"locale": "de"})
    note = {"to": {"receiver": {"id": name, "locale": "en"}}, "content": {"title": "x"}}
    _, answer = await dispatch.api("POST", "/v1/notifications", note, key=key)
    assert answer.get("code") == code
    assert (await dispatch.api("GET", "/v1/receivers/ann"))[1]["locale"] == "de"


async def test_a_test_key_never_has_the_scope_operator(dispatch: Running) -> None:
    status, answer = await dispatch.api("POST", "/v1/keys", {"scopes": ["send", "operator"], "test": True})
    assert (status, answer["code"], answer["pointer"]) == (422, 4300, "/scopes")


async def test_what_a_test_key_sent_never_takes_the_place_of_a_live_notification(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        key = await make_test_key(both, "send")
        await both.api("PUT", "/v1/receivers/ann", {})
        for sender in (key, None):
            status, answer = await both.api("POST", "/v1/notifications", ANN, key=sender, **{"Idempotency-Key": "k"})
            assert (status, answer.get("repeat")) == (202, None)
        assert (await both.api("PUT", "/v1/notifications/order", ANN, key=key))[0] == 202
        assert (await both.api("PUT", "/v1/notifications/order", ANN, key=key))[1]["repeat"] is True
        status, answer = await both.api("PUT", "/v1/notifications/order", ANN)
        assert (status, answer["code"]) == (409, 4307)
        items = "\n".join(json.dumps({"id": name, **ANN}) for name in ("order", "other")).encode()
        _, answer = await both.api("POST", "/v1/notifications/batch", items)
        assert [one.get("code", one.get("state")) for one in answer["results"]] == [4307, "accepted"]
