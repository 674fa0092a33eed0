"""Who may ask the engine for a list now: a few at once, so that lookers-on never take the threads that answer health and metrics.

Owns the line in front: so many wait, one more is told to come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from aiohttp import web

AT_ONCE_MAX = 2
WAITING_MAX = 32
Answer = TypeVar("Answer")


class Turn:
    """One line for all lists of an admin port."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._waiting = 0

    async def take(self, ask: Callable[..., Answer], *values: object) -> Answer:
        """Calls on a thread when it is its turn; raises 503 where too many wait."""
        if self._waiting >= WAITING_MAX:
            raise web.HTTPServiceUnavailable(reason="too many lists are asked for at once; try again in a second")
        self._waiting += 1
        try:
            async with self._places:
                return await asyncio.to_thread(ask, *values)
        finally:
            self._waiting -= 1
