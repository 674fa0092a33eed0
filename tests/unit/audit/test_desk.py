"""Events that wait for a blocked audit stay within their limits, measured as memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from godwit.audit import AccessEvent, Audit, CacheEvent, Event, MessageEvent, StatisticsEvent
from godwit.audit.desk import EVENT_BYTES, AuditDesk
from godwit.config.audit import AuditConfig

BYTES_MAX = 1_000_000
PROTOCOLS = ("json", "binary")
FEW, LONG = 20, "ü" * 1_000


class Silent(Audit):
    async def take(self, events: Sequence[Event]) -> None:
        raise AssertionError("nothing is served here")


def make_desk(**config: int) -> AuditDesk:
    return AuditDesk(Silent(), "silent", AuditConfig(queue_bytes_max=BYTES_MAX, **config))


def make_message(number: int, text: str, content: bytes | None) -> MessageEvent:
    return MessageEvent(
        f"/a/{number}{text}", f"{number}.{number}", 10**12 + number, "json", f"{number}{text}", 1, content, f"t{number}"
    )


def make_figures(number: int) -> dict[str, int]:
    return {f"figure-{number}-{name}": 10**12 + name for name in range(150)}


def make_statistics(number: int) -> dict[str, Any]:
    """The shape of `Engine.stats`: few totals, and a dict for each shard, which has one for each protocol."""
    shards = [{"index": at, "protocols": {name: make_figures(number + at) for name in PROTOCOLS}} for at in range(4)]
    return {"subjects": 10**12 + number, "shards": shards}


KINDS: dict[str, Callable[[int], Event]] = {
    "small messages": lambda n: make_message(n, "", None),
    "messages with content": lambda n: make_message(n, "", bytes(3_000 + n % 7)),
    "messages with long names": lambda n: make_message(n, LONG, None),
    "arrivals": lambda n: AccessEvent("connected", 10**12 + n, n + 10**6, f"ann{n}", f"client{n}", f"127.0.0.1:{n}"),
    "refusals with reasons": lambda n: AccessEvent("refused", 10**12 + n, reason=f"{n}{LONG}"),
    "figures": lambda n: StatisticsEvent(10**12 + n, make_figures(n)),
    "figures of shards": lambda n: StatisticsEvent(10**12 + n, make_statistics(n)),
    "what caches let go": lambda n: CacheEvent(10**12 + n, make_figures(n), make_figures(n + 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_takes_no_more_memory_than_the_setting_says(kind: str) -> None:
    desk, make = make_desk(queue_events_max=10_000_000), KINDS[kind]
    tracemalloc.start()
    try:
        put_all(desk, (make(number) for number in range(FEW)))
        while not desk.counts["lost"]:
            put_all(desk, (make(number) for number in range(100)))
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert BYTES_MAX / 8 < held <= BYTES_MAX * 1.05


def put_all(desk: AuditDesk, events: Iterator[Event]) -> None:
    for event in events:
        if isinstance(event, MessageEvent):
            desk.put_messages([event])
        else:
            desk.put_others([event])


def test_both_bounds_are_of_each_queue_and_neither_pushes_the_others_events_out() -> None:
    desk = make_desk(queue_events_max=100)
    desk.put_messages(make_message(number, "", None) for number in range(100))
    desk.put_others(AccessEvent("connected", number) for number in range(250))
    desk.put_others(AccessEvent("refused", number, reason=LONG * 300) for number in range(3))
    assert desk.behind == 100 + 1 and desk.counts["lost"] == 250 + 2, "the last of the long ones stays, alone"


def test_an_event_that_was_changed_while_it_waited_leaves_with_the_bytes_it_came_with() -> None:
    desk = make_desk(queue_events_max=3)
    kept = [make_statistics(number) for number in range(3)]
    desk.put_others(StatisticsEvent(number, figures) for number, figures in enumerate(kept))
    assert desk.behind == 3 and desk.other_bytes > 3 * 200_000
    for figures in kept:
        figures.clear()
    desk.put_others(AccessEvent("connected", number) for number in range(3))
    assert desk.behind == 3 and desk.other_bytes == 3 * EVENT_BYTES
