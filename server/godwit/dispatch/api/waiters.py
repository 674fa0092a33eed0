"""Long polls that wait for an inbox to change. For one event loop; bounded in number."""

from __future__ import annotations

import asyncio
import contextlib

from ..codes import DispatchCode
from ..errors import RequestRefused

Owner = tuple[str, str]


class Waiters:
    """Waiting requests, by inbox."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._waiting: dict[Owner, set[asyncio.Event]] = {}
        self.count = 0
        self._is_closed = False

    def wake(self, owner: Owner) -> None:
        """The inbox changed."""
        for event in self._waiting.get(owner, ()):
            event.set()

    def enter(self, owner: Owner) -> asyncio.Event:
        """Begin to wait: any change from now on sets the event. Raises RequestRefused if too many wait."""
        if self.count >= self._count_max:
            raise RequestRefused(DispatchCode.WAITERS_TOO_MANY)
        event = asyncio.Event()
        if self._is_closed:
            event.set()
        self._waiting.setdefault(owner, set()).add(event)
        self.count += 1
        return event

    def close(self) -> None:
        """Let all waiting requests answer now, and later ones without a wait."""
        self._is_closed = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Returns at a change, or after `timeout_s` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()

    def leave(self, owner: Owner, event: asyncio.Event) -> None:
        """The request stops waiting."""
        waiting = self._waiting[owner]
        waiting.discard(event)
        self.count -= 1
        if not waiting:
            del self._waiting[owner]
