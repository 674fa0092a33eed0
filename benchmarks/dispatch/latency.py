"""How soon connected clients have an item: one client, from the request to its frame, and many that one send reaches.

Node and dispatch are one process. Each client has its own receiver and token and is one WebSocket.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from typing import Any

from .connected import SPARE, Counting, Heads, connect_all
from .loads import import_receivers
from .server import Options, Served, list_quantiles, served

RECEIVERS = 10_000
POSTS = 500
PACE_S = 0.01
SETTINGS = ("limits.connections_per_address_max=1000000",)


class Items(Heads):
    """A client of an inbox that counts the frames with an item."""

    def _is_counted(self, payload: bytes) -> bool:
        return b'"content":' in payload


async def measure(options: Options) -> dict[str, Any]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    receivers = min(options.receivers or RECEIVERS, hard - SPARE)
    try:
        async with served(options.folder, SETTINGS) as server:
            await asyncio.to_thread(import_receivers, server, receivers)
            (arrived := Counting()).begin(1)
            clients = await connect_all(options.folder, server.client, 1, arrived, Items)
            one = [await post_one(server, arrived) for _ in range(POSTS)]
            many = Counting()
            clients += await connect_all(options.folder, server.client, receivers, many, Items, first=1)
            all_ms = await send_to_all(server, many, receivers - 1)
            for client in clients:
                client.abort()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return {"receivers": receivers, "posts": POSTS, "one client": list_quantiles(one), "all clients": all_ms}


async def post_one(server: Served, arrived: Counting) -> float:
    """Seconds from the request to the item's frame at its client."""
    await asyncio.sleep(PACE_S)
    arrived.begin(1)
    body = json.dumps({"to": {"receiver": "user:0"}, "content": {"title": "hi"}}).encode()
    began = time.perf_counter()
    answered = asyncio.create_task(asyncio.to_thread(server.call, "POST", "/v1/notifications", body))
    await arrived.done
    took_s = time.perf_counter() - began
    await answered
    return took_s


async def send_to_all(server: Served, arrived: Counting, receivers: int) -> dict[str, float]:
    """When the last client has the item of one send to everybody, after the request and after its answer."""
    arrived.begin(receivers)
    began = time.perf_counter()
    await asyncio.to_thread(
        server.call, "PUT", "/v1/notifications/all", b'{"to":{"group":"all"},"content":{"title":"hi"}}'
    )
    answered_s = time.perf_counter() - began
    await arrived.done
    last_s = time.perf_counter() - began
    return {"last_item_after_s": last_s, "items_per_s": receivers / (last_s - answered_s)}
