"""A watch as its user holds it: an asynchronous iterator over changes of interest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ..model import Interest
from .connection import Connection
from .session import Session
from .watching import Watching


class Watch:
    """Yields the interest there is, then its changes; a reader that is behind gets the latest of each selector."""

    def __init__(self, session: Session, connection: Connection, watching: Watching) -> None:
        self._session, self._connection, self._watching = session, connection, watching
        self._news = asyncio.Event()
        watching.wake = self._news.set

    def __aiter__(self) -> AsyncIterator[Interest]:
        return self

    async def __anext__(self) -> Interest:
        while True:
            change = self._watching.take()
            if change is not None:
                return change
            if self._watching.is_ended:
                if self._watching.error is not None:
                    raise self._watching.error
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        self._session.unwatch(self._watching)
        self._connection.wake()
