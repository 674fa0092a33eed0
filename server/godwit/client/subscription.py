"""The public subscription and watch: asynchronous iterators."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from ..model import Gap, Interest, Message
from .connection import Connection, now_ms
from .errors import ClientClosed
from .items import Dropped, Item
from .resume_point import ResumePoint
from .session import Session
from .subscribing import State, Subscribing
from .watching import Watching

log = logging.getLogger("godwit.client")


class Subscription:
    """An asynchronous iterator of messages; iterate `items()` to receive gaps, drops and statuses too, in order.

    It has one reader at a time. An item counts as handled when the next one is requested. Errors of the server are raised by
    the iteration: CommandRefused with its code.

        subscription = client.subscribe("/rooms/**", last=10)
        async for message in subscription:
            await store(message.subject, message.json(), subscription.resume_point)
    """

    def __init__(self, session: Session, connection: Connection, subscribing: Subscribing) -> None:
        self._session, self._connection, self._subscribing = session, connection, subscribing
        self._news = asyncio.Event()
        self._joined = asyncio.Event()
        self._moves = 0
        self.read_late: Callable[[Subscription], object] = _nobody_keeps  # called as an ended one is read on
        subscribing.wake = self._woken

    @property
    def selector(self) -> str:
        """The subject or pattern."""
        return self._subscribing.selector

    @property
    def resume_point(self) -> ResumePoint:
        """The position after the last handled item. `subscribe(…, after=resume_point)` continues from there."""
        return self._subscribing.queue.handled.resume_point

    @property
    def is_ended(self) -> bool:
        """Closed, or ended by the server. Items already received can still be read."""
        return self._subscribing.state is State.ENDED

    def has_moved(self) -> bool:
        """Whether `resume_point` has changed since the last call of this method."""
        moves, self._moves = self._moves, self._subscribing.queue.handled.moves
        return moves != self._moves

    @property
    def counts(self) -> dict[str, int]:
        """Counts of joins, gaps, dropped duplicates, and missing messages; a missing message is a fault of the server."""
        core = self._subscribing
        return {"joins": core.joins, "gaps": core.gaps, "duplicates": core.duplicates, "missing": core.missing}

    async def joined(self) -> None:
        """Wait until the subscription has started: everything published from now on is delivered, or reported by a gap.

        If it begins with more messages than the queue holds, read them to complete it. Raises CommandRefused if the server
        refuses, and ClientClosed if the client or the subscription is closed.
        """
        self._connection.check_loop()
        await self._joined.wait()
        if self._subscribing.error is not None:
            raise self._subscribing.error.with_traceback(None)
        if self.is_ended:
            error = self._session.error or ClientClosed(f"the subscription to {self.selector}")
            raise error.with_traceback(None)

    def handled(self) -> None:
        """Mark the last item as handled without requesting the next one."""
        self._subscribing.queue.finish()
        if self.is_ended:
            self.read_late(self)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        while True:
            item = await self._next()
            if type(item) is Message:
                return item
            if isinstance(item, Gap):
                missed = "some" if item.missed is None else item.missed
                log.warning("gap on %s: %s messages missed (%s)", item.subject, missed, item.reason)
            elif isinstance(item, Dropped):
                if item.count is not None:  # the pause has been logged
                    log.warning("%s standard messages dropped on %s", item.count, item.selector)

    def items(self) -> _Items:
        """Iterate over everything in order: Message, Gap, Dropped, Status."""
        return _Items(self._next)

    async def close(self) -> None:
        """Unsubscribe. Messages that were received before can still be read."""
        self._connection.check_loop()
        self._session.unsubscribe(self._subscribing)
        self._connection.wake()

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.handled()
        await self.close()

    async def _next(self) -> Item:
        core = self._subscribing
        while True:
            item = core.queue.take()
            if core.state is State.ENDED:
                self.read_late(self)
            if core.is_paused and core.queue.has_room:
                self._session.take_up(core, now_ms())
                self._connection.wake()
            elif self._session.liveness.is_held:
                self._connection.took()
            if item is not None:
                return item
            if core.state is State.ENDED:
                if core.error is not None:
                    raise core.error.with_traceback(None)
                raise StopAsyncIteration
            self._connection.check_loop()
            self._news.clear()
            await self._news.wait()

    def _woken(self) -> None:
        self._news.set()
        core = self._subscribing
        if core.is_joined or core.queue.is_full or core.state is State.ENDED:
            self._joined.set()


class _Items(AsyncIterator[Item]):
    """Not a generator: that would be over once a timeout around one `anext` had cancelled it."""

    def __init__(self, take: Callable[[], Awaitable[Item]]) -> None:
        self._take = take

    async def __anext__(self) -> Item:
        return await self._take()

    async def aclose(self) -> None:
        """Does nothing, for `contextlib.aclosing`: the subscription stays open when a loop over it ends."""


class Watch:
    """An asynchronous iterator of the current interest, then of its changes. A slow reader receives the latest of each selector.

    async for interest in client.watch("/cameras/*"):
        await switch(interest.subject, interest.has_subscribers)
    """

    def __init__(self, session: Session, connection: Connection, watching: Watching) -> None:
        self._session, self._connection, self._watching = session, connection, watching
        self._news = asyncio.Event()
        self._complete = asyncio.Event()
        watching.wake = self._woken

    def __aiter__(self) -> AsyncIterator[Interest]:
        return self

    async def __anext__(self) -> Interest:
        while True:
            change = self._watching.take()
            if change is not None:
                return change
            if self._watching.is_complete:
                self._complete.set()
            if self._watching.is_ended:
                if self._watching.error is not None:
                    raise self._watching.error.with_traceback(None)
                raise StopAsyncIteration
            self._connection.check_loop()
            self._news.clear()
            await self._news.wait()

    async def complete(self) -> None:
        """Wait until the iteration has returned every selector that has subscribers now, and has requested the next change.

        Iterate in another task meanwhile. Raises CommandRefused if the server refuses, and ClientClosed if the client or the watch
        is closed.
        """
        self._connection.check_loop()
        await self._complete.wait()
        if self._watching.error is not None:
            raise self._watching.error.with_traceback(None)
        if self._watching.is_ended:
            error = self._session.error or ClientClosed(f"the watch of {self._watching.selector}")
            raise error.with_traceback(None)

    async def close(self) -> None:
        """Stop watching; the iteration ends."""
        self._connection.check_loop()
        self._session.unwatch(self._watching)
        self._connection.wake()

    async def __aenter__(self) -> Watch:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _woken(self) -> None:
        self._news.set()
        if self._watching.is_ended:
            self._complete.set()


def _nobody_keeps(subscription: Subscription) -> None:
    """Its positions are not saved."""
