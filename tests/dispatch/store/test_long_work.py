"""Work on many rows goes page by page, and nobody waits for all of it: cancel, recall, sweeps, and a store that stands still."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from godwit.dispatch.fanout.dispatcher import Clocks, Dispatcher, Pace
from godwit.dispatch.fanout.inbox_worker import InboxWorker
from godwit.dispatch.fanout.run import take_pages
from godwit.dispatch.model import Options, Outcome, Shipment, State
from godwit.dispatch.stores.sqlite import ending, groups, inbox, receivers, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.feed.events import unpack_members
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.wakeups import WakeUps

NEVER_MS = 10**13
PAGE = 10


class Sends:
    """Takes everything."""

    def __init__(self) -> None:
        self.count = 0

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        self.count += len(batch)
        return [Outcome(one.key, one.attempt, State.SENT) for one in batch]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path)
    yield opened
    opened.close()


async def fill(store: SqliteStore, tenant: str, count: int) -> None:
    """Receivers with a webhook each."""

    def put(connection: sqlite3.Connection) -> None:
        tenants.put_tenant(connection, tenant)
        for number in range(count):
            receivers.put_receiver(connection, tenant, f"r{number}", b"{}", 1)
            receivers.put_address(connection, tenant, f"r{number}", "a", "webhook", "https://a.example/")

    await store.writer.run(put)


async def accept(store: SqliteStore, tenant: str, count: int, channel: str, options: Options | None = None) -> None:
    names = tuple(f"r{number}" for number in range(count))
    draft = Draft(tenant, "n", b"f", b'{"title":"x"}', names, (), True, NEVER_MS, options=options or Options())
    assert not (await store.accept(draft, 1)).unknown
    await store.route((channel,), 1, 10)


async def count_rows(store: SqliteStore, tenant: str) -> int:
    query = "SELECT count(*) FROM delivery JOIN notification USING (nid) WHERE tenant = ?"
    rows: int = await store.reader.run(lambda connection: connection.execute(query, (tenant,)).fetchone()[0])
    return rows


async def test_a_cancel_is_done_in_pages_and_each_has_an_event_of_its_own(store: SqliteStore) -> None:
    run = store.writer.run
    await fill(store, "t", 35)
    await accept(store, "t", 35, "webhook")
    sender = Sends()
    dispatcher = Dispatcher("webhook", store, sender, Clocks(lambda: 1, lambda: 1), pace=Pace(page_receivers=100))
    assert await dispatcher.work_page("t") == "t"
    await run(lambda connection: connection.execute("UPDATE delivery SET state = 4 WHERE rid < 3"))
    found = await run(lambda connection: ending.cancel(connection, "t", "n"))
    assert found is not None and not found.is_settled
    nid = found.nid
    await dispatcher.tick()
    assert sender.count == 0 and not dispatcher.tasks, "nothing begins after the first unit, however many pages follow"
    counts, after = [], 0
    while True:
        count, after = await run(partial(ending.cancel_some, nid=nid, after=after, limit=PAGE, now_ms=1))
        if not after:
            break
        counts.append(count)
    assert counts == [8, 10, 10, 5]
    query = "SELECT count, members FROM event WHERE type = 'delivery.cancelled' ORDER BY eid"
    events = await store.reader.run(lambda connection: connection.execute(query).fetchall())
    assert [row[0] for row in events] == [len(unpack_members(row[1])) for row in events] == counts
    query = "SELECT state, count(*) FROM delivery GROUP BY state"
    assert await store.reader.run(lambda connection: connection.execute(query).fetchall()) == [(4, 2), (9, 33)]


async def test_each_page_of_a_recall_reads_on_where_the_last_one_ended(store: SqliteStore) -> None:
    await fill(store, "t", 25)
    await accept(store, "t", 25, "inbox")
    await store.append_pages("t", 1, 1_000, 100)
    after, found, reached = 0, [], []
    while True:
        items, after = await store.writer.run(partial(inbox.recall_some, nid=1, after=after, limit=PAGE))
        if not after:
            break
        found += [item.receiver for item in items]
        reached.append(after)
    assert len(found) == len(set(found)) == 25 and reached == [10, 20, 25]


async def test_a_group_is_deleted_in_pages_and_itself_last(store: SqliteStore) -> None:
    await fill(store, "t", 25)

    def put(connection: sqlite3.Connection) -> None:
        groups.put_group(connection, "t", "g")
        for version in (0, 1):
            groups.subscribe(connection, "t", "g", [f"r{number}" for number in range(25)], version)

    await store.writer.run(put)
    left = []
    for _ in range(6):
        left.append(await store.writer.run(lambda connection: groups.delete_some(connection, "t", "g", PAGE)))
        rows = await store.reader.run(lambda connection: connection.execute("SELECT * FROM subscription").fetchall())
        assert len(rows) == max(0, 50 - PAGE * len(left))
    assert left == [True] * 5 + [False]
    assert await store.writer.run(lambda connection: groups.delete_some(connection, "t", "g", PAGE)) is None


@pytest.mark.parametrize("channel", ["inbox", "webhook"])
async def test_a_tenant_whose_wake_up_was_lost_is_found_while_another_has_work(
    store: SqliteStore, channel: str
) -> None:
    hints = WakeUps()
    for tenant, count in (("busy", 200), ("lost", 1)):
        await fill(store, tenant, count)
        await accept(store, tenant, count, channel)
    hints.add("busy")
    worker = InboxWorker(store, lambda items: None, page_receivers=1, lease_ms=1_000, now_ms=lambda: 1)
    dispatcher = Dispatcher(channel, store, Sends(), Clocks(lambda: 1, lambda: 1), pace=Pace(page_receivers=1))
    loop = worker.run(hints, 0.0) if channel == "inbox" else take_pages(dispatcher, hints, 0.0)
    working = asyncio.create_task(loop)  # nothing is sent: the busy tenant has no more room
    query = "SELECT tenant, cursor, is_done FROM job ORDER BY tenant"
    try:
        async with asyncio.timeout(60):
            while True:
                busy, lost = await store.reader.run(lambda connection: connection.execute(query).fetchall())
                if lost[2]:
                    break
                assert not busy[2], "it waited for all pages of the other"
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_what_did_not_begin_before_its_lease_ended_leaves_no_doubt(store: SqliteStore) -> None:
    """The store stands still for longer than a lease while sends begin, and the sweep looks for due ones meanwhile."""
    now_ms = 1_000
    await fill(store, "t", 1)
    await accept(store, "t", 1, "webhook", Options(holds_doubt=True))
    sender, pace = Sends(), Pace(lease_ms=1_000)
    dispatcher = Dispatcher("webhook", store, sender, Clocks(lambda: now_ms, lambda: now_ms), pace=pace)
    await dispatcher.work_page("t")
    advance = store.advance

    async def stand_still(*given: object) -> list[Shipment]:
        nonlocal now_ms
        begun = await advance(*given)  # type: ignore[arg-type]  # as they came
        now_ms += 5_000
        assert await dispatcher.take_due() == 0, "what is about to start is this worker's"
        return begun

    store.advance = stand_still  # type: ignore[method-assign]  # the store itself cannot be made to wait
    await dispatcher.tick()
    store.advance = advance  # type: ignore[method-assign]  # as before
    while dispatcher.tasks:
        await asyncio.wait(dispatcher.tasks)
    assert sender.count == 0
    await dispatcher.tick()
    assert await dispatcher.take_due() == 1
    await dispatcher.tick()
    await asyncio.wait(dispatcher.tasks)
    await dispatcher.tick()
    query = "SELECT state, attempt, doubt FROM delivery"
    rows = await store.reader.run(lambda connection: connection.execute(query).fetchall())
    assert (sender.count, rows) == (1, [(int(State.SENT), 1, 0)])
