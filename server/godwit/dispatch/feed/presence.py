"""Connection events: which receivers are connected, for tenants that enable it.

Changes are collected for a short time, so that a page reload is not an event, and stored in batches. Receivers that are
stored as connected, and are not among those that the node reports after a reconnect, left meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from ..clock import now_ms

PACE_S = 1.0
BATCH_MAX = 1_000
Owner = tuple[str, str]


class PresenceStore(Protocol):
    """The methods of the store that this role needs."""

    async def note_presence(self, changes: Sequence[tuple[str, str, bool]], now_ms: int) -> None:
        """Receivers (tenant, name) that are connected from now on, or no longer."""

    async def list_present(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Receivers after a number that are stored as connected: number, tenant, name."""


class Presence:
    """Runs until it is cancelled. `take` reports receivers that connected or left, `settle` whether all connected ones are known."""

    def __init__(self, store: PresenceStore, is_connected: Callable[[str, str], bool]) -> None:
        self._store, self._is_connected = store, is_connected
        self._changed: dict[Owner, None] = {}
        self._stirred = asyncio.Event()
        self._is_settled = self._was_checked = False

    def take(self, *owners: Owner) -> None:
        """A receiver's first client connected, or its last one left; or its tenant enabled connection events."""
        self._changed.update(dict.fromkeys(owners))
        self._stirred.set()

    def settle(self, is_settled: bool) -> None:
        """Whether all connected receivers are known. Only then do stored receivers that are not among them count as having left."""
        self._is_settled, self._was_checked = is_settled, False
        self._stirred.set()

    async def run(self) -> None:
        """Store changes. Raises StoreFailed, and keeps what was not stored; the role is then restarted."""
        self._stirred.set()
        while True:
            await self._stirred.wait()
            await asyncio.sleep(PACE_S)
            self._stirred.clear()
            if self._is_settled and not self._was_checked:
                self._was_checked = True
                await self._find_stale()
            while self._changed:
                await self._store_some()

    async def _store_some(self) -> None:
        owners = [self._changed.popitem()[0] for _ in range(min(BATCH_MAX, len(self._changed)))]
        found = [(*owner, self._is_connected(*owner)) for owner in owners]
        try:
            await self._store.note_presence([row for row in found if row[2] or self._is_settled], now_ms())
        except BaseException:
            self.take(*owners)
            raise

    async def _find_stale(self) -> None:
        last = 0
        try:
            while found := await self._store.list_present(last, BATCH_MAX):
                last = found[-1][0]
                self._changed.update({row[1:]: None for row in found if not self._is_connected(*row[1:])})
        except BaseException:
            self._was_checked = False
            raise
