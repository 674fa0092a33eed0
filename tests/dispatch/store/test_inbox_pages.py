"""Pages of the inbox channel: small jobs share a commit, a large one ends at the limit, and every item is stored exactly once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from godwit.dispatch.model import Priority, State
from godwit.dispatch.stores.sqlite import receivers, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.retention import SURPLUS_MAX
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.vault import Vault

VAULT = Vault([bytes(32)])
NOW_MS = 1_767_225_600_000


async def test_small_jobs_share_a_commit_and_a_large_one_is_cut(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(70)]
    store = SqliteStore(tmp_path)
    try:
        await _add_receivers(store, names)
        drafts = [Draft("t", f"one-{name}", b"f", b"{}", (name,), (), True, 10**13) for name in names]
        drafts.append(Draft("t", "all", b"f", b"{}", tuple(names), (), False, 10**13))
        await _accept_and_route(store, drafts)
        pages = []
        before = store.writer.commits
        while (found := await store.append_pages("t", NOW_MS, 1_000, 60))[0]:
            pages.append((found[0], len(found[1])))
        assert store.writer.commits == before + len(pages) + 1, "one commit each, the last found nothing"
        assert pages[0] == (60, 60) and sum(items for _, items in pages) == 140
        assert max(items for _, items in pages) <= 60
        counts = await store.reader.run(
            lambda connection: connection.execute(
                "SELECT rid, count(*), count(DISTINCT nid) FROM item GROUP BY rid"
            ).fetchall()
        )
        assert {row[1:] for row in counts} == {(2, 2)} and len(counts) == 70
    finally:
        store.close()


async def test_a_job_that_fails_stops_no_other_and_is_tried_when_its_lease_ends(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    store = SqliteStore(tmp_path)

    def spoil(connection: sqlite3.Connection, targets: bytes) -> bytes:
        kept = connection.execute("SELECT targets FROM notification WHERE id = 'one-b'").fetchone()[0]
        connection.execute("UPDATE notification SET targets = ? WHERE id = 'one-b'", (targets,))
        return bytes(kept)

    try:
        await _add_receivers(store, names)
        drafts = [Draft("t", f"one-{name}", b"f", b"{}", (name,), (), True, 10**13) for name in names]
        await _accept_and_route(store, drafts)
        good = await store.writer.run(partial(spoil, targets=b"x"))
        count, items = await store.append_pages("t", NOW_MS, 1_000, 60)
        assert count == 3 and [item.receiver for item in items] == ["a", "c"]
        await store.writer.run(partial(spoil, targets=good))
        assert await store.append_pages("t", NOW_MS, 1_000, 60) == (0, [])
        _, items = await store.append_pages("t", NOW_MS + 1_000, 1_000, 60)
        assert [item.receiver for item in items] == ["b"]
    finally:
        store.close()


async def test_a_lowered_limit_empties_an_inbox_by_a_few_items_at_a_time(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, inbox_items_max=30)
    try:
        await _add_receivers(store, ("a",))
        drafts = [Draft("t", f"n{number}", b"f", b"{}", ("a",), (), True, 10**13) for number in range(34)]
        await _accept_and_route(store, drafts[:30])
        assert (await store.append_pages("t", NOW_MS, 1_000, 500))[0] == 30
    finally:
        store.close()
    store = SqliteStore(tmp_path, inbox_items_max=10)
    try:
        counts = []
        for draft in drafts[30:]:
            await _accept_and_route(store, [draft])
            await store.append_pages("t", NOW_MS, 1_000, 500)
            counts += await _read(store, "SELECT items FROM head")
        assert counts == [(30 + number - SURPLUS_MAX * number,) for number in range(1, 5)]
    finally:
        store.close()


async def test_jobs_of_one_receiver_share_a_unit_and_each_keeps_its_order_counts_and_verdict(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, inbox_items_max=3)
    try:
        await _add_receivers(store, ("a", "b", "gone"))
        names = ["a", "b", "a", "gone", "a", "a", "a"]
        drafts = [
            Draft("t", f"{number}-{name}", b"f", b"{}", (name,), (), True, NOW_MS if number == 1 else 10**13)
            for number, name in enumerate(names)
        ]
        await _accept_and_route(store, drafts)
        await store.writer.run(partial(receivers.delete_receiver, tenant="t", name="gone"))
        before = store.writer.commits
        count, items = await store.append_pages("t", NOW_MS, 1_000, 500)
        assert (count, store.writer.commits) == (7, before + 1)
        added = [(item.notification, item.head.seq, item.head.unread) for item in items if not item.flags]
        assert added == [("0-a", 1, 1), ("2-a", 2, 2), ("4-a", 3, 3), ("5-a", 4, 4), ("6-a", 5, 5)]
        assert [item.notification for item in items if item.flags] == ["0-a", "2-a"], "the oldest make room"
        head = "SELECT seq, unread, unseen, items, (SELECT count(*) FROM item WHERE item.rid = head.rid) FROM head ORDER BY rid"
        assert await _read(store, head) == [(7, 3, 3, 3, 3), (0, 0, 0, 0, 0)]
        states = [(State.SENT, 5), (State.EXPIRED, 1)]
        assert await _read(store, "SELECT state, count(*) FROM delivery GROUP BY state ORDER BY state") == states
        assert (
            await _read(store, "SELECT state, sum(count) FROM delivery_count GROUP BY state ORDER BY state") == states
        )
        types = [("delivery.expired", 1), ("delivery.sent", 5)]
        assert await _read(store, "SELECT type, sum(count) FROM event GROUP BY type ORDER BY type") == types
        assert await _read(store, "SELECT deliveries FROM tenant WHERE name = 't'") == [(6,)]
        assert await store.append_pages("t", NOW_MS, 1_000, 500) == (0, [])
    finally:
        store.close()


async def test_jobs_of_one_receiver_of_which_one_fails_are_taken_one_by_one(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    try:
        await _add_receivers(store, ("a", "b", "c"))
        drafts = [Draft("t", f"one-{name}", b"f", b"{}", (name,), (), True, 10**13) for name in ("a", "b", "c")]
        await _accept_and_route(store, drafts)
        there = (
            "INSERT INTO delivery SELECT nid, 2, 'inbox', 0, 4, 0, 0, 0, '', '' FROM notification WHERE id = 'one-b'"
        )
        await store.writer.run(lambda connection: connection.execute(there).rowcount)
        count, items = await store.append_pages("t", NOW_MS, 1_000, 60)
        assert (count, [item.receiver for item in items]) == (3, ["a", "c"]), "what is there already is not made again"
        assert await _read(store, "SELECT unread FROM head ORDER BY rid") == [(1,), (0,), (1,)]
    finally:
        store.close()


async def test_a_job_of_one_receiver_overtakes_none_that_was_accepted_before(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    try:
        await _add_receivers(store, ("a", "b"))
        sent = [("1", ("a",)), ("2", ("a", "b")), ("3", ("b",))]
        drafts = [Draft("t", name, b"f", b"{}", to, (), len(to) == 1, 10**13) for name, to in sent]
        drafts.append(drafts[0]._replace(id="urgent", priority=Priority.HIGH))
        await _accept_and_route(store, drafts)
        count, items = await store.append_pages("t", NOW_MS, 1_000, 500)
        assert (count, [item.notification for item in items]) == (4, ["urgent", "1", "2", "2", "3"])
    finally:
        store.close()


async def test_a_page_takes_as_many_statements_as_one_of_few_receivers(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(300)]
    store = SqliteStore(tmp_path)
    try:
        await _add_receivers(store, names)
        counts = []
        for size in (2, 300):
            draft = Draft("t", f"to-{size}", b"f", b"{}", tuple(names[:size]), (), False, 10**13)
            await _accept_and_route(store, [draft])
            statements: list[str] = []
            await store.writer.run(lambda connection, seen=statements: connection.set_trace_callback(seen.append))
            assert len((await store.append_pages("t", NOW_MS, 1_000, 500))[1]) == size
            await store.writer.run(lambda connection: connection.set_trace_callback(None))
            counts.append(len(statements))
        assert counts[0] == counts[1], "one for each receiver costs more than its work"
        assert await _read(
            store, "SELECT DISTINCT nid, state, attempt, due_ms, aid, reason FROM delivery ORDER BY nid"
        ) == [(nid, State.SENT, 0, 0, 0, "") for nid in (1, 2)]
    finally:
        store.close()


async def test_jobs_of_one_receiver_are_read_in_as_many_steps_as_one(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(50)]
    store = SqliteStore(tmp_path)
    try:
        await _add_receivers(store, names)
        counts = []
        for size in (1, 50):
            drafts = [Draft("t", f"{size}-{name}", b"f", b"{}", (name,), (), True, 10**13) for name in names[:size]]
            await _accept_and_route(store, drafts)
            rows: list[object] = []
            await store.writer.run(lambda connection, seen=rows: _note_rows(connection, seen))
            assert (await store.append_pages("t", NOW_MS, 1_000, size))[0] == size
            await store.writer.run(lambda connection: setattr(connection, "row_factory", None))
            counts.append(len(rows))
        assert counts[0] == counts[1], "the writer waits for the interpreter's lock after each row"
    finally:
        store.close()


def _note_rows(connection: sqlite3.Connection, seen: list[object]) -> None:
    connection.row_factory = lambda _, row: seen.append(row) or row


async def _read(store: SqliteStore, query: str) -> list[tuple[object, ...]]:
    return await store.reader.run(lambda connection: connection.execute(query).fetchall())


def test_the_oldest_item_and_the_newest_page_are_found_without_sorting(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "x.sqlite", VAULT)) as connection:
        for order in ("first", "first DESC"):
            plan = connection.execute(
                f"EXPLAIN QUERY PLAN SELECT seq, flags FROM item WHERE rid = 1 ORDER BY {order} LIMIT 1"
            ).fetchall()
            assert "TEMP B-TREE" not in str(plan), plan


async def _add_receivers(store: SqliteStore, names: Iterable[str]) -> None:
    """Creates the tenant `t` with these receivers."""
    await store.writer.run(lambda connection: tenants.put_tenant(connection, "t"))
    for name in names:
        await store.writer.run(partial(receivers.put_receiver, tenant="t", name=name, attributes=b"{}", now_ms=1))


async def _accept_and_route(store: SqliteStore, drafts: Sequence[Draft]) -> None:
    await store.accept_all(drafts, NOW_MS)
    await store.route(("inbox",), NOW_MS, 1_000)
