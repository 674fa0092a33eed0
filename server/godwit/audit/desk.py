"""One audit: its bounded queues, its thread, and the calls of its `take`.

Owns what waits for the audit and what happens at the bounds: messages have a queue of their own, bounded in events and bytes, so
that arrivals and figures never push a message out. Invariant: what was lost is counted and reported with the next batch.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable

from ..config.audit import AuditConfig
from ..errors import AuthorizerFailed
from ..extension import ExtensionHost
from ..logs import read_logger
from .audit import Audit
from .events import Event, LostEvent, MessageEvent

EVENT_BYTES = 400
"""What an event takes in memory beside its content and subject, about."""


class AuditDesk:
    """One for an audit. `put_…` never waits; `serve` brings batches to the audit until it is cancelled."""

    def __init__(self, audit: Audit, name: str, config: AuditConfig) -> None:
        self.audit, self.name, self.host = audit, name, ExtensionHost(f"audit {name}")
        self.counts: Counter[str] = Counter(taken=0, lost=0, failed=0)
        self.filled, self.emptied = asyncio.Event(), asyncio.Event()
        self.emptied.set()
        self.message_bytes = 0
        self._config = config
        self._messages: deque[tuple[int, MessageEvent]] = deque()
        self._others: deque[tuple[int, Event]] = deque()
        self._arrivals = 0
        self._lost: Counter[str] = Counter()
        self._late_since: float | None = None
        self._has_given_way = False

    @property
    def behind(self) -> int:
        """Events that wait."""
        return len(self._messages) + len(self._others)

    @property
    def room(self) -> tuple[int, int]:
        """Messages and their bytes for which there is room."""
        events, size = self._config.queue_events_max, self._config.queue_bytes_max
        return events - len(self._messages), size - self.message_bytes

    @property
    def may_hold(self) -> bool:
        """Whether publishers may still wait for it: not once a `take` has been late for `block_ms_max`."""
        if self._late_since is None or time.monotonic() < self._late_since + self._config.block_ms_max / 1000:
            return True
        if not self._has_given_way:
            self._has_given_way = True
            read_logger().error("audit_gave_way", audit=self.name, effect="messages are lost to it until its take ends")
        return False

    def put_messages(self, messages: Iterable[MessageEvent]) -> None:
        """Takes them all; the oldest go where there is no room."""
        for message in messages:
            self._arrivals += 1
            self._messages.append((self._arrivals, message))
            self.message_bytes += _size(message)
            while len(self._messages) > 1 and min(self.room) < 0:
                _, oldest = self._messages.popleft()
                self.message_bytes -= _size(oldest)
                self.lose("message", 1)
        self._wake()

    def put_others(self, events: Iterable[Event]) -> None:
        """The same for what is no message."""
        for event in events:
            if len(self._others) >= self._config.queue_events_max:
                self._others.popleft()
                self.lose("access", 1)
            self._arrivals += 1
            self._others.append((self._arrivals, event))
        self._wake()

    def lose(self, kind: str, count: int) -> None:
        """So many never come to it; it is told with the next batch."""
        self._lost[kind] += count
        self.counts["lost"] += count
        self._wake()

    def describe(self) -> str:
        """What is wrong with it now; empty: nothing."""
        late = "" if self._late_since is None else f"take has run longer than {self._config.take_timeout_ms} ms"
        return late or self.host.describe()

    async def start(self) -> None:
        """Raises AuthorizerFailed where it raises, or takes too long."""
        await self.host.call_within(self._config.start_timeout_ms, "audit.start_timeout_ms", self.audit.start)

    async def stop(self) -> None:
        """Stops it, or leaves it behind; the node stops all the same."""
        try:
            await self.host.call_within(self._config.stop_timeout_ms, "audit.stop_timeout_ms", self.audit.stop)
        except AuthorizerFailed as error:
            read_logger().warning("audit_failed", audit=self.name, why=f"stop: {error}")
        await self.host.stop()

    async def serve(self) -> None:
        """Brings batch after batch, each once the one before is done."""
        while True:
            await self.filled.wait()
            batch = self._next_batch()
            if batch:
                await self._take(batch)
            if not self.behind and not self._lost:
                self.filled.clear()
                self.emptied.set()

    def _next_batch(self) -> list[Event]:
        batch: list[Event] = [LostEvent(kind, count) for kind, count in self._lost.items()]
        self._lost.clear()
        while self.behind and len(batch) < self._config.batch_events_max:
            is_message = bool(self._messages) and (not self._others or self._messages[0][0] < self._others[0][0])
            if is_message:
                message = self._messages.popleft()[1]
                self.message_bytes -= _size(message)
                batch.append(message)
            else:
                batch.append(self._others.popleft()[1])
        return batch

    async def _take(self, batch: list[Event]) -> None:
        """One `take`, whatever becomes of it. Late, it has failed, and the next waits for its end all the same."""
        timer = asyncio.get_running_loop().call_later(self._config.take_timeout_ms / 1000, self._be_late, len(batch))
        try:
            await self.host.call(self.audit.take, batch)
            self.counts["taken"] += len(batch)
        except AuthorizerFailed as error:
            self.counts["failed"] += 1
            read_logger().warning("audit_failed", audit=self.name, why=f"take: {error}", events=len(batch))
        finally:
            timer.cancel()
            if self._late_since is not None:
                read_logger().info("audit_recovered", audit=self.name)
            self._late_since, self._has_given_way = None, False

    def _be_late(self, events: int) -> None:
        self._late_since = time.monotonic()
        self.counts["failed"] += 1
        stack = self.host.read_stack() if self.host.is_blocked else ""
        why = f"take: no end after {self._config.take_timeout_ms} ms (audit.take_timeout_ms)"
        read_logger().error("audit_failed", audit=self.name, why=why, events=events, stack=stack)

    def _wake(self) -> None:
        self.filled.set()
        self.emptied.clear()


def _size(message: MessageEvent) -> int:
    return EVENT_BYTES + len(message.subject) + len(message.content or b"")
