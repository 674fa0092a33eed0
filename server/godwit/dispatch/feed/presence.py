"""Connections as feedback: which receivers are connected, for tenants that ask for it.

Changes gather for a moment, so that a page that reloads is no event, and are stored in batches. What was stored as connected and is not
known to be once the node told all it knows left while dispatch was not looking.
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
    """What this role needs of the store."""

    async def note_presence(self, changes: Sequence[tuple[str, str, bool]], now_ms: int) -> None:
        """Receivers (tenant, name) that are connected from now on, or no longer."""

    async def list_present(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Receivers after a number that are stored as connected: number, tenant, name."""


class Presence:
    """Runs until it is cancelled; `take` says that receivers came or left, `settle` whether all that are connected are known."""

    def __init__(self, store: PresenceStore, is_connected: Callable[[str, str], bool]) -> None:
        self._store, self._is_connected = store, is_connected
        self._changed: dict[Owner, None] = {}
        self._stirred = asyncio.Event()
        self._is_settled = self._was_checked = False

    def take(self, *owners: Owner) -> None:
        """A receiver's first client came, or its last one left; or its tenant began to ask for it."""
        self._changed.update(dict.fromkeys(owners))
        self._stirred.set()

    def settle(self, is_settled: bool) -> None:
        """Until all are known nobody counts as having left: who is not connected then is found in the store."""
        self._is_settled, self._was_checked = is_settled, False
        self._stirred.set()

    async def run(self) -> None:
        """Stores what changed. Raises StoreFailed, and keeps what was not stored: it is started again."""
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
