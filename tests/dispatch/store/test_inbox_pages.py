"""Pages of the inbox channel: small jobs share a commit, a large one is cut at the limit, and nobody's item is lost or doubled."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

from godwit.dispatch.stores.sqlite import receivers, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.inbox import JOBS_AT_ONCE
from godwit.dispatch.stores.sqlite.schema import open_writer
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.vault import Vault

VAULT = Vault([bytes(32)])
NOW_MS = 1_767_225_600_000


async def test_small_jobs_share_a_commit_and_a_large_one_is_cut(tmp_path: Path) -> None:
    names = [f"r{number}" for number in range(70)]
    store = SqliteStore(tmp_path)
    try:
        await store.writer.run(lambda connection: tenants.put_tenant(connection, "t"))
        for name in names:
            await store.writer.run(partial(receivers.put_receiver, tenant="t", name=name, attributes=b"{}", now_ms=1))
        drafts = [Draft("t", f"one-{name}", b"f", b"{}", (name,), (), True, 10**13) for name in names]
        drafts.append(Draft("t", "all", b"f", b"{}", tuple(names), (), False, 10**13))
        await store.accept_all(drafts, NOW_MS)
        await store.route(("inbox",), NOW_MS, 1_000)
        pages = []
        before = store.writer.commits
        while (found := await store.append_pages("t", NOW_MS, 1_000, 60))[0]:
            pages.append((found[0], len(found[1])))
        assert store.writer.commits == before + len(pages) + 1, "one commit each, the last found nothing"
        assert pages[0] == (JOBS_AT_ONCE, JOBS_AT_ONCE) and sum(items for _, items in pages) == 140
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
        await store.writer.run(lambda connection: tenants.put_tenant(connection, "t"))
        for name in names:
            await store.writer.run(partial(receivers.put_receiver, tenant="t", name=name, attributes=b"{}", now_ms=1))
        drafts = [Draft("t", f"one-{name}", b"f", b"{}", (name,), (), True, 10**13) for name in names]
        await store.accept_all(drafts, NOW_MS)
        await store.route(("inbox",), NOW_MS, 1_000)
        good = await store.writer.run(partial(spoil, targets=b"x"))
        count, items = await store.append_pages("t", NOW_MS, 1_000, 60)
        assert count == 3 and [item.receiver for item in items] == ["a", "c"]
        await store.writer.run(partial(spoil, targets=good))
        assert await store.append_pages("t", NOW_MS, 1_000, 60) == (0, [])
        _, items = await store.append_pages("t", NOW_MS + 1_000, 1_000, 60)
        assert [item.receiver for item in items] == ["b"]
    finally:
        store.close()


def test_the_oldest_item_and_the_newest_page_are_found_without_sorting(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "x.sqlite", VAULT)) as connection:
        for order in ("first", "first DESC"):
            plan = connection.execute(
                f"EXPLAIN QUERY PLAN SELECT seq, flags FROM item WHERE rid = 1 ORDER BY {order} LIMIT 1"
            ).fetchall()
            assert "TEMP B-TREE" not in str(plan), plan
