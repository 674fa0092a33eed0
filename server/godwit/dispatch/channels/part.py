"""A channel as a role: its worker, its sender, and the order in which they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol

from ...logs import read_logger
from ..clock import mono_ms, now_ms
from ..errors import StoreFailed
from ..fanout.dispatcher import Clocks, Dispatcher, Pace
from ..fanout.lanes import Places
from ..fanout.run import Hints, keep_ticking, take_due, take_pages
from ..model import Shipment
from ..stores.ports import FanoutStore, Sender


class ClosingSender(Sender, Protocol):
    """A sender with connections of its own."""

    async def close(self) -> None: ...


class ChannelPart:
    """One channel. Create it in the event loop that runs it."""

    def __init__(
        self,
        channel: str,
        store: FanoutStore,
        sender: ClosingSender,
        hints: Hints,
        *,
        pace: Pace,
        sweep_ms: int,
        lane_of: Callable[[Shipment], Hashable],
        places: Places | None = None,
    ) -> None:
        self._hints, self._sweep_s, self._sender, self._channel = hints, sweep_ms / 1_000, sender, channel
        self._dispatcher = Dispatcher(
            channel,
            store,
            sender,
            Clocks(now_ms, mono_ms),
            pace=pace,
            lane_of=lane_of,
            places=places,
            on_refused=self._report_refused,
        )
        self.name = channel
        self._due = asyncio.Event()
        self._ticking: asyncio.Task[None] | None = None
        self._claiming: list[asyncio.Task[None]] = []

    def start(self, keep: Callable[[str, Callable[[], Awaitable[None]]], Awaitable[None]]) -> None:
        """Start working. `keep` restarts a task that failed."""
        loop = asyncio.get_running_loop()
        channel = self._channel
        dispatcher, hints, sweep_s = self._dispatcher, self._hints, self._sweep_s
        self._ticking = loop.create_task(_run(keep(f"{channel}_ticks", lambda: keep_ticking(dispatcher))))
        self._claiming = [
            loop.create_task(_run(keep(f"{channel}_pages", lambda: take_pages(dispatcher, hints, sweep_s)))),
            loop.create_task(_run(keep(f"{channel}_due", lambda: take_due(dispatcher, self._due, sweep_s)))),
        ]

    def resize(self, slots: int) -> None:
        """How many sends may be in flight from now on."""
        self._dispatcher.resize(slots)

    def look_for_due(self) -> None:
        """Deliveries became due: look for them now."""
        self._due.set()

    async def stop(self) -> None:
        """Start nothing more, finish running sends, and store their outcomes."""
        for task in self._claiming:
            task.cancel()
        await asyncio.gather(*self._claiming, return_exceptions=True)
        self._dispatcher.begin_stop()
        if self._ticking is not None:
            await self._ticking
        try:
            await self._dispatcher.stop()
        except StoreFailed as error:  # what was in flight is in doubt at the next start
            read_logger().error("dispatch_outcomes_not_stored", channel=self._channel, reason=str(error))
        await self._sender.close()

    def _report_refused(self, error: Exception) -> None:
        read_logger().error("dispatch_outcome_refused", channel=self._channel, reason=repr(error))


async def _run(work: Awaitable[None]) -> None:
    await work
