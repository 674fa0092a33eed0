"""Subscribers with the Python client, like a user's program: one that stays connected, and one that restarts from saved
positions.

They check what the library yields: nothing may arrive twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from pathlib import Path

from ...client import Client, Gap, Item, Message, PositionFile, Settings, Status
from ..judge.checker import Checker
from ..plan import Kind, SubscriberPlan
from ..reading import Reading
from ..timing import Clock
from ..trace import Trace

QUICK = Settings(
    items_max=200,
    reconnect_first_ms=20,
    reconnect_max_ms=400,
    answer_timeout_ms=2_000,
    ping_interval_ms=2_000,
    connect_timeout_ms=4_000,
    frame_bytes_max=4 << 20,
)
ITEMS_PER_LIFE = 60
"""How many items a saving subscriber reads before its program ends and starts again."""


class ClientSubscriber(Reading[asyncio.Event]):
    """Run it as a task; cancel it to end."""

    def __init__(
        self, mine: SubscriberPlan, url: str, checker: Checker, trace: Trace, clock: Clock, directory: Path
    ) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.checker, self.trace = mine, checker, trace
        self._url, self._clock = url, clock
        self._file = directory / f"{mine.name}.json"
        self._lives = 0
        self._items_per_life = ITEMS_PER_LIFE if mine.kind is Kind.SAVED else None

    def go_at_full_speed(self) -> None:
        """Read at full speed, without restarts, because what is left may be a whole journal."""
        super().go_at_full_speed()
        self._items_per_life = None

    async def run(self) -> None:
        while True:
            await self._live(PositionFile(self._file) if self.mine.kind is Kind.SAVED else None)

    async def _live(self, positions: MutableMapping[str, object] | None) -> None:
        mine, items, is_over = self.mine, 0, False
        async with Client(self._url, encoding=mine.encoding, settings=QUICK, positions=positions) as client:
            subscription = client.subscribe(mine.selector, on_gap=mine.on_gap)
            if self._lives == 0:
                self.checker.asked(self._clock())
            self._lives += 1
            try:
                async for item in subscription.items():
                    self._take(item)
                    await self._may_read.wait()
                    items += not isinstance(item, Status)
                    is_over = self._items_per_life is not None and items >= self._items_per_life
                    if is_over:
                        break
            finally:
                self.trace.down(self._clock())
                if is_over:
                    self.checker.lost(self._clock(), "the program ended; its positions are saved")

    def _take(self, item: Item) -> None:
        now, checker = self._clock(), self.checker
        match item:
            case Message():
                checker.message(now, item)
            case Gap():
                self.trace.gap(now, item.missed)
                checker.gap(now, item)
            case Status(state="subscribed"):
                self.trace.up(now)
                if checker.is_pattern or not checker.states:
                    checker.joined(now, item.position, item.outcome, item.count)
                else:
                    checker.resumed(now)
            case Status():
                self.trace.down(now)
                checker.lost(now, item.reason)
            case _:
                pass
