"""One audit: its bounded queues, its thread, and the calls of its `take`.

Owns the waiting events and their limits. Messages have a queue of their own, so that other events never displace a
message. Both queues are bounded in events and in bytes. Invariant: lost events are counted, and the next batch reports
the number.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from ..config.audit import AuditConfig
from ..errors import AuthorizerFailed
from ..extension import ExtensionHost
from ..logs import read_logger
from .audit import Audit, NodeFace
from .events import AccessEvent, CacheEvent, Event, LostEvent, MessageEvent, StatisticsEvent

EVENT_BYTES = 700
"""Memory of one event in addition to the bytes of its text and content: Python objects and slots in containers."""
FIGURES_BYTES = 200
"""Memory of one number in a statistics or cache event."""
_E = TypeVar("_E", bound=Event, covariant=True)


class _Waiting(NamedTuple, Generic[_E]):
    arrival: int
    size: int
    """The bytes counted when the event arrived; an extension may change what an event contains."""
    event: _E


class AuditDesk:
    """The queues of one audit. `put_…` never waits; `serve` passes batches to the audit until it is cancelled."""

    def __init__(self, audit: Audit, name: str, config: AuditConfig) -> None:
        self.audit, self.name, self.host = audit, name, ExtensionHost(f"audit {name}")
        self.counts: Counter[str] = Counter(taken=0, lost=0, failed=0)
        self.filled, self.emptied = asyncio.Event(), asyncio.Event()
        self.emptied.set()
        self.message_bytes = self.other_bytes = 0
        self._config = config
        self._messages: deque[_Waiting[MessageEvent]] = deque()
        self._others: deque[_Waiting[Event]] = deque()
        self._arrivals = 0
        self._lost: Counter[str] = Counter()
        self._late_since: float | None = None
        self._has_given_way = False

    @property
    def behind(self) -> int:
        """The number of waiting events."""
        return len(self._messages) + len(self._others)

    @property
    def room(self) -> tuple[int, int]:
        """How many messages, and how many of their bytes, fit into the queue."""
        size = self._config.queue_bytes_max - self.message_bytes
        # the engine counts the bytes of messages as it holds them, and each takes more here
        return min(self._config.queue_events_max - len(self._messages), -(-size // EVENT_BYTES)), size

    @property
    def may_hold(self) -> bool:
        """Whether publishers may wait for it: no longer, once a `take` has exceeded `block_ms_max`."""
        if self._late_since is None or time.monotonic() < self._late_since + self._config.block_ms_max / 1000:
            return True
        if not self._has_given_way:
            self._has_given_way = True
            read_logger().error(
                "audit_overflowed", audit=self.name, effect="messages are dropped for this audit until take() returns"
            )
        return False

    def put_messages(self, messages: Iterable[MessageEvent], *, may_lose: bool = True) -> None:
        """Queue messages; if the queue is full and the audit allows it, the oldest are dropped."""
        for message in messages:
            self._arrivals += 1
            size = _size(message)
            self._messages.append(_Waiting(self._arrivals, size, message))
            self.message_bytes += size
            while may_lose and len(self._messages) > 1 and min(self.room) < 0:
                self.message_bytes -= self._messages.popleft().size
                self.lose("message", 1)
        self._wake()

    def put_others(self, events: Iterable[Event]) -> None:
        """Queue events that are not messages, in the same way."""
        for event in events:
            self._arrivals += 1
            size = _size(event)
            self._others.append(_Waiting(self._arrivals, size, event))
            self.other_bytes += size
            while len(self._others) > 1 and self._is_over_with_others():
                self.other_bytes -= self._others.popleft().size
                self.lose("access", 1)
        self._wake()

    def _is_over_with_others(self) -> bool:
        config = self._config
        return len(self._others) > config.queue_events_max or self.other_bytes > config.queue_bytes_max

    def lose(self, kind: str, count: int) -> None:
        """Counts events that the audit never receives; the next batch reports their number."""
        self._lost[kind] += count
        self.counts["lost"] += count
        self._wake()

    def describe(self) -> str:
        """The current problem as a sentence; empty if there is none."""
        late = "" if self._late_since is None else f"take has run longer than {self._config.take_timeout_ms} ms"
        return late or self.host.describe()

    async def start(self, node: NodeFace) -> None:
        """Start the audit and give it access to the node. Raises AuthorizerFailed if it raises, or takes too long."""
        await self.host.call_within(self._config.start_timeout_ms, "audit.start_timeout_ms", self._start, node)

    async def stop(self) -> None:
        """Stop the audit, or abandon it; the node stops in any case."""
        try:
            await self.host.call_within(self._config.stop_timeout_ms, "audit.stop_timeout_ms", self._stop)
        except AuthorizerFailed as error:
            read_logger().warning("audit_failed", audit=self.name, reason=f"stop: {error}")
        await self.host.stop()

    # what the audit's attributes run is its own code, too: they are read and set on its thread
    async def _start(self, node: NodeFace) -> None:
        self.audit.node = node
        await self.audit.start()

    async def _stop(self) -> None:
        await self.audit.stop()

    async def _hand(self, batch: list[Event]) -> None:
        await self.audit.take(batch)

    async def serve(self) -> None:
        """Pass batches to the audit, one after the other."""
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
            messages, others = self._messages, self._others
            if messages and (not others or messages[0].arrival < others[0].arrival):
                message = messages.popleft()
                self.message_bytes -= message.size
                batch.append(message.event)
            else:
                other = others.popleft()
                self.other_bytes -= other.size
                batch.append(other.event)
        return batch

    async def _take(self, batch: list[Event]) -> None:
        """One `take`, which may fail. A late one counts as failed, and the next one still waits for it to end."""
        timer = asyncio.get_running_loop().call_later(self._config.take_timeout_ms / 1000, self._be_late, len(batch))
        try:
            await self.host.call(self._hand, batch)
            self.counts["taken"] += len(batch)
        except AuthorizerFailed as error:
            self.counts["failed"] += 1
            read_logger().warning("audit_failed", audit=self.name, reason=f"take: {error}", events=len(batch))
        finally:
            timer.cancel()
            if self._late_since is not None:
                read_logger().info("audit_recovered", audit=self.name)
            self._late_since, self._has_given_way = None, False

    def _be_late(self, events: int) -> None:
        self._late_since = time.monotonic()
        self.counts["failed"] += 1
        stack = self.host.read_stack() if self.host.is_blocked else ""
        why = f"take: did not return within {self._config.take_timeout_ms} ms (audit.take_timeout_ms)"
        read_logger().error("audit_failed", audit=self.name, reason=why, events=events, stack=stack)

    def _wake(self) -> None:
        self.filled.set()
        self.emptied.clear()


def _size(event: Event) -> int:
    """The estimated memory of an event, never too low: a character outside ASCII takes up to four bytes."""
    match event:
        case MessageEvent():
            text = (event.subject, event.position or "", event.kind, event.identity, event.tenant, event.authority)
            return EVENT_BYTES + _measure(text) + len(event.content or b"")
        case AccessEvent():
            text = (event.identity, event.client, event.address, event.selector, event.reason, event.tenant)
            return EVENT_BYTES + _measure((*text, event.authority))
        case StatisticsEvent():
            return EVENT_BYTES + FIGURES_BYTES * _count_figures(event.figures)
        case CacheEvent():
            return EVENT_BYTES + FIGURES_BYTES * (len(event.gone) + len(event.held))
        case LostEvent():
            return EVENT_BYTES


def _count_figures(figures: Any) -> int:
    """The number of members of nested dicts and lists: the engine's statistics have a dict for each shard."""
    if isinstance(figures, Mapping):
        return len(figures) + sum(map(_count_figures, figures.values()))
    return len(figures) + sum(map(_count_figures, figures)) if isinstance(figures, list | tuple) else 0


def _measure(texts: Iterable[str]) -> int:
    return sum(len(text) if text.isascii() else 4 * len(text) for text in texts)
