"""Webhooks with intent and outcome stored: one send to endpoints on many hosts, alone and while one host in a hundred hangs.

The endpoints are in the generator's process. A host is an address of the loopback network.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from aiohttp import web

from .server import Options, Served, served

RECEIVERS = 10_000
HOSTS = 100
HANGS_S = 15.0
SETTINGS = ("dispatch.private_targets=127.0.0.0/8",)


class Endpoints:
    """Answers at every host; counts what arrived since `begin`."""

    def __init__(self) -> None:
        self._hanging = ""
        self._wanted = self._count = 0
        self.done = asyncio.Event()

    def begin(self, wanted: int, hanging: str = "") -> None:
        self._wanted, self._count, self._hanging = wanted, 0, hanging
        self.done.clear()

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        if request.url.host == self._hanging:
            await asyncio.sleep(HANGS_S)
            return web.Response()
        self._count += 1
        if self._count >= self._wanted:
            self.done.set()
        return web.Response()


async def measure(options: Options) -> dict[str, Any]:
    receivers = options.receivers or RECEIVERS
    endpoints = Endpoints()
    app = web.Application()
    app.router.add_post("/hook", endpoints.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    port = 0
    for number in range(HOSTS):
        await web.TCPSite(runner, name_host(number), port).start()
        port = port or runner.addresses[0][1]
    try:
        async with served(options.folder, SETTINGS) as server:
            await asyncio.to_thread(register, server, receivers, port)
            alone = await send(server, endpoints, "alone", receivers)
            others = receivers - len(range(0, receivers, HOSTS))
            beside = await send(server, endpoints, "beside", others, name_host(0))
    finally:
        await runner.cleanup()
    return {"receivers": receivers, "hosts": HOSTS, "alone": alone, "one host hangs": beside}


def name_host(number: int) -> str:
    return f"127.0.2.{1 + number}"


def register(server: Served, receivers: int, port: int) -> None:
    """Receivers with a webhook each, and a group of all."""
    lines = []
    for number in range(receivers):
        url = f"http://{name_host(number % HOSTS)}:{port}/hook"
        lines.append(
            json.dumps({"id": f"user:{number}", "addresses": [{"id": "w", "channel": "webhook", "value": url}]})
        )
    assert server.call("POST", "/v1/receivers/import", "\n".join(lines).encode())["rejected_count"] == 0
    make_group(server, receivers)


def make_group(server: Served, receivers: int) -> None:
    """The group `all` of receivers user:0, user:1, …"""
    server.call("PUT", "/v1/groups/all", b"{}")
    members = b"".join(b'{"receiver":"user:%d"}\n' % number for number in range(receivers))
    server.call("POST", "/v1/groups/all/import?version=1", members)
    server.call("PUT", "/v1/groups/all/version", b'{"version":1}')


async def send(server: Served, endpoints: Endpoints, name: str, wanted: int, hanging: str = "") -> dict[str, float]:
    """One send; from its request until the endpoints that answer have all of theirs, and their outcomes are stored."""
    endpoints.begin(wanted, hanging)
    body = json.dumps({"to": {"group": "all"}, "content": {"title": "news"}, "policy": {"first": ["webhook"]}}).encode()
    began, cpu_s = time.perf_counter(), server.cpu_s()
    await asyncio.to_thread(server.call, "PUT", f"/v1/notifications/{name}", body)
    await endpoints.done.wait()
    await wait_sent(server, name, "webhook", wanted)
    took_s = time.perf_counter() - began
    return {"webhooks_per_s": wanted / took_s, "cpu_us_per_webhook": (server.cpu_s() - cpu_s) / wanted * 1e6}


async def wait_sent(server: Served, name: str, channel: str, wanted: int) -> None:
    """Returns when so many deliveries are stored as sent."""
    while True:
        notification = await asyncio.to_thread(server.call, "GET", f"/v1/notifications/{name}")
        if notification["counts"].get(channel, {}).get("sent", 0) >= wanted:
            return
        await asyncio.sleep(0.02)  # the server announces nothing
