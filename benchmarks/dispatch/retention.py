"""Retention of very many expired deliveries and items while notifications are accepted: latency, and the size of the file.

A first run fills the store by a real send; a second one keeps nothing that long. `--receivers` 1000000 is the size that the goal names.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
from typing import Any

from .loads import accept, import_receivers
from .server import Options, Served, measure_file, served

RECEIVERS = 100_000
RETENTION = "dispatch_limits.retention_ms=1000"
BASE_S = 5.0
PACE_S = 0.1
OLD = "/v1/notifications/old"


async def measure(options: Options) -> dict[str, Any]:
    receivers = options.receivers or RECEIVERS
    async with served(options.folder) as server:
        await asyncio.to_thread(import_receivers, server, receivers)
        expired_s = await fill(server, receivers)
        until = asyncio.Event()
        asyncio.get_running_loop().call_later(BASE_S, until.set)
        base = await accept(server, receivers, until)
    await asyncio.sleep(max(0.0, expired_s - time.time()))  # what has not expired is kept
    before = measure_file(options.folder)
    async with served(options.folder, [RETENTION]) as server:
        until, began = asyncio.Event(), time.perf_counter()
        accepting = asyncio.create_task(accept(server, receivers, until))
        while await asyncio.to_thread(is_kept, server):  # noqa: ASYNC110  # the server announces nothing
            await asyncio.sleep(PACE_S)
        took_s = time.perf_counter() - began
        until.set()
        during = await accepting
    return {
        "receivers": receivers,
        "forgotten_per_s": receivers / took_s,
        "accept without retention": base,
        "accept during retention": during,
        "file_mb": before / 1e6,
        "file_growth_mb": (measure_file(options.folder) - before) / 1e6,
    }


async def fill(server: Served, receivers: int) -> float:
    """One send to all, which expires soon after it is done; when (Unix seconds)."""
    expires_s = 10 + receivers // 4_000
    body = {"to": {"group": "all"}, "content": {"title": "old"}, "expires_s": expires_s}
    await asyncio.to_thread(server.call, "PUT", OLD, json.dumps(body).encode())
    expired_s = time.time() + expires_s + 2
    answer: dict[str, Any] = {"state": "accepted"}
    while answer["state"] != "settled":
        await asyncio.sleep(PACE_S)
        answer = await asyncio.to_thread(server.call, "GET", OLD)
    assert answer["counts"] == {"inbox": {"sent": receivers}}, answer
    return expired_s


def is_kept(server: Served) -> bool:
    """Whether the notification is still there: it goes last."""
    try:
        server.call("GET", OLD)
    except urllib.error.HTTPError as error:
        assert error.code == 404, error
        return False
    return True
