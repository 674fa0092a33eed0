"""Fairness: one tenant has very many deliveries queued for an endpoint that answers after ten seconds; another tenant sends one at a time.

What counts is how long the other tenant's webhook takes from the request to its endpoint.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from .server import Options, Served, served

RECEIVERS = 100_000
ANSWER_S = 10.0
SENDS = 100
PACE_S = 0.3
SETTINGS = ("dispatch.private_targets=127.0.0.0/8",)


async def measure(options: Options) -> dict[str, Any]:
    receivers = options.receivers or RECEIVERS
    slow, arrived = asyncio.Semaphore(0), asyncio.Event()

    async def answer_late(request: web.Request) -> web.Response:
        slow.release()
        await asyncio.sleep(ANSWER_S)
        return web.Response()

    async def answer(request: web.Request) -> web.Response:
        arrived.set()
        return web.Response()

    async with endpoints({"/late": answer_late, "/hook": answer}) as url, served(options.folder, SETTINGS) as server:
        key = await asyncio.to_thread(make_other, server, f"{url}/hook")
        await asyncio.to_thread(queue_all, server, f"{url}/late", receivers)
        await slow.acquire()
        took = [await send_one(server, key, f"n{number}", arrived) for number in range(SENDS)]
        shown = await asyncio.to_thread(server.call, "GET", "/v1/notifications/all")
    return {
        "deliveries_queued": receivers,
        "not_sent_at_end": receivers - shown["counts"].get("webhook", {}).get("sent", 0),
        "sends_of_the_other_tenant": SENDS,
        "median_ms": sorted(took)[SENDS // 2] * 1e3,
        "longest_ms": max(took) * 1e3,
    }


def make_other(server: Served, url: str) -> str:
    """Another tenant with one receiver; its key."""
    server.call("PUT", "/v1/tenants/other", b"{}")
    made = server.call("POST", "/v1/keys", b'{"tenant":"other","scopes":["admin","send"]}')
    key = str(made["key"])
    server.call("PUT", "/v1/receivers/ann", b"{}", key)
    server.call("PUT", "/v1/receivers/ann/addresses/w", json.dumps({"channel": "webhook", "value": url}).encode(), key)
    return key


def queue_all(server: Served, url: str, receivers: int) -> None:
    """One notification to receivers whose webhooks are all at one endpoint."""
    address = {"id": "w", "channel": "webhook", "value": url}
    lines = "\n".join(json.dumps({"id": f"user:{number}", "addresses": [address]}) for number in range(receivers))
    assert server.call("POST", "/v1/receivers/import", lines.encode())["rejected_count"] == 0
    server.call("PUT", "/v1/groups/all", b"{}")
    members = b"".join(b'{"receiver":"user:%d"}\n' % number for number in range(receivers))
    server.call("POST", "/v1/groups/all/import?version=1", members)
    server.call("PUT", "/v1/groups/all/version", b'{"version":1}')
    server.call("PUT", "/v1/notifications/all", b'{"to":{"group":"all"},"content":{"title":"news"}}')


async def send_one(server: Served, key: str, name: str, arrived: asyncio.Event) -> float:
    """Seconds from a request of the other tenant to the arrival of its webhook."""
    await asyncio.sleep(PACE_S)
    arrived.clear()
    began = time.perf_counter()
    body = b'{"to":{"receiver":"ann"},"content":{"title":"hi"}}'
    await asyncio.to_thread(server.call, "PUT", f"/v1/notifications/{name}", body, key)
    await arrived.wait()
    return time.perf_counter() - began


@asynccontextmanager
async def endpoints(handlers: dict[str, Callable[[web.Request], Awaitable[web.Response]]]) -> AsyncIterator[str]:
    """Real receivers of webhooks at paths of one URL."""
    app = web.Application()
    for path, handle in handlers.items():
        app.router.add_post(path, handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
