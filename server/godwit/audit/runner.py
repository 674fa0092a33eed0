"""Brings events to the audits: collected in batches, each audit with a bounded queue and a task of its own.

Owns the bound and what happens at it. Messages wait in the engine until they are fetched; with `when_slow = "hold"` they are
fetched only while every audit has room, so that the engine's own bound fills and publishers are not read. Everything else, and
messages with "drop", pushes out the oldest. Invariant: no queue holds more than `queue_events_max`, and what was lost is told.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ..config.tree import AuditConfig
from ..errors import AuthorizerFailed
from ..logs import read_logger
from ..plugins import load_plugin
from .audit import Audit, NodeFace
from .events import AccessEvent, CacheEvent, Event, LostEvent, MessageEvent, StatisticsEvent

STOP_TIMEOUT_S = 2.0
_GONE = ("evicted_count", "evicted_age", "evicted_bytes", "evicted_snapshots", "forgotten")
_HELD = ("subjects", "messages", "message_bytes", "snapshots", "snapshot_bytes")
_ACCESS = {
    "connected": ("connection", "identity", "client", "address", "wire"),
    "subscribed": ("connection", "selector"),
    "unsubscribed": ("connection", "selector"),
    "disconnected": ("connection", "code"),
    "refused": ("address", "code", "reason"),
}

TakeHeard = Callable[[int, bool], tuple[list[tuple[Any, ...]], int]]


def load_audits(config: AuditConfig) -> list[Audit]:
    """The audits that the configuration names; raises ConfigInvalid."""
    verbs = ("take", "start", "stop")
    return [load_plugin("audit.plugins", name, "godwit.audits", verbs) for name in config.plugins]


class _Desk:
    """One audit, its queue, and how many of each kind it lost since it was last told."""

    def __init__(self, audit: Audit, events_max: int) -> None:
        self.audit = audit
        self.queue: deque[Event] = deque()
        self.lost: Counter[str] = Counter()
        self.filled, self.emptied = asyncio.Event(), asyncio.Event()
        self.emptied.set()
        self._events_max = events_max

    def put(self, events: Iterable[Event]) -> int:
        """Takes them all; returns how many of the oldest had to go."""
        lost = 0
        for event in events:
            if len(self.queue) >= self._events_max:
                self.lost["message" if isinstance(self.queue.popleft(), MessageEvent) else "access"] += 1
                lost += 1
            self.queue.append(event)
        self.filled.set()
        self.emptied.clear()
        return lost


class AuditRunner:
    """One for a node. `take_heard` fetches messages, `read_stats` the engine's figures (on a thread)."""

    def __init__(
        self,
        audits: Sequence[Audit],
        config: AuditConfig,
        *,
        take_heard: TakeHeard,
        read_stats: Callable[[], dict[str, Any]],
        node: NodeFace,
    ) -> None:
        self.counts: Counter[str] = Counter(told=0, lost=0, failed=0)
        self._config, self._take_heard, self._read_stats, self._node = config, take_heard, read_stats, node
        self._desks = [_Desk(audit, config.queue_events_max) for audit in audits]
        self._tasks: list[asyncio.Task[None]] = []
        self._lost_before, self._gone_before = 0, dict.fromkeys(_GONE, 0)

    async def start(self) -> None:
        """Starts the audits; raises AuthorizerFailed where one does not."""
        for desk in self._desks:
            desk.audit.node = self._node
            try:
                await desk.audit.start()
            except Exception as error:  # a user's code may raise anything
                raise AuthorizerFailed(f"an audit did not start: {type(error).__name__}: {error}") from error
        work = [self._serve(desk) for desk in self._desks]
        if self._desks:
            work += [self._fetch_messages(), self._fetch_figures()]
        self._tasks = [asyncio.get_running_loop().create_task(one) for one in work]

    async def stop(self) -> None:
        """Lets the audits take what they were told, for a while, and ends."""
        if self._tasks:
            self._fetch()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await asyncio.gather(*(desk.emptied.wait() for desk in self._desks))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for desk in self._desks:
            try:
                await desk.audit.stop()
            except Exception as error:  # the node stops all the same
                read_logger().warning("audit_failed", why=f"stop: {type(error).__name__}: {error}")

    def tell_reports(self, reports: Iterable[tuple[Any, ...]]) -> None:
        """The engine's reports of sessions, as access events; other reports are none."""
        if self._desks:
            now_ms = time.time_ns() // 1_000_000
            named = (
                (kind, dict(zip(_ACCESS[kind], fields, strict=False))) for kind, *fields in reports if kind in _ACCESS
            )
            self._put([AccessEvent(kind, now_ms, **fields) for kind, fields in named])

    def tell(self, *events: Event) -> None:
        """Events of the server's own."""
        self._put(events)

    def _put(self, events: Sequence[Event]) -> None:
        for desk in self._desks:
            self.counts["lost"] += desk.put(events)
        self.counts["told"] += len(events)

    async def _serve(self, desk: _Desk) -> None:
        while True:
            await desk.filled.wait()
            batch: list[Event] = [LostEvent(kind, count) for kind, count in desk.lost.items()]
            desk.lost.clear()
            while desk.queue and len(batch) < self._config.batch_events_max:
                batch.append(desk.queue.popleft())
            if not desk.queue:
                desk.filled.clear()
            try:
                await desk.audit.take(batch)
            except Exception as error:  # a user's code may raise anything: it has had this batch
                self.counts["failed"] += 1
                read_logger().warning("audit_failed", why=f"{type(error).__name__}: {error}", events=len(batch))
            if not desk.queue:
                desk.emptied.set()

    async def _fetch_messages(self) -> None:
        while True:
            if not self._fetch():
                await asyncio.sleep(self._config.batch_ms / 1000)
            await asyncio.sleep(0)

    def _fetch(self) -> bool:
        """Fetches one batch of messages; whether more may wait."""
        config = self._config
        room = min(config.queue_events_max - len(desk.queue) for desk in self._desks)
        count = config.batch_events_max if config.when_slow == "drop" else min(room, config.batch_events_max)
        if count <= 0:
            return False
        rows, lost = self._take_heard(count, config.with_content)
        self._put([MessageEvent(*row) for row in rows])
        if lost > self._lost_before:
            self.counts["lost"] += lost - self._lost_before
            for desk in self._desks:
                desk.lost["message"] += lost - self._lost_before
            self._lost_before = lost
        return len(rows) == count

    async def _fetch_figures(self) -> None:
        while True:
            await asyncio.sleep(self._config.statistics_ms / 1000)
            figures = await asyncio.to_thread(self._read_stats)
            now_ms = time.time_ns() // 1_000_000
            gone = {name: int(figures.get(name, 0)) for name in _GONE}
            since = {name: count - self._gone_before[name] for name, count in gone.items()}
            self._gone_before = gone
            self._put([StatisticsEvent(now_ms, figures)])
            if any(since.values()):
                self._put([CacheEvent(now_ms, since, {name: int(figures.get(name, 0)) for name in _HELD})])
