"""A host that answers 429, or 503 with Retry-After: all of it waits, other hosts do not, and nothing counts as an attempt."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.dispatch.conftest import Running, running
from tests.dispatch.test_webhook import DEADLINE_S, LOOPBACK

COUNT = 12
SETTINGS = {
    "dispatch": LOOPBACK["dispatch"],
    "dispatch_limits": {"sweep_ms": 100, "webhook_sends_max": 4, "webhook_sends_per_host_max": 1},
}


@asynccontextmanager
async def host(address: str, handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A receiver at an address of its own: hosts are distinguished by name, not by port."""
    app = web.Application()
    app.router.add_post("/hook", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address, 0).start()
    try:
        yield f"http://{address}:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


async def send_to(both: Running, name: str, *urls: str) -> None:
    """One notification to COUNT receivers at each URL."""
    lines = [
        json.dumps({"id": f"{name}-{place}-{number}", "addresses": [{"id": "w", "channel": "webhook", "value": url}]})
        for number in range(COUNT)
        for place, url in enumerate(urls)
    ]
    await both.api("POST", "/v1/receivers/import", "\n".join(lines).encode())
    names = [json.loads(line)["id"] for line in lines]
    body = {"to": {"receivers": names}, "content": {"title": "hi"}}
    assert (await both.api("PUT", f"/v1/notifications/{name}", body))[0] == 202


async def list_rows(both: Running, name: str) -> list[dict[str, Any]]:
    _, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries?channel=webhook")
    return list(answer["deliveries"])


@pytest.mark.parametrize(("status", "after"), [(429, "3600"), (503, "3600"), (429, "Fri, 31 Dec 9998 23:59:59 GMT")])
async def test_the_whole_host_waits_and_other_hosts_do_not(
    tmp_path: Path, runtime: Path, status: int, after: str
) -> None:
    asked: Counter[str] = Counter()

    async def refuse(request: web.Request) -> web.Response:
        asked["busy"] += 1
        return web.Response(status=status, headers={"Retry-After": after})

    async def take(request: web.Request) -> web.Response:
        asked["quick"] += 1
        return web.Response()

    async with (
        running(tmp_path, SETTINGS) as both,
        host("127.0.0.1", refuse) as busy,
        host("127.0.0.2", take) as quick,
        asyncio.timeout(DEADLINE_S),
    ):
        await send_to(both, "n1", busy, quick)
        while Counter(row["state"] for row in await list_rows(both, "n1"))["sent"] < COUNT:
            pass
        await send_to(both, "n2", quick)  # what is put off keeps nobody's place
        while Counter(row["state"] for row in await list_rows(both, "n2"))["sent"] < COUNT:
            pass
        rows = [row for row in await list_rows(both, "n1") if row["state"] != "sent"]
        assert asked == {"busy": 1, "quick": 2 * COUNT} and len(rows) == COUNT
        assert {row["attempt"] for row in rows} == {0}, "none of them was an attempt"
        [asked_once] = [row for row in rows if row["reason"] == "throttled"]
        assert asked_once["ref"] == f"HTTP {status}"
        assert (await both.api("GET", f"/v1/deliveries/{asked_once['id']}"))[1]["attempts"] == []


async def test_a_host_that_takes_again_gets_everything_once(tmp_path: Path, runtime: Path) -> None:
    taken: Counter[str] = Counter()
    refusals = 3

    async def take(request: web.Request) -> web.Response:
        nonlocal refusals
        subject = (await request.json())["subject"]
        if refusals and taken:
            refusals -= 1
            return web.Response(status=429, headers={"Retry-After": "1"})
        taken[subject] += 1
        return web.Response()

    async with running(tmp_path, SETTINGS) as both, host("127.0.0.1", take) as url, asyncio.timeout(DEADLINE_S):
        await send_to(both, "n1", url)
        while (await both.api("GET", "/v1/notifications/n1"))[1]["state"] != "settled":
            pass
        rows = await list_rows(both, "n1")
        assert {(row["state"], row["attempt"], row["possible_duplicate"]) for row in rows} == {("sent", 1, False)}
        assert len(taken) == COUNT and set(taken.values()) == {1}
