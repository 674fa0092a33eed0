"""Connections that send nothing, or half a request: they end in time, and keep nobody out of the port of dispatch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.dispatch.conftest import Running, running

DEADLINE_S = 60
FEW: dict[str, Any] = {"dispatch_limits": {"port_connections_max": 20}}
SHORT: dict[str, Any] = {"dispatch_limits": {"request_head_ms_max": 300}}


async def connect(both: Running, said: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = both.url.removeprefix("http://").removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(said)
    return reader, writer


@pytest.mark.parametrize("said", [b"", b"GET /v1/receivers HTTP/1.1\r\nHost: a\r\n"])
async def test_a_request_that_does_not_come_ends_its_connection(tmp_path: Path, runtime: Path, said: bytes) -> None:
    async with running(tmp_path, SHORT) as both, asyncio.timeout(DEADLINE_S):
        reader, writer = await connect(both, said)
        assert await reader.read() == b""
        writer.close()


async def test_silent_connections_keep_nobody_out(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FEW) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        token = await both.make_token("ann")
        _, answer = await both.api("GET", "/v1/inbox", key=token)
        waiting = asyncio.create_task(both.api("GET", f"/v1/inbox?after={answer['head']}&wait=30", key=token))
        silent = [await connect(both, b"GET / HTTP/1.1\r\n" * (number % 2)) for number in range(100)]
        assert await silent[0][0].read() == b"", "the one that was silent longest has gone first"
        assert (await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": {"title": "x"}}))[
            0
        ] == 202
        status, answer = await waiting  # a poll that waits is not silent
        assert status == 200 and answer["items"]
        async with both.http.get(f"{both.url}/metrics", headers={"Authorization": f"Bearer {both.key}"}) as metrics:
            text = await metrics.text()
        [line] = [one for one in text.splitlines() if one.startswith("godwit_dispatch_connections_evicted_total ")]
        assert int(float(line.split()[-1])) >= 80
        for _, writer in silent:
            writer.close()
