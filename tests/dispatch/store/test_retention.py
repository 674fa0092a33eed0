"""Forgetting a notification to very many: it takes units of bounded size, and none looks at what an earlier one deleted."""

from __future__ import annotations

import sqlite3

import pytest

from godwit.dispatch.model import Flag, InboxItem, Options, Step
from godwit.dispatch.stores.sqlite import accept, inbox, receivers, retention, tenants
from godwit.dispatch.stores.sqlite.accept import Draft
from godwit.dispatch.stores.sqlite.schema import TABLES, add_functions
from godwit.dispatch.vault import Vault

RECEIVERS, LIMIT = 2_000, 100
NOW_MS = 1_767_225_600_000
STEPS_COUNTED = 100
"""SQLite's virtual machine reports every so many instructions."""


def fill(options: Options, *, is_two: bool = False) -> sqlite3.Connection:
    """A store in which a notification, or one before it as well, has an item in every inbox."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    add_functions(database, Vault([bytes(32)]))
    tenants.put_tenant(database, "t")
    names = tuple(f"r{number}" for number in range(RECEIVERS))
    for name in names:
        receivers.put_receiver(database, "t", name, b"{}", 1)
    for name in ("kept", "n") if is_two else ("n",):
        accept.accept(database, Draft("t", name, b"f", b"{}", names, (), False, 10**13, options=options), NOW_MS)
    accept.route(database, ("inbox",), NOW_MS, 9)
    while inbox.append_pages(database, "t", NOW_MS, 1_000, 500, 1_000)[0]:
        pass
    return database


def forget(database: sqlite3.Connection, nid: int, removed: list[InboxItem]) -> list[int]:
    """The instructions that each unit took, until the notification is gone."""
    counted = [0]

    def count() -> int:
        counted[-1] += 1
        return 0

    database.set_progress_handler(count, STEPS_COUNTED)
    while database.execute("SELECT 1 FROM notification WHERE nid = ?", (nid,)).fetchone():
        counted.append(0)
        retention.forget_notification(database, nid, LIMIT, 10**13, removed)
    database.set_progress_handler(None, 0)
    return counted[1:]


@pytest.mark.parametrize(
    "options", [Options(), Options(collapse_key="k"), Options(steps=(Step("inbox", wait_s=60), Step("webhook")))]
)
def test_no_unit_costs_more_because_others_went_before(options: Options) -> None:
    database = fill(options)
    counted = forget(database, 1, [])
    assert len(counted) >= RECEIVERS // LIMIT and max(counted) <= 1.5 * counted[0], counted
    for table in ("delivery", "item", "route", "latest", "delivery_count", "job"):
        assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


def test_every_inbox_loses_the_item_with_its_counts_and_keeps_the_others() -> None:
    database, removed = fill(Options(), is_two=True), list[InboxItem]()
    database.execute("UPDATE item SET flags = ? WHERE nid = 2 AND rid % 3 = 0", (Flag.READ,))
    database.execute("UPDATE head SET unread = unread - 1, unseen = unseen - 1 WHERE rid % 3 = 0")
    forget(database, 2, removed)
    assert {item.receiver for item in removed} == {f"r{number}" for number in range(RECEIVERS)}
    assert len(removed) == RECEIVERS and all(item.seq == 3 and item.flags & Flag.RECALLED for item in removed)
    heads = database.execute("SELECT DISTINCT seq, unread, unseen, items FROM head").fetchall()
    assert heads == [(3, 1, 1, 1)] and all(item.head.unread == 1 for item in removed)
    assert database.execute("SELECT DISTINCT nid FROM item").fetchall() == [(1,)]
