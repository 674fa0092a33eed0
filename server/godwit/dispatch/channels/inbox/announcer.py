"""Announces items and heads of inboxes on the node, for receivers that are connected.

Owns the connection to the node, and knows from the node's interest who is connected. Announcements are hints; the store
is authoritative. When a receiver's first subscriber appears, the head is published, so that a client that missed an item
knows its inbox's position. Heads are read in batches, because after a restart those of all receivers are published. Items
beyond `WAITING_MAX` are dropped, and their receivers get a head instead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice

import msgspec

from ....client import Client, Interest, JsonText, Watch
from ....errors import GodwitError
from ....logs import read_logger
from ...model import Head, InboxItem
from ...pure.items import show_head, show_item
from ...pure.subjects import head_subject, inbox_subject, read_owner

WAITING_MAX = 50_000
IN_FLIGHT_MAX = 200
HEADS_AT_ONCE = 500
"""Of one read."""
HEADS_IN_FLIGHT_MAX = 50
"""What arrives together is one turn of the node, about 10 us for each head: its other clients wait for the turn to end."""
HEADS_PER_S_MAX = 10_000
"""Of one announcer, after a restart: the node and its clients need the processor, too."""
Owner = tuple[str, str]
ReadHeads = Callable[[Sequence[Owner]], Awaitable[Mapping[Owner, Head]]]


class Announcer:
    """One connection to one node; `run` until it is cancelled."""

    def __init__(
        self,
        url: str,
        token: Callable[[], Awaitable[str]],
        read_heads: ReadHeads,
        on_change: Callable[[Owner], None] = lambda owner: None,
        on_complete: Callable[[bool], None] = lambda is_complete: None,
    ) -> None:
        """`on_change` is called when a receiver's first client connected, or its last one left. `on_complete` is called when
        all connected receivers are known, and when they no longer are.
        """
        self._on_change, self._on_complete = on_change, on_complete
        self._url, self._token, self._read_heads = url, token, read_heads
        self._items: deque[InboxItem] = deque()
        self._heads: dict[Owner, None] = {}
        """Wanted because of an item."""
        self._returning: dict[Owner, None] = {}
        """Wanted because a client connected, perhaps with very many others."""
        self._connected: dict[Owner, set[str]] = {}
        self._stirred, self._heads_stirred = asyncio.Event(), asyncio.Event()
        self.dropped = 0

    def announce(self, items: Sequence[InboxItem]) -> None:
        """Publish the items of connected receivers; returns at once."""
        for item in items:
            if (item.tenant, item.receiver) not in self._connected:
                continue
            if len(self._items) >= WAITING_MAX:
                self.dropped += 1
                self._want_head((item.tenant, item.receiver))
            else:
                self._items.append(item)
        self._stirred.set()

    def is_connected(self, tenant: str, receiver: str) -> bool:
        """Whether a client of the receiver is subscribed on the node."""
        return (tenant, receiver) in self._connected

    def list_connected(self, tenant: str) -> list[Owner]:
        """The receivers of a tenant that are connected."""
        return [owner for owner in self._connected if owner[0] == tenant]

    async def run(self) -> None:
        """Publish and watch until cancelled. Receivers that left between two runs are not reported."""
        self._on_complete(False)
        self._connected.clear()
        async with (
            Client(self._url, token=self._token) as client,
            asyncio.TaskGroup() as group,
        ):  # one that fails ends the other
            watch = client.watch("/$inbox/**")
            group.create_task(self._watch(watch))
            group.create_task(self._wait_complete(watch))
            group.create_task(self._publish_items(client))
            group.create_task(self._publish_heads(client))

    async def _watch(self, watch: Watch) -> None:
        async for interest in watch:
            self._take_interest(interest)

    async def _wait_complete(self, watch: Watch) -> None:
        await watch.complete()
        self._on_complete(True)

    def _take_interest(self, interest: Interest) -> None:
        owner = read_owner(interest.subject)
        if owner is None:
            return
        is_new = owner not in self._connected
        selectors = self._connected.setdefault(owner, set())
        if interest.has_subscribers:
            if is_new:
                self._on_change(owner)
            selectors.add(interest.subject)
            self._returning[owner] = None
            self._heads_stirred.set()
            return
        selectors.discard(interest.subject)
        if not selectors:
            del self._connected[owner]
            if not is_new:
                self._on_change(owner)

    def _want_head(self, owner: Owner) -> None:
        self._heads[owner] = None
        self._heads_stirred.set()

    async def _publish_items(self, client: Client) -> None:
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                while len(tasks) < IN_FLIGHT_MAX and self._items:
                    task = asyncio.create_task(self._publish_item(client, self._items.popleft()))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                if len(tasks) >= IN_FLIGHT_MAX:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                    continue
                self._stirred.clear()
                await self._stirred.wait()
        finally:
            for task in tasks:
                task.cancel()

    async def _publish_item(self, client: Client, item: InboxItem) -> None:
        content = JsonText(msgspec.json.encode(show_item(item)).decode())
        try:
            await client.publish(inbox_subject(item.tenant, item.receiver), content, retain=False)
        except GodwitError as error:
            read_logger().warning("inbox_item_not_announced", reason=str(error))
        self._want_head((item.tenant, item.receiver))  # retained: a second tab has it at once

    async def _publish_heads(self, client: Client) -> None:
        """Publish heads, one batch after the other, so that two heads of one receiver keep their order. Those of new items do
        not wait for those of receivers that connected, of which there may be very many after a restart.
        """
        returning: dict[Owner, Head] = {}
        while True:
            await self._heads_stirred.wait()
            live = _take_some(self._heads, HEADS_IN_FLIGHT_MAX)
            for owner in live:
                returning.pop(owner, None)  # read earlier
            if live:
                await self._publish_batch(client, await self._read_heads(live))
            if not returning and self._returning:
                returning = dict(await self._read_heads(_take_some(self._returning, HEADS_AT_ONCE)))
            some = {owner: returning.pop(owner) for owner in list(islice(returning, HEADS_IN_FLIGHT_MAX))}
            if some:
                await asyncio.gather(asyncio.sleep(len(some) / HEADS_PER_S_MAX), self._publish_batch(client, some))
            if not (self._heads or self._returning or returning):
                self._heads_stirred.clear()

    async def _publish_batch(self, client: Client, heads: Mapping[Owner, Head]) -> None:
        await asyncio.gather(*(_publish_head(client, owner, head) for owner, head in heads.items()))


def _take_some(waiting: dict[Owner, None], most: int) -> list[Owner]:
    """Remove and return those that wait longest."""
    taken = list(islice(waiting, most))
    for owner in taken:
        del waiting[owner]
    return taken


async def _publish_head(client: Client, owner: Owner, head: Head) -> None:
    content = JsonText(msgspec.json.encode(show_head(head)).decode())
    with contextlib.suppress(GodwitError):
        await client.publish(head_subject(*owner), content, retain=True)
