"""A real node and a real dispatch, on free ports."""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.config import build_config
from godwit.dispatch.part import DispatchPart
from godwit.server import Node


@dataclass
class Running:
    """`api` answers (status, JSON); `url` and `node_url` are where the two listen."""

    url: str
    node_url: str
    key: str
    http: aiohttp.ClientSession
    part: DispatchPart | None = None
    mqtt: str = ""

    async def api(self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str) -> Any:
        fields = {"Authorization": f"Bearer {self.key if key is None else key}", **headers}
        data = io.BytesIO(body) if isinstance(body, bytes) else None if body is None else aiohttp.JsonPayload(body)
        async with self.http.request(method, self.url + path, data=data, headers=fields) as answer:
            return answer.status, await answer.json(content_type=None) if answer.status != 204 else None

    async def make_token(self, receiver: str) -> str:
        status, answer = await self.api("POST", f"/v1/receivers/{receiver}/token")
        assert status == 200, answer
        return str(answer["token"])


@asynccontextmanager
async def running(folder: Path, settings: dict[str, Any] | None = None) -> AsyncIterator[Running]:
    """A node and dispatch over one data directory."""
    given = settings or {}
    dispatch = {"enabled": True, "address": "127.0.0.1:0", **given.get("dispatch", {})}
    table = {**testing.FREE_PORTS, **given, "node": {"data_directory": str(folder)}, "dispatch": dispatch}
    part = DispatchPart(build_config(table, {}, {}))
    node = Node(part.config)
    try:
        listeners = await node.start()
        address = await part.start(listeners.client)
        key = (folder / "dispatch" / "admin.key").read_text("ascii")
        async with aiohttp.ClientSession() as http:
            yield Running(f"http://{address}", f"ws://{listeners.client}", key, http, part, str(listeners.mqtt))
    finally:
        await part.stop()
        await node.stop()


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runtime folder of its own, so that tests do not meet."""
    folder = tmp_path_factory.mktemp("runtime")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
async def dispatch(tmp_path: Path, runtime: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as both:
        yield both


class WallClock:
    """The wall clock of this process, which a test moves. Leases go by another clock, which runs on."""

    def __init__(self) -> None:
        self._real, self._shift_ns = time.time_ns, 0

    def time_ns(self) -> int:
        return self._real() + self._shift_ns

    def move(self, seconds: int) -> None:
        """It shows a later time from now on; an earlier one with a negative number."""
        self._shift_ns += seconds * 1_000_000_000


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """What dispatch takes for the time."""
    clock = WallClock()
    monkeypatch.setattr(time, "time_ns", clock.time_ns)
    return clock
