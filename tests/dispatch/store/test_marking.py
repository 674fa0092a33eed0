"""Marks of many receivers in one unit: results and rows are those of one after the other, and a unit is bounded."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from godwit.dispatch.model import IS_UNREAD, IS_UNSEEN, Flag
from godwit.dispatch.stores.sqlite import receivers, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.many.marks import ROWS_AT_ONCE, Call, Chosen, Marked, mark_many
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.vault import Vault

VAULT = Vault([bytes(32)])
NOW_MS, FAR_MS = 1_767_225_600_000, 10**13
ROWS = (
    "SELECT * FROM item ORDER BY rid, seq",
    "SELECT * FROM head ORDER BY rid",
    "SELECT * FROM delivery ORDER BY nid, rid",
    "SELECT * FROM delivery_count ORDER BY nid, state",
    "SELECT nid, rid, due_ms FROM route",
    "SELECT type, nid, sum(count) FROM event GROUP BY type, nid ORDER BY type, nid",
)
MARKS = {
    "read": (Flag.READ | Flag.SEEN, 0),
    "unread": (0, Flag.READ),
    "archived": (Flag.ARCHIVED, 0),
    "unarchived": (0, Flag.ARCHIVED),
    "delivered": (0, 0),
}


def fill(connection: sqlite3.Connection, names: Sequence[str], items: int) -> None:
    """Every receiver has an item of each notification; the last is withdrawn."""
    tenants.put_tenant(connection, "t")
    for name in names:
        receivers.put_receiver(connection, "t", name, b"{}", 1)
    connection.execute("UPDATE receiver SET epoch = 7")
    connection.execute("UPDATE head SET epoch = 7")
    for nid in range(1, items + 1):
        connection.execute(
            "INSERT INTO notification VALUES (?, 't', ?, x'', ?, x'', 0, 0, 'fanned', 0, 0, 0, ?, 1, x'', '')",
            (nid, f"n{nid}", b'{"title":"%d"}' % nid, FAR_MS),
        )
        flags = Flag.RECALLED if nid == items else 0
        connection.execute("INSERT INTO item SELECT rid, ?, ?, ?, 0, ? FROM receiver", (nid, nid, flags, nid))
        connection.execute("INSERT INTO delivery SELECT ?, rid, 'inbox', 0, 4, 0, 0, 0, '', '' FROM receiver", (nid,))
        connection.execute("INSERT INTO delivery_count VALUES (?, 'inbox', 4, ?)", (nid, len(names)))
        connection.execute("INSERT INTO route SELECT ?, rid, 0, 5, 9 FROM receiver", (nid,))
    connection.execute(
        "UPDATE head SET seq = ?1, items = ?1, unread = ?1 - 1, unseen = ?1 - 1", (items,)
    )  # the withdrawn one counts in neither


def make_call(chance: random.Random, items: int) -> Call:
    mark = chance.choice(list(MARKS))
    position = (chance.choice([7, 7, 7, 6]), chance.randrange(3 * items))
    chosen = chance.choice(
        [Chosen(up_to=position), Chosen(items=[position, (7, 2), (7, 2)]), Chosen(ids=["n2", "n3", "none", "n2"])]
    )
    if mark == "delivered" and chosen.ids:
        chosen = Chosen(items=[position])
    return Call("t", chance.choice(["a", "b", "c", "nobody"]), chosen, mark, *MARKS[mark], NOW_MS)


def mark_all(connection: sqlite3.Connection, calls: Sequence[Call]) -> list[object]:
    results: list[object] = []
    while len(results) < len(calls):
        results += mark_many(connection, calls[len(results) :])
    return results


def test_marks_together_come_to_what_they_come_to_one_by_one(tmp_path: Path) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        calls = [make_call(chance, 6) for _ in range(chance.randrange(1, 25))]
        with (
            closing(open_writer(tmp_path / f"many{seed}", VAULT)) as many,
            closing(open_writer(tmp_path / f"one{seed}", VAULT)) as one,
        ):
            for connection in (many, one):
                fill(connection, ["a", "b", "c"], 6)
            expected = [result for call in calls for result in mark_many(one, [call])]
            assert mark_all(many, calls) == expected, seed
            for query in ROWS:
                assert many.execute(query).fetchall() == one.execute(query).fetchall(), (seed, query)
            check_counts(many)


def check_counts(connection: sqlite3.Connection) -> None:
    for rid, seq, unread, unseen in connection.execute("SELECT rid, seq, unread, unseen FROM head").fetchall():
        rows = connection.execute("SELECT seq, flags FROM item WHERE rid = ?", (rid,)).fetchall()
        assert max(at for at, _ in rows) == seq
        assert unread == sum(IS_UNREAD[flags] for _, flags in rows)
        assert unseen == sum(IS_UNSEEN[flags] for _, flags in rows)


def test_a_mark_changes_items_deliveries_and_the_time_of_the_next_step(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "db", VAULT)) as connection:
        fill(connection, ["a", "b"], 4)
        call = Call("t", "a", Chosen(up_to=(7, 2)), "read", *MARKS["read"], NOW_MS)
        (marked,) = mark_many(connection, [call])
        assert isinstance(marked, Marked) and marked.head == (7, 6, 1, 1)
        assert [(item.seq, item.first, item.notification, item.content) for item in marked.items] == [
            (5, 1, "n1", b'{"title":"1"}'),
            (6, 2, "n2", b'{"title":"2"}'),
        ]
        delivered = "SELECT nid, rid FROM delivery WHERE state = 5"
        assert connection.execute(delivered).fetchall() == [(1, 1), (2, 1)]
        assert connection.execute("SELECT nid, rid FROM route WHERE due_ms = 0").fetchall() == [(1, 1), (2, 1)]
        kinds = connection.execute("SELECT type, nid FROM event ORDER BY type, nid").fetchall()
        assert kinds == [("delivery.delivered", 1), ("delivery.delivered", 2), ("item.read", 1), ("item.read", 2)]


def test_a_mark_that_fails_stops_no_other(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "db", VAULT)) as connection:
        fill(connection, ["a", "b"], 3)
        connection.execute("UPDATE notification SET options = x'7b' WHERE nid = 2")
        calls = [
            Call("t", name, Chosen(items=[(7, seq)]), "read", *MARKS["read"], NOW_MS)
            for name, seq in (("a", 2), ("b", 1))
        ]
        failed, marked = mark_many(connection, calls)
        assert isinstance(failed, Exception) and isinstance(marked, Marked) and len(marked.items) == 1
        check_counts(connection)


async def test_a_notification_is_accepted_after_one_bounded_unit_of_marks(tmp_path: Path) -> None:
    names, items = [f"r{number}" for number in range(12)], 100
    store = SqliteStore(tmp_path)
    try:
        await store.writer.run(lambda connection: fill(connection, names, items))
        is_open = threading.Event()
        blocked = asyncio.create_task(store.writer.run(lambda connection: is_open.wait()))
        calls = [Call("t", name, Chosen(up_to=(7, items)), "read", *MARKS["read"], NOW_MS) for name in names]
        marks = asyncio.gather(*(store.mark(call) for call in calls))
        draft = Draft("t", "new", b"", b"{}", ("r0",), (), True, FAR_MS, None, 0)
        accepted = asyncio.create_task(store.accept(draft, NOW_MS))
        await asyncio.sleep(0)  # all of them wait for the writer
        is_open.set()
        await accepted
        done = await store.reader.run(
            lambda connection: connection.execute("SELECT count(*) FROM item WHERE flags & 2").fetchone()[0]
        )
        assert done <= 2 * ROWS_AT_ONCE, "perhaps the units that ran until this was read"
        marked = await marks
        assert [len(one.items) for one in marked if one is not None] == [items - 1] * len(names)
        await blocked
    finally:
        store.close()


def test_a_unit_of_confirmations_is_bounded(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(40)]
    with closing(open_writer(tmp_path / "db", VAULT)) as connection:
        fill(connection, names, 100)
        calls = [Call("t", name, Chosen(items=[(7, 100)]), "delivered", 0, 0, NOW_MS) for name in names]
        assert len(mark_many(connection, calls)) * 100 <= ROWS_AT_ONCE
