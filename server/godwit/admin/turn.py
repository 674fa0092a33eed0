"""Limits concurrent list requests to the engine, so that they never occupy the threads that answer health and metrics.

Owns the waiting line, which is bounded; a request beyond it is answered with 503.
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
    """The waiting line for all lists of an admin port."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE_MAX)
        self._waiting = 0

    async def take(self, ask: Callable[..., Answer], *values: object) -> Answer:
        """Call a function on a thread when its turn comes; raises 503 if too many wait."""
        if self._waiting >= WAITING_MAX:
            raise web.HTTPServiceUnavailable(reason="too many lists are requested at once; try again in a second")
        self._waiting += 1
        try:
            async with self._places:
                return await asyncio.to_thread(ask, *values)
        finally:
            self._waiting -= 1
