"""Fetches events in batches and passes them to the queues of each audit (desk.py).

Owns when messages are fetched from the engine. With `overflow = "block"` they are fetched only while every audit has
room; otherwise the engine's buffer fills up and publishers wait. After `block_ms_max` an audit whose `take` does not end
no longer makes publishers wait. A task that ends is logged, counted and restarted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from ..config.audit import AuditConfig
from ..errors import AuthorizerFailed
from ..extension import WatchedTask
from ..plugins import load_plugin
from .audit import Audit, NodeFace
from .desk import AuditDesk
from .events import AccessEvent, CacheEvent, Event, MessageEvent, StatisticsEvent

_GONE = (
    "messages_evicted_by_count",
    "messages_evicted_by_age",
    "messages_evicted_by_bytes",
    "evicted_snapshots",
    "forgotten",
)
_HELD = ("subjects", "messages", "message_bytes", "snapshots", "snapshot_bytes")
_ACCESS = {
    "connected": ("connection", "identity", "client", "address", "protocol", "tenant", "authority"),
    "renewed": ("connection", "identity", "reason", "tenant", "authority"),
    "subscribed": ("connection", "selector"),
    "unsubscribed": ("connection", "selector"),
    "disconnected": ("connection", "code"),
    "refused": ("address", "code", "reason", "connection", "client"),
}

TakeHeard = Callable[[int, int, bool], tuple[list[tuple[Any, ...]], int]]


def load_audits(config: AuditConfig) -> list[Audit]:
    """The audits that the configuration names; raises ConfigInvalid."""
    verbs = ("take", "start", "stop")
    return [load_plugin("audit.plugins", name, "godwit.audits", verbs) for name in config.plugins]


class AuditRunner:
    """The audits of one node. `take_heard` fetches messages, `read_stats` the engine's metrics (on a thread)."""

    def __init__(
        self,
        audits: Sequence[Audit],
        config: AuditConfig,
        *,
        take_heard: TakeHeard,
        read_stats: Callable[[], dict[str, Any]],
        node: NodeFace,
    ) -> None:
        self._config, self._take_heard, self._read_stats, self._node = config, take_heard, read_stats, node
        names = [*config.plugins, *(f"audit {n}" for n in range(len(config.plugins), len(audits)))]
        self.desks = [AuditDesk(audit, name, config) for audit, name in zip(audits, names, strict=False)]
        self._tasks: list[WatchedTask] = []
        self._lost_before, self._gone_before = 0, dict.fromkeys(_GONE, 0)

    @property
    def counts(self) -> Counter[str]:
        """The sums over all audits: events taken and lost, failed batches, restarted tasks, and waiting events."""
        total: Counter[str] = Counter(taken=0, lost=0, failed=0)
        for desk in self.desks:
            total.update(desk.counts)
        total["restarts"] = sum(task.restarts for task in self._tasks) + sum(d.host.counts["exits"] for d in self.desks)
        total["lag"] = sum(desk.behind for desk in self.desks)
        return total

    def describe_troubles(self) -> dict[str, str]:
        """The current problems, by audit or task."""
        troubles = {f"audit {desk.name}": desk.describe() for desk in self.desks}
        troubles |= {task.name: task.reason for task in self._tasks}
        return {name: why for name, why in troubles.items() if why}

    async def start(self) -> None:
        """Start the audits; raises AuthorizerFailed if one does not start."""
        for desk in self.desks:
            try:
                await desk.start(self._node)
            except AuthorizerFailed as error:
                raise AuthorizerFailed(f"the audit {desk.name} did not start: {error}") from error
        self._tasks = [WatchedTask(f"serve audit {desk.name}", desk.serve) for desk in self.desks]
        if self.desks:
            self._tasks.append(WatchedTask("fetch audit messages", self._fetch_messages))
            self._tasks.append(WatchedTask("fetch audit figures", self._fetch_figures))

    async def stop(self) -> None:
        """Give the audits some time to take the waiting events, then stop them."""
        if self._tasks:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.stop_timeout_ms / 1000):
                    await self._hand_over()
        await asyncio.gather(*(task.stop() for task in self._tasks))
        self._tasks = []
        await asyncio.gather(*(desk.stop() for desk in self.desks))

    def tell_reports(self, reports: Iterable[tuple[Any, ...]]) -> None:
        """Pass the engine's reports of sessions as access events; other reports are ignored."""
        if self.desks:
            now_ms = time.time_ns() // 1_000_000
            named = (
                (kind, dict(zip(_ACCESS[kind], fields, strict=False))) for kind, *fields in reports if kind in _ACCESS
            )
            self._put([AccessEvent(kind, now_ms, **fields) for kind, fields in named])

    def tell(self, *events: Event) -> None:
        """Pass events of the server itself."""
        self._put(events)

    def tell_revoked(self, identity: str, name: str, tenant: str, authority: str) -> None:
        """An operator revoked an identity, or a token of this name."""
        now_ms = time.time_ns() // 1_000_000
        self.tell(AccessEvent("revoked", now_ms, identity=identity, reason=name, tenant=tenant, authority=authority))

    def _put(self, events: Sequence[Event]) -> None:
        for desk in self.desks:
            desk.put_others(events)

    async def _hand_over(self) -> None:
        """Pass on messages until every audit has taken all of them."""
        while True:
            await asyncio.gather(*(desk.emptied.wait() for desk in self.desks))
            # the task that fetches may have had the last of them
            if not self._fetch() and all(desk.emptied.is_set() for desk in self.desks):
                return

    async def _fetch_messages(self) -> None:
        while True:
            if not self._fetch():
                await asyncio.sleep(self._config.batch_ms / 1000)
            await asyncio.sleep(0)

    def _fetch(self) -> bool:
        """Fetch one batch of messages. Returns whether more may wait."""
        config = self._config
        count, size = config.batch_events_max, config.queue_bytes_max
        is_holding = config.overflow == "block"
        holders = [desk for desk in self.desks if is_holding and desk.may_hold]
        rooms = [desk.room for desk in self.desks if not is_holding or desk in holders]
        choose = min if is_holding else max  # the slowest says when, or the quickest
        if rooms:  # else each that would hold has been late for too long, and publishers wait no longer
            count = min(count, choose(events for events, _ in rooms))
            size = min(size, choose(room for _, room in rooms))
        if count <= 0 or size <= 0:
            return False
        rows, lost = self._take_heard(count, size, config.with_content)
        for desk in self.desks:
            # one that publishers wait for had room for a batch: what its last message takes more than that is kept
            if rows:
                desk.put_messages((MessageEvent(*row) for row in rows), may_lose=desk not in holders)
            if lost > self._lost_before:
                desk.lose("message", lost - self._lost_before)
        self._lost_before = max(lost, self._lost_before)
        return bool(rows)

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
