"""The admin port over a real socket, with a stand-in for the engine: routes, paging, and what strangers are refused."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.admin.page import FILES
from godwit.engine import Draft
from godwit.testing.fake_engine import FakeEngine, open_fake_engine


class Admin:
    def __init__(self, running: testing.RunningNode, http: aiohttp.ClientSession) -> None:
        self.running, self._http = running, http

    async def get(self, path: str, **headers: str) -> tuple[int, Any, aiohttp.ClientResponse]:
        async with self._http.get(self.running.admin_url + path, headers=headers) as answer:
            body = await (answer.json(content_type=None) if "json" in answer.content_type else answer.text())
            return answer.status, body, answer


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    settings = {"admin": {"hosts": ["ops.example"]}}
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
    assert page == {"rows": [{"connection": "9223372036854775809", "client": "<script>"}], "next": None}
    _, page, _ = await admin.get("/v1/connections?limit=1&after=9223372036854775809")
    assert page["next"] == "9223372036854775810"


@pytest.mark.parametrize(
    "query", ["subjects?limit=0", "subjects?limit=1001", "subjects?limit=x", "subjects?limit=-1", "subjects?limit=%C2%B2",
              "subjects?pattern=a", "subjects?pattern=/a/**/b", "connections?after=x", "connections?after=18446744073709551616",
              "connections?limit=" + "9" * 5000],
)  # fmt: skip
async def test_a_wrong_query_is_refused_with_the_bound(admin: Admin, query: str) -> None:
    status, problem, answer = await admin.get(f"/v1/{query}")
    assert status == 400 and answer.content_type == "application/problem+json"
    assert "must be a whole number from" in problem["title"] or problem["title"].startswith("pattern ")


@pytest.mark.parametrize("path", ["/", "/v1/stats", "/metrics", "/health/live", "/nothing"])
async def test_a_rebound_name_is_answered_nowhere(admin: Admin, path: str) -> None:
    assert (await admin.get(path, Host="evil.example"))[0] == 403
    assert (await admin.get(path, Host="ops.example"))[0] in (200, 404)


async def test_metrics_are_openmetrics(admin: Admin) -> None:
    status, text, answer = await admin.get("/metrics")
    assert status == 200 and text.endswith("# EOF\n")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert "godwit_authorizer_asked_total 0.0" in text


@pytest.mark.parametrize("path", FILES)
async def test_the_page_runs_no_script_but_its_own_and_is_not_framed(admin: Admin, path: str) -> None:
    status, body, answer = await admin.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert status == 200 and body
    assert "script-src 'self';" in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert f"ws://127.0.0.1:{admin.running.client.port} " in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/../server.py", "/page/index.html", "/%2e%2e/app.py", "/page.css/", "/etc/passwd"])
async def test_nothing_else_of_the_disk_is_served(admin: Admin, path: str) -> None:
    assert (await admin.get(path))[0] == 404
