"""Names that are found slowly or never: they hold up no other tenant, and nothing has left before they are found."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from godwit.dispatch.channels.webhook.http import HttpPoster
from godwit.dispatch.channels.webhook.names import LOOKUPS_PER_TENANT_MAX
from godwit.dispatch.channels.webhook.targets import list_private_targets
from godwit.dispatch.model import Result
from tests.dispatch.test_webhook import endpoint

DEADLINE_S = 60


class SlowNames:
    """Names of the system, of which those that begin with `slow` are not found before `released`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self.released = threading.Event()
        self._find = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self.find)

    def find(self, host: str, *rest: Any) -> Any:
        if not host.startswith("slow"):
            return self._find("127.0.0.1" if host == "quick.test" else host, *rest)
        self.asked.append(host)
        self._loop.call_soon_threadsafe(self.begun.put_nowait, host)
        self.released.wait(DEADLINE_S)
        raise socket.gaierror(socket.EAI_AGAIN, "not now")


@asynccontextmanager
async def posting(timeout_ms: int) -> AsyncIterator[HttpPoster]:
    poster = HttpPoster(list_private_targets(["127.0.0.0/8"]), sends_max=512, timeout_ms=timeout_ms)
    try:
        yield poster
    finally:
        await poster.close()


async def take(request: web.Request) -> web.Response:
    return web.Response()


async def test_slow_names_of_a_tenant_hold_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    names = SlowNames(monkeypatch)
    async with asyncio.timeout(DEADLINE_S), endpoint(take) as url, posting(3 * DEADLINE_S * 1_000) as poster:
        slow = [
            asyncio.create_task(poster.post(f"http://slow{number}.test/", b"{}", {}, tenant="slow"))
            for number in range(40)
        ]
        for _ in range(LOOKUPS_PER_TENANT_MAX):
            await names.begun.get()
        quick = await poster.post(url.replace("127.0.0.1", "quick.test"), b"{}", {}, tenant="quick")
        assert quick[0] is Result.OK and len(names.asked) == LOOKUPS_PER_TENANT_MAX
        names.released.set()
        assert {result for result, _, _ in await asyncio.gather(*slow)} == {Result.TEMPORARY}
        assert len(names.asked) == 40, "every lookup gave its place back"


async def test_a_name_that_is_not_found_in_time_leaves_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    names = SlowNames(monkeypatch)
    async with asyncio.timeout(DEADLINE_S), posting(300) as poster:
        posts = [poster.post(f"http://slow{number}.test/", b"{}", {}, tenant="slow") for number in range(20)]
        answers = await asyncio.gather(*posts)
        names.released.set()
    assert {result for result, _, _ in answers} == {Result.TEMPORARY}


async def test_what_was_sent_and_not_answered_is_in_doubt() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        asked.set()
        await ended.wait()
        return web.Response()

    async with asyncio.timeout(DEADLINE_S), endpoint(hang) as url, posting(1_000) as poster:
        result, _, _ = await poster.post(url, b"{}", {}, tenant="t")
        ended.set()
    assert asked.is_set() and result is Result.DOUBT
