"""Pure parts of the feed: packed members, probes, bounded labels, and a watcher's notifications."""

from __future__ import annotations

import asyncio

from godwit.dispatch.feed.backoff import GIVE_UP_MS, LAST_MS, is_given_up, next_probe_ms
from godwit.dispatch.feed.metrics import TENANTS_MAX, DispatchMetrics
from godwit.dispatch.feed.watcher import EventWatcher, Fresh
from godwit.dispatch.stores.sqlite.changes import Member, pack_members, unpack_members


def test_members_are_packed_and_unpacked() -> None:
    members = [Member(5, 9, 2, True), Member(6, 1, 0, False), Member(2**40, 0, 7, False)]
    assert unpack_members(pack_members(members)) == members


def test_probes_come_later_and_later_and_end() -> None:
    waits = [next_probe_ms(0, failures, 1.0) for failures in (1, 2, 3, 30)]
    assert waits == [5_000, 10_000, 20_000, LAST_MS] and next_probe_ms(0, 1, 0.0, 60_000) == 60_000
    assert not is_given_up(GIVE_UP_MS - 1, 0) and is_given_up(GIVE_UP_MS, 0)


def test_labels_of_metrics_are_bounded() -> None:
    metrics = DispatchMetrics()
    metrics.take(Fresh(1, [(f't"{n}', 1, "inbox", "delivery.sent", 2) for n in range(TENANTS_MAX + 50)]))
    lines = [line for line in metrics.show({}).splitlines() if not line.startswith("#")]
    assert len(lines) == TENANTS_MAX + 1 and any('tenant="other"' in line and line.endswith(" 100") for line in lines)


async def test_a_watcher_tells_each_event_once_and_in_order() -> None:
    rows = [("t", number, "inbox", "delivery.sent", 1) for number in range(5)]
    notified: list[int] = []
    done = asyncio.Event()

    async def read(after: int) -> Fresh:
        return Fresh(0, []) if after < 0 else Fresh(min(after + 2, 5), rows[after : after + 2])

    def take(fresh: Fresh) -> None:
        notified.extend(row[1] for row in fresh.rows)
        if len(notified) == 5:
            done.set()

    watcher = EventWatcher(read, 60.0)
    watcher.tell(take)
    async with asyncio.timeout(60):
        running = asyncio.create_task(watcher.run())
        await done.wait()
        running.cancel()
    assert notified == [0, 1, 2, 3, 4]
