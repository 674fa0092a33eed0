"""/v1/stats answers with the requested windows, refuses unknown ones, and matches its schema."""

import aiohttp
import pytest

from godwit import testing
from godwit.monitoring.windows import WINDOWS
from godwit.testing.fake_engine import open_fake_engine


async def get(path: str) -> tuple[int, dict[str, object]]:
    async with testing.node(open_engine=open_fake_engine) as running, aiohttp.ClientSession() as http:
        running.node.monitor.turn()
        async with http.get(running.admin_url + path) as answer:
            return answer.status, await answer.json(content_type=None)


async def test_windows_come_only_when_they_are_asked_for() -> None:
    _, stats = await get("/v1/stats")
    assert stats["windows"] == {} and stats["now"]["node"]["connections"] == 0  # type: ignore[index]  # JSON
    _, stats = await get("/v1/stats?windows=1h,15mo")
    assert list(stats["windows"]) == ["1h", "15mo"]  # type: ignore[call-overload]  # JSON
    _, stats = await get("/v1/stats?windows=all")
    assert list(stats["windows"]) == list(WINDOWS)  # type: ignore[call-overload]  # JSON


@pytest.mark.parametrize("windows", ["1m", "1h,2h", "*"])
async def test_a_window_that_there_is_not_is_refused_with_those_there_are(windows: str) -> None:
    status, problem = await get(f"/v1/stats?windows={windows}")
    assert status == 400 and "15mo" in str(problem["title"])


async def test_the_schema_is_served() -> None:
    status, schema = await get("/v1/stats/schema")
    assert status == 200 and str(schema["$schema"]).endswith("2020-12/schema")
