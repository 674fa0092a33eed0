"""Finds new events and notifies listeners, by tenant.

For one event loop. A commit is a hint; the store is asked for new events at most every `PACE_S`, and at each sweep in
case a hint was missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

PACE_S = 0.05


class Fresh(NamedTuple):
    """Events since the last read: the number of the last, and (tenant, notification number, channel, type, count) of each."""

    last: int
    rows: list[tuple[str, int, str, str, int]]


ReadFresh = Callable[[int], Awaitable[Fresh]]


class EventWatcher:
    """`tell` registers a listener for new events."""

    def __init__(self, read_fresh: ReadFresh, sweep_s: float) -> None:
        self._read_fresh, self._sweep_s = read_fresh, sweep_s
        self._stirred = asyncio.Event()
        self._listeners: list[Callable[[Fresh], None]] = []

    def stir(self) -> None:
        """Something was committed."""
        self._stirred.set()

    def tell(self, listener: Callable[[Fresh], None]) -> None:
        """Calls `listener` with all events from now on."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Look for events until cancelled."""
        last = (await self._read_fresh(-1)).last
        while True:
            self._stirred.clear()
            fresh = await self._read_fresh(last)
            if fresh.rows:
                last = fresh.last
                for listener in self._listeners:
                    listener(fresh)
                await asyncio.sleep(PACE_S)
                continue
            try:
                async with asyncio.timeout(self._sweep_s):
                    await self._stirred.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(PACE_S)
