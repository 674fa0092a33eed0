"""Feedback under API load: receivers mark all their items as read and as unread again, while notifications are accepted.

What counts is how many items are marked in a second, and the p99 of an accept against its p99 without marks.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp

from godwit.dispatch.tokens import SigningKey

from .loads import accept, import_receivers
from .server import Options, Served, served
from .webhooks import wait_sent

RECEIVERS = 200
ITEMS = 100
MARKING = 8
"""Receivers that mark at once."""
SECONDS = 8.0


async def measure(options: Options) -> dict[str, Any]:
    receivers = options.receivers or RECEIVERS
    async with served(options.folder) as server:
        await asyncio.to_thread(import_receivers, server, receivers)
        body = json.dumps({"to": {"group": "all"}, "content": {"title": "news"}}).encode()
        for number in range(ITEMS):
            await asyncio.to_thread(server.call, "PUT", f"/v1/notifications/item-{number}", body)
        await wait_sent(server, f"item-{ITEMS - 1}", "inbox", receivers)
        alone = await accept_for(server, receivers, SECONDS)
        until = asyncio.Event()
        marking = asyncio.create_task(
            mark_all(server, SigningKey(options.folder / "dispatch" / "token.key"), receivers, until)
        )
        during = await accept_for(server, receivers, SECONDS)
        until.set()
        marks = await marking
    ratio = during["p99_ms"] / alone["p99_ms"]
    return {"receivers": receivers, **marks, "accept_alone": alone, "accept_during": during, "accept_p99_ratio": ratio}


async def accept_for(server: Served, receivers: int, seconds: float) -> dict[str, float]:
    until = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, until.set)
    return await accept(server, receivers, until)


async def mark_all(server: Served, signing: SigningKey, receivers: int, until: asyncio.Event) -> dict[str, float]:
    """Each receiver marks all items up to the head of its last answer, in turn; items marked in a second."""
    count, began = 0, time.perf_counter()

    async def work(session: aiohttp.ClientSession, first: int) -> None:
        nonlocal count
        heads: dict[str, str] = {}
        tokens: dict[str, str] = {}
        while True:
            for mark in ("read", "unread"):
                for number in range(first, receivers, MARKING):
                    if until.is_set():
                        return
                    name = f"user:{number}"
                    token = tokens.get(name) or signing.sign_receiver("default", name, 3_600_000)[0]
                    headers = {"Authorization": f"Bearer {tokens.setdefault(name, token)}"}
                    if name not in heads:
                        async with session.get("/v1/inbox/counts", headers=headers) as answered:
                            heads[name] = (await answered.json())["head"]
                    body = json.dumps({"mark": mark, "up_to": heads[name]})
                    async with session.post("/v1/inbox/marks", data=body, headers=headers) as answered:
                        assert answered.status == 200, await answered.text()
                        answer = await answered.json()
                    heads[name] = answer["head"]
                    count += len(answer["items"])

    async with aiohttp.ClientSession(f"http://{server.host}:{server.port}") as session:
        await asyncio.gather(*(work(session, first) for first in range(MARKING)))
    return {"marks_per_s": count / (time.perf_counter() - began)}
