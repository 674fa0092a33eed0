"""Live counts: published retained on `/$dispatch/TENANT/notifications/ID` while a client subscribes, at most four times a
second.

Owns a connection to the node, and knows its subscribers. Nothing is published for a notification without subscribers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from ...client import Client, Interest, JsonText
from ...errors import GodwitError
from ...logs import read_logger
from .watcher import Fresh

PACE_S = 0.25
Looked = tuple[str, str]
ReadCounts = Callable[[str, str], Awaitable[tuple[int, dict[str, Any]] | None]]


class LiveCounts:
    """One connection to one node; `run` until it is cancelled. `read_counts` gives a notification's number and counts."""

    def __init__(self, url: str, token: Callable[[], Awaitable[str]], read_counts: ReadCounts) -> None:
        self._url, self._token, self._read_counts = url, token, read_counts
        self._looked_at: dict[Looked, str] = {}
        self._numbers: dict[int, Looked] = {}
        self._unknown: dict[Looked, None] = {}
        """Looked at before they were there: the tenant's next events look again."""
        self._changed: dict[Looked, None] = {}
        self._stirred = asyncio.Event()

    def take(self, fresh: Fresh) -> None:
        """Some notifications changed."""
        tenants = set()
        for tenant, nid, *_ in fresh.rows:
            looked = self._numbers.get(nid)
            if looked is None:
                tenants.add(tenant)
            elif looked in self._looked_at:
                self._changed[looked] = None
        self._changed |= dict.fromkeys(looked for looked in self._unknown if looked[0] in tenants)
        if self._changed:
            self._stirred.set()

    async def run(self) -> None:
        """Publishes and watches until it is cancelled."""
        async with Client(self._url, token=self._token) as client, asyncio.TaskGroup() as group:
            group.create_task(self._watch(client))
            group.create_task(self._publish(client))

    async def _watch(self, client: Client) -> None:
        async for interest in client.watch("/$dispatch/**"):
            self._take_interest(interest)

    def _take_interest(self, interest: Interest) -> None:
        parts = interest.subject.split("/")
        if len(parts) != 5 or parts[3] != "notifications" or "*" in parts[4]:
            return
        looked = (unquote(parts[2]), unquote(parts[4]))
        if interest.has_subscribers:
            self._looked_at[looked] = interest.subject
            self._changed[looked] = None
            self._stirred.set()
        else:
            self._looked_at.pop(looked, None)
            self._unknown.pop(looked, None)
            self._numbers = {nid: one for nid, one in self._numbers.items() if one != looked}

    async def _publish(self, client: Client) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            changed, self._changed = list(self._changed), {}
            for looked in changed:
                await self._publish_one(client, looked)
            await asyncio.sleep(PACE_S)

    async def _publish_one(self, client: Client, looked: Looked) -> None:
        if looked not in self._looked_at:
            return
        self._unknown[looked] = None  # also what happens while its counts are read is looked at again
        found = await self._read_counts(*looked)
        if found is None or (subject := self._looked_at.get(looked)) is None:
            return
        self._unknown.pop(looked, None)
        self._numbers[found[0]] = looked
        try:
            await client.publish(subject, JsonText(msgspec.json.encode(found[1]).decode()), retain=True)
        except GodwitError as error:
            read_logger().warning("dispatch_live_counts_not_published", reason=str(error))
