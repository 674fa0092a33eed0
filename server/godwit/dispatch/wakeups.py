"""Wake-ups in memory: hints that a tenant has work on a channel, processed in order.

For one event loop. A waiting hint is not added again, and the sweep replaces lost ones.
"""

from __future__ import annotations

import asyncio

from .model import WakeUp


class WakeUps:
    """The waiting hints of one channel."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        self._changed = asyncio.Event()

    def add(self, tenant: str) -> None:
        """Adds a hint at the end of the queue."""
        self._waiting.setdefault(tenant)
        self._changed.set()

    def take(self) -> str | None:
        """The tenant that has waited longest, or None."""
        for tenant in self._waiting:
            del self._waiting[tenant]
            return tenant
        self._changed.clear()
        return None

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, timeout_s: float) -> None:
        """Returns when a hint waits, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return


__all__ = ["WakeUp", "WakeUps"]
