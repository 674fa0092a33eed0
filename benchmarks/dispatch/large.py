"""Large stores: every inbox with ten items and one with a thousand. Pages of 50, restarts, and bytes on disk.

The store is filled by real sends. `--receivers` 1000000 is the size that the goal names.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

from .loads import import_receivers, send_to_all
from .server import OPTIONS, Options, Served, find_server, list_quantiles, measure_file, read_listeners, served, start

RECEIVERS = 100_000
ITEMS = 10
ITEMS_OF_ONE = 1_000
PAGES = 3_000
READERS = 500
"""Receivers whose inbox is read: each needs a token first."""


async def measure(options: Options) -> dict[str, Any]:
    receivers = options.receivers or RECEIVERS
    async with served(options.folder) as server:
        await asyncio.to_thread(import_receivers, server, receivers)
    empty = measure_file(options.folder)
    async with served(options.folder) as server:
        began = time.perf_counter()
        for number in range(ITEMS):
            await send_to_all(server, f"all-{number}", receivers)
        await fill_one(server)
        filled_s, rss_mb = time.perf_counter() - began, server.rss_peak_mb()
        chosen = random.Random(1).sample(range(1, receivers), min(READERS, receivers - 1))
        pages = {
            "of inboxes with 10 items": await read_pages(server, chosen),
            "of an inbox with 1,000 items": await read_pages(server, [0]),
        }
        reading_mb = server.rss_peak_mb()
    size = measure_file(options.folder)  # the write-ahead log is empty after an end in order
    items = receivers * ITEMS + ITEMS_OF_ONE - ITEMS
    return {
        "receivers": receivers,
        "items": items,
        "filled_in_s": filled_s,
        "rss_peak_mb": {"while filling": rss_mb, "while reading": reading_mb},
        "pages of 50": pages,
        "bytes_per_item_and_delivery": (size - empty) / items,
        "store_mb": size / 1e6,
        "serving_after_s": {
            "stopped": await restart(options.folder, is_killed=False),
            "killed": await restart(options.folder, is_killed=True),
        },
    }


async def fill_one(server: Served) -> None:
    """The first receiver gets the rest of its items, each a notification of its own."""
    to = {"receiver": "user:0"}
    batch = [{"id": f"one-{n}", "to": to, "content": {"title": "news"}} for n in range(ITEMS_OF_ONE - ITEMS)]
    answer = await asyncio.to_thread(server.call, "POST", "/v1/notifications/batch", json.dumps(batch).encode())
    assert all(row.get("state") == "accepted" for row in answer["results"]), answer["results"][:3]
    while await asyncio.to_thread(server.read_metric, "jobs_open"):  # noqa: ASYNC110  # the server announces nothing
        await asyncio.sleep(0.05)


async def read_pages(server: Served, numbers: list[int]) -> dict[str, float]:
    """Pages from all over the inboxes, one request at a time over one connection."""
    tokens = {}
    for number in numbers:
        made = await asyncio.to_thread(server.call, "POST", f"/v1/receivers/user:{number}/token")
        tokens[number] = made["token"]
    reader, writer = await asyncio.open_connection(server.host, server.port)
    chance, took = random.Random(2), []
    for _ in range(PAGES):
        number = chance.choice(numbers)
        _, body = await fetch(reader, writer, tokens[number], "limit=1")
        epoch, _, last = json.loads(body)["head"].partition(".")
        seq = chance.randrange(51, int(last) + 2) if int(last) > 50 else int(last) + 1
        seconds, body = await fetch(reader, writer, tokens[number], f"limit=50&before={epoch}.{seq}")
        assert len(json.loads(body)["items"]) == min(50, int(last)), body
        took.append(seconds)
    writer.close()
    return list_quantiles(took)


async def fetch(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, query: str
) -> tuple[float, bytes]:
    """How long a page took, and its body."""
    began = time.perf_counter()
    writer.write(f"GET /v1/inbox?{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    body = await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
    return time.perf_counter() - began, body


async def restart(folder: Path, *, is_killed: bool) -> float:
    """Seconds from a start until an inbox is read; the process before was stopped or killed."""
    process = start("serve", "--dispatch", "--data", str(folder), *OPTIONS, runtime=folder)
    try:
        if is_killed:
            await read_listeners(process)
            process.kill()
            process.wait()
            process = start("serve", "--dispatch", "--data", str(folder), *OPTIONS, runtime=folder)
        began = time.perf_counter()
        server = find_server(process.pid, (await read_listeners(process))["dispatch"], folder)
        await asyncio.to_thread(server.call, "GET", "/v1/notifications/all-0")
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()
