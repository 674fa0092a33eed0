"""Batches are passed to every audit in order; a slow audit loses the oldest events and receives their number, or messages wait."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from godwit.audit import AccessEvent, Audit, CacheEvent, Event, LostEvent, MessageEvent, NodeFace, StatisticsEvent
from godwit.audit.runner import AuditRunner, load_audits
from godwit.config.audit import AuditConfig
from godwit.errors import AuthorizerFailed, ConfigInvalid


class Kept(Audit):
    """Keeps the events that it receives; closed, it accepts no more. Its `take` runs on a thread of its own."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.batches: list[int] = []
        self.open = threading.Event()
        self.open.set()
        self.arrived = threading.Condition()
        self.fails = False

    async def take(self, events: Sequence[Event]) -> None:
        await asyncio.to_thread(self.open.wait, 60)
        self.batches.append(len(events))
        with self.arrived:
            self.events += events
            self.arrived.notify_all()
        if self.fails:
            raise RuntimeError("no disk")

    async def until(self, count: int) -> None:
        def wait() -> bool:
            with self.arrived:
                return self.arrived.wait_for(lambda: len(self.events) >= count, 60)

        assert await asyncio.to_thread(wait)


class Source:
    """The engine's side: rows that wait, and figures."""

    def __init__(self, count: int) -> None:
        self.rows = [(f"/a/{n}", f"1.{n}", n, "json", "ann", 3, None) for n in range(count)]
        self.lost = 0
        self.figures: dict[str, Any] = {"messages_evicted_by_age": 5, "messages": 7}

    def take(self, count: int, bytes_max: int, with_content: bool) -> tuple[list[tuple[Any, ...]], int]:
        taken, self.rows = self.rows[:count], self.rows[count:]
        return taken, self.lost


def run(source: Source, *audits: Audit, **config: Any) -> AuditRunner:
    given = AuditConfig(**{"batch_ms": 10, "statistics_ms": 3_600_000, **config})
    face = NodeFace(lambda drafts: None)
    return AuditRunner(audits, given, take_heard=source.take, read_stats=lambda: source.figures, node=face)


async def test_messages_come_in_batches_in_order_to_each() -> None:
    audits = Kept(), Kept()
    runner = run(Source(2_500), *audits, batch_events_max=1_000)
    await runner.start()
    for audit in audits:
        await audit.until(2_500)
        assert [event.time_ms for event in audit.events if isinstance(event, MessageEvent)] == list(range(2_500))
        assert max(audit.batches) <= 1_000
    await runner.stop()


async def test_a_slow_audit_loses_the_oldest_and_is_told_how_many_and_the_other_loses_none() -> None:
    slow, quick = Kept(), Kept()
    slow.open.clear()
    runner = run(Source(1_000), slow, quick, queue_events_max=100, batch_events_max=50)
    await runner.start()
    await quick.until(1_000)
    slow.open.set()
    await slow.until(101)
    await runner.stop()
    lost = sum(event.count for event in slow.events if isinstance(event, LostEvent))
    seen = [event.time_ms for event in slow.events if isinstance(event, MessageEvent)]
    assert lost + len(seen) == 1_000 and seen[-100:] == list(range(900, 1_000)) and seen == sorted(seen)
    assert not any(isinstance(event, LostEvent) for event in quick.events)
    assert runner.counts["lost"] == lost > 0


async def test_with_hold_messages_stay_in_the_engine_until_there_is_room() -> None:
    slow, source = Kept(), Source(1_000)
    slow.open.clear()
    runner = run(source, slow, queue_events_max=100, batch_events_max=50, overflow="block")
    await runner.start()
    runner.tell_reports([("connected", 1, "ann", "", "127.0.0.1:1", "json", "acme", "basic")])
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert len(source.rows) >= 1_000 - 151
    slow.open.set()
    await slow.until(1_001)
    await runner.stop()
    assert [e.time_ms for e in slow.events if isinstance(e, MessageEvent)] == list(range(1_000)) and runner.counts[
        "lost"
    ] == 0


async def test_what_the_engine_lost_is_told_too() -> None:
    audit, source = Kept(), Source(1)
    source.lost = 7
    runner = run(source, audit)
    await runner.start()
    await audit.until(2)
    await runner.stop()
    assert LostEvent("message", 7) in audit.events


async def test_an_audit_that_raises_gets_the_next_batch() -> None:
    audit = Kept()
    audit.fails = True
    runner = run(Source(30), audit, batch_events_max=10)
    await runner.start()
    await audit.until(30)
    await runner.stop()
    assert runner.counts["failed"] >= 3


async def test_reports_become_access_events_and_figures_come_by_the_clock() -> None:
    audit = Kept()
    runner = run(Source(0), audit, statistics_ms=10)
    await runner.start()
    reports = [
        ("connected", 7, "ann", "c/1", "127.0.0.1:1", "json", "acme", "basic"),
        ("subscribed", 7, "/a", "live", None),
        ("unsubscribed", 7, "/a"),
        ("disconnected", 7, 1000, 5),
        ("refused", "127.0.0.1:2", 4158, "no", 9, "test/2"),
        ("authorize", 8, "a secret token", None, "127.0.0.1:1", False),
    ]
    runner.tell_reports(reports)
    await audit.until(7)
    await runner.stop()
    access = [event for event in audit.events if isinstance(event, AccessEvent)]
    assert [event.what for event in access] == ["connected", "subscribed", "unsubscribed", "disconnected", "refused"]
    assert (access[4].connection, access[4].client) == (9, "test/2")
    assert (access[0].identity, access[1].selector, access[3].code, access[4].reason) == ("ann", "/a", 1000, "no")
    assert "secret" not in str(audit.events)
    statistics = [event for event in audit.events if isinstance(event, StatisticsEvent)]
    caches = [event for event in audit.events if isinstance(event, CacheEvent)]
    assert statistics[0].figures["messages"] == 7
    assert [cache.gone["messages_evicted_by_age"] for cache in caches] == [5], "only changes are reported"


class Broken(Kept):
    async def start(self) -> None:
        raise OSError("no disk")


async def test_an_audit_that_does_not_start_keeps_the_node_from_starting() -> None:
    with pytest.raises(AuthorizerFailed, match="no disk"):
        await run(Source(0), Broken()).start()


def test_what_is_no_audit_is_refused() -> None:
    for name, why in (
        ("json:loads", "cannot be loaded"),
        ("no_such", "not an entry point"),
        ("no.such:X", "ModuleNotFound"),
    ):
        with pytest.raises(ConfigInvalid, match=why):
            load_audits(AuditConfig(plugins=(name,)))
