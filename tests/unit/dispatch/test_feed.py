"""Pure parts of the feed: packed members, probes, bounded labels, and a watcher's notifications."""

from __future__ import annotations

import array
import asyncio
import zlib
from typing import Any

from godwit.dispatch.channels.webhook.http import HttpPoster
from godwit.dispatch.feed.backoff import GIVE_UP_MS, LAST_MS, is_given_up, next_probe_ms
from godwit.dispatch.feed.hooks import TENANT_SENDS_MAX, EventHooks
from godwit.dispatch.feed.metrics import TENANTS_MAX, DispatchMetrics
from godwit.dispatch.feed.watcher import EventWatcher, Fresh
from godwit.dispatch.stores.sqlite.changes import Member, pack_members, unpack_members
from godwit.dispatch.stores.sqlite.feed.hooks import Hook


def test_members_are_packed_and_unpacked() -> None:
    few = [Member(5, 9, 2, True), Member(6, 1, 0, False), Member(2**40, 0, 7, False)]
    many = [Member(rid, rid % 3, rid % 2, rid % 5 == 0) for rid in range(400)]
    for members in ([], few, many[:30], many[:31], many):
        assert unpack_members(pack_members(members)) == members
    numbers = array.array("q", [5, 9, 5, 1, -8, 0])
    assert unpack_members(zlib.compress(numbers.tobytes(), 1, 9)) == few[:2]  # as earlier versions stored few


def test_members_take_little_space() -> None:
    assert len(pack_members([Member(1_000_000, 0, 0, False)])) <= 8
    assert len(pack_members([Member(1_000_000 + 7 * number, 0, 0, False) for number in range(500)])) <= 200


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


class OneHook:
    """A store with one event for one webhook, and what becomes of it."""

    def __init__(self) -> None:
        self.failed: asyncio.Queue[str] = asyncio.Queue()
        self._hook = Hook(1, "t", "h", "https://a.example/", "whsec_QUFB", "", 0, "", "", 0, "active", 0, 0, 0, "")

    async def list_hooks(self, now_ms: int) -> list[Hook]:
        return [self._hook] if self.failed.empty() else []

    async def read_parts(self, hook: Hook, limit: int) -> tuple[list[tuple[int, str, dict[str, Any]]], int]:
        return [(1, "evt_1", {"data": {}})], 1

    async def fail(self, hook: Hook, failures: int, since_ms: int, due_ms: int, reason: str) -> None:
        self.failed.put_nowait(reason)

    async def move(self, hook: Hook, cursor: int) -> Hook | None:
        raise AssertionError("nothing else happens")

    async def disable(self, hook: Hook, reason: str, now_ms: int) -> None:
        raise AssertionError("nothing else happens")

    async def bury(self, hook: Hook, eid: int, part: str, reason: str, now_ms: int) -> None:
        raise AssertionError("nothing else happens")


async def test_an_event_whose_post_raises_waits_for_its_probe() -> None:
    def sign_bytes(*found: object) -> bytes:
        raise LookupError

    store = OneHook()
    hooks = EventHooks(store, HttpPoster((), sends_max=1, timeout_ms=1_000), sign_bytes, 60.0)
    async with asyncio.timeout(60):
        running = asyncio.create_task(hooks.run())
        assert await store.failed.get() == "LookupError"
        running.cancel()
        await hooks.stop()


class ManyHooks(OneHook):
    """A store with many webhooks of one tenant, whose endpoints do not answer, and one of another."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[int] = []
        self.other_began = asyncio.Event()

    async def list_hooks(self, now_ms: int) -> list[Hook]:
        many = [self._hook._replace(wid=number) for number in range(2 * TENANT_SENDS_MAX)]
        return [*many, self._hook._replace(wid=1_000, tenant="other")]

    async def read_parts(self, hook: Hook, limit: int) -> tuple[list[tuple[int, str, dict[str, Any]]], int]:
        self.read.append(hook.wid)
        if hook.tenant == "other":
            self.other_began.set()
        await asyncio.Event().wait()
        raise AssertionError("it waits until it is cancelled")


async def test_slow_endpoints_of_one_tenant_leave_connections_to_others() -> None:
    store = ManyHooks()
    hooks = EventHooks(store, HttpPoster((), sends_max=1, timeout_ms=1_000), lambda *_: b"", 60.0)
    async with asyncio.timeout(60):
        running = asyncio.create_task(hooks.run())
        await store.other_began.wait()
        assert sorted(store.read) == [*range(TENANT_SENDS_MAX), 1_000]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await hooks.stop()
