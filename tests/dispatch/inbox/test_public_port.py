"""The second port of dispatch: receivers reach their inboxes and unsubscribe there, and nothing needs an API key."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from godwit.config import build_config
from godwit.dispatch.part import DispatchPart
from godwit.errors import ConfigInvalid, ListenFailed
from tests.dispatch.conftest import running
from tests.dispatch.test_process import serve

DEADLINE_S = 60


async def test_receivers_reach_their_inbox_there_and_nothing_else(tmp_path: Path, runtime: Path) -> None:
    settings = {"dispatch": {"public_address": "127.0.0.1:0"}}
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, settings) as both:
        assert both.part is not None and both.part.public_address is not None
        public = f"http://{both.part.public_address}"
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": {"title": "hi"}})
        token = await both.make_token("ann")
        headers = {"Authorization": f"Bearer {token}"}
        items: list[object] = []
        while not items:
            async with both.http.get(f"{public}/v1/inbox?wait=5", headers=headers) as answered:
                items = (await answered.json())["items"]
        async with both.http.post(
            f"{public}/v1/inbox/marks", json={"mark": "read", "ids": ["n1"]}, headers=headers
        ) as answered:
            assert answered.status == 200
        for path, status in (("/health/live", 200), ("/v1/keys.json", 200), ("/u/nonsense", 404)):
            async with both.http.get(public + path) as answered:
                assert answered.status == status, path
        key = {"Authorization": f"Bearer {both.key}"}
        for path in (
            "/v1/notifications",
            "/v1/receivers/ann",
            "/v1/openapi.json",
            "/console/",
            "/metrics",
            "/v1/events",
        ):
            async with both.http.get(public + path, headers=key) as answered:
                assert (answered.status, (await answered.json())["title"]) == (404, "RouteUnknown"), path
            assert (await both.http.get(both.url + path, headers=key)).status == 200, path


async def test_the_line_of_a_start_names_it(tmp_path: Path) -> None:
    process, line = await serve(tmp_path, more={"dispatch.public_address": "127.0.0.1:0"})
    process.kill()
    await process.wait()
    assert [word.split("=")[0] for word in line.split()[-2:]] == ["dispatch", "dispatch_public"]


async def test_an_address_that_is_taken_or_is_none_is_refused(tmp_path: Path, runtime: Path) -> None:
    with pytest.raises(ConfigInvalid, match="public_address"):
        build_config({"dispatch": {"public_address": "8803"}}, {}, {})
    async with running(tmp_path / "one") as both:
        taken = both.url.removeprefix("http://")
        dispatch = {"enabled": True, "address": "127.0.0.1:0", "public_address": taken}
        table = {"node": {"data_directory": str(tmp_path / "two")}, "dispatch": dispatch}
        part = DispatchPart(build_config(table, {}, {}))
        with pytest.raises(ListenFailed, match=r"dispatch\.public_address"):
            await part.start_at("ws://127.0.0.1:9")
        await part.stop()
