"""The admin port over a real socket, with a fake engine: routes, paging, and refused requests."""

import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.admin.console import FILES
from godwit.codes import Code
from godwit.engine import Draft
from godwit.testing.fake_engine import FakeEngine, open_fake_engine

TOKEN = "an-admin-token-of-a-test"


class Admin:
    def __init__(self, running: testing.RunningNode, http: aiohttp.ClientSession) -> None:
        self.running, self._http = running, http

    async def get(self, path: str, **headers: str) -> tuple[int, Any, aiohttp.ClientResponse]:
        async with self._http.get(self.running.admin_url + path, headers=headers) as answer:
            body = await (answer.json(content_type=None) if "json" in answer.content_type else answer.text())
            return answer.status, body, answer

    async def delete(self, path: str, **headers: str) -> int:
        async with self._http.delete(self.running.admin_url + path, headers=headers) as answer:
            return answer.status


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    settings = {"admin": {"hosts": ["ops.example"], "token": TOKEN}}
    async with testing.node(settings, open_engine=open_fake_engine) as running, aiohttp.ClientSession() as http:
        yield Admin(running, http)


async def test_subjects_are_paged_to_the_end_and_filtered(admin: Admin) -> None:
    admin.running.node.engine.publish_many([Draft(f"/s/{number}", b"0") for number in range(5)] + [Draft("/t", b"0")])
    seen, after = [], ""
    while after is not None:
        _, page, _ = await admin.get(f"/v1/subjects?limit=2&after={after}&pattern=/s/**")
        seen += [row["subject"] for row in page["rows"]]
        after = page["next"]
    assert seen == [f"/s/{number}" for number in range(5)]


async def test_connections_are_searched_and_their_numbers_are_texts(admin: Admin) -> None:
    engine = admin.running.node.engine.compiled
    assert isinstance(engine, FakeEngine)
    engine.connection_rows = [{"connection": 2**63 + 1, "client": "<script>"}, {"connection": 2**63 + 2, "client": "b"}]
    _, page, _ = await admin.get("/v1/connections?search=script")
    assert page == {"rows": [{"connection": "8000000000000001", "client": "<script>"}], "next": None}
    _, page, _ = await admin.get("/v1/connections?limit=1")
    assert page["next"] == "8000000000000001"
    _, page, _ = await admin.get("/v1/connections?limit=1&after=8000000000000001")
    assert page["rows"][0]["connection"] == "8000000000000002" and page["next"] is None


@pytest.mark.parametrize(
    "query", ["subjects?limit=0", "subjects?limit=1001", "subjects?limit=x", "subjects?limit=-1", "subjects?limit=%C2%B2",
              "subjects?pattern=a", "subjects?pattern=/a/**/b", "connections?after=x", "connections?after=10000000000000000",
              "connections?limit=" + "9" * 5000],
)  # fmt: skip
async def test_a_wrong_query_is_refused_with_the_bound(admin: Admin, query: str) -> None:
    status, problem, answer = await admin.get(f"/v1/{query}")
    assert status == 400 and answer.content_type == "application/problem+json"
    expected = "must be a (whole number from|connection's number)|^pattern "
    assert re.search(expected, problem["title"])


@pytest.mark.parametrize("path", ["/", "/v1/stats", "/metrics", "/health/live", "/nothing"])
async def test_a_rebound_name_is_answered_nowhere(admin: Admin, path: str) -> None:
    expected = 200 if path.startswith("/health/") else 403
    assert (await admin.get(path, Host="evil.example"))[0] == expected
    assert (await admin.get(path, Host="ops.example"))[0] in (200, 404)


async def test_metrics_are_openmetrics(admin: Admin) -> None:
    status, text, answer = await admin.get("/metrics")
    assert status == 200 and text.endswith("# EOF\n")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert "godwit_authorizer_asked_total 0.0" in text


@pytest.mark.parametrize("path", FILES)
async def test_the_console_runs_no_script_but_its_own_and_is_not_framed(admin: Admin, path: str) -> None:
    status, body, answer = await admin.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert status == 200 and body
    assert "script-src 'self';" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert f"ws://127.0.0.1:{admin.running.client.port} " in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/console/index.html",
        "/%2e%2e/app.py",
        "/style/theme.css/",
        "/etc/passwd",
        "/package.json",
        "/node_modules/uplot/package.json",
    ],
)
async def test_nothing_else_of_the_disk_is_served(admin: Admin, path: str) -> None:
    assert (await admin.get(path))[0] == 404


async def test_subjects_are_sorted_and_searched_by_words(admin: Admin) -> None:
    admin.running.node.engine.publish_many([Draft(f"/s/{number}", b"0") for number in range(5)] + [Draft("/t", b"0")])
    _, page, _ = await admin.get("/v1/subjects?sort=subject&order=desc&offset=1&limit=2")
    assert [row["subject"] for row in page["rows"]] == ["/s/4", "/s/3"] and page["total"] == 6
    _, page, _ = await admin.get("/v1/subjects?search=s+4")
    assert [row["subject"] for row in page["rows"]] == ["/s/4"]
    status, problem, _ = await admin.get("/v1/subjects?sort=evil")
    assert status == 400 and "one of subject, rate" in problem["title"] and "evil" not in problem["title"]


async def test_one_subject_is_shown_or_said_to_be_none(admin: Admin) -> None:
    admin.running.node.engine.publish_many([Draft("/s/1", b"0")])
    assert (await admin.get("/v1/subject?subject=/s/1"))[1]["subject"] == "/s/1"
    assert [(await admin.get(f"/v1/subject?subject={name}"))[0] for name in ("/s/2", "/s/*", "")] == [404, 400, 400]


async def test_every_second_of_the_last_minutes_is_told_once(admin: Admin) -> None:
    reply: dict[str, Any] = {"time_ms": []}
    while not reply["time_ms"]:
        _, reply, _ = await admin.get("/v1/series?shards=true")
    assert len(reply["node"]["cpu_cores"]) == len(reply["time_ms"]) and reply["node"]["memory_bytes"][0] > 1_000_000
    _, later, _ = await admin.get(f"/v1/series?after={reply['time_ms'][-1]}")
    assert all(time_ms > reply["time_ms"][-1] for time_ms in later["time_ms"]) and later["shards"] == []


async def test_the_configuration_is_told_with_its_sources_and_without_its_secrets(admin: Admin) -> None:
    _, reply, _ = await admin.get("/v1/config")
    values = {value["key"]: value for section in reply["sections"] for value in section["values"]}
    assert values["admin.hosts"]["value"] == ["ops.example"]
    assert (values["admin.hosts"]["source"], values["admin.hosts"]["where"]) == ("file", "testing.node")
    assert values["node.shards"]["source"] == "default"
    assert values["admin.token"]["value"] == "(secret)" and TOKEN not in str(reply)


async def test_limits_are_told_with_what_is_used_and_how_often_they_were_hit(admin: Admin) -> None:
    admin.running.node.engine.publish_many([Draft("/s/1", b"0")])
    rows = {row["name"]: row for row in (await admin.get("/v1/limits"))[1]["limits"]}
    assert rows["subjects_max"]["used"] == 1 and rows["subjects_max"]["code_number"] == int(Code.SUBJECTS_TOO_MANY)
    assert rows["connections_max"]["used"] == 0 and rows["close_ms_max"]["hits"] is None


async def test_refusals_are_listed_newest_first(admin: Admin) -> None:
    engine = admin.running.node.engine.compiled
    assert isinstance(engine, FakeEngine)
    engine.tell(("refused", "10.0.0.1:1", 4201, "full", 0, ""), ("refused", "10.0.0.2:2", 4155, "too long", 0, ""))
    await engine.was_read.wait()
    rows = (await admin.get("/v1/refusals"))[1]["rows"]
    assert [(row["address"], row["name"]) for row in rows] == [
        ("10.0.0.2:2", "HeaderTooBig"),
        ("10.0.0.1:1", "ConnectionsTooMany"),
    ]


async def test_an_operator_ends_a_connection_with_the_token_alone(admin: Admin) -> None:
    engine = admin.running.node.engine.compiled
    assert isinstance(engine, FakeEngine)
    engine.connection_rows = [{"connection": 2**63 + 1, "address": "10.0.0.1:1"}]
    path, shown = f"/v1/connections/{2**63 + 1:x}", {"Authorization": f"Bearer {TOKEN}"}
    assert (await admin.get(path))[1]["stands"] == []
    assert [await admin.delete(path), await admin.delete(path, Origin="http://evil.example", **shown)] == [401, 403]
    assert engine.orders == []
    assert await admin.delete(path, **shown) == 204
    assert engine.orders == [("close", 2**63 + 1, int(Code.CLOSED_BY_OPERATOR), "closed by an operator")]
    assert [await admin.delete(f"/v1/connections/{wrong}", **shown) for wrong in (5, "x", "F", "1" * 17)] == [
        404,
        400,
        400,
        400,
    ]
