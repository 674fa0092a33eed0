"""Retention in the embedded store: deletes old notifications with everything that belongs to them.

It works in ranges of bounded size, so that accepting never waits long. Invariant: only settled or expired notifications
are deleted. Their inbox items are deleted too: counts stay correct, and each removal takes a SEQ, so that clients remove
the item.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ...model import Flag, Head, InboxItem
from .accept import unpack_numbers
from .deciding import read_options
from .feed.events import forget_events
from .feed.hooks import forget_letters
from .manage.personal import forget_personal
from .receivers import forget_address
from .tenants import give_bytes_back

_FEW = ("job", "job_render", "rendered", "delivery_count", "notification")
_MANY = {
    "route": "nid, rid",
    "latest": "rid, key, channel",
    "sent_value": "nid, channel, value",
    "attempt": "nid, rid, channel, aid, number",
}
"""Tables with a row for each receiver, and their keys."""
_HEADS_AT_ONCE = 500
SURPLUS_MAX = 4
"""Most items that make room for one."""


def forget_old(
    connection: sqlite3.Connection, before_ms: int, limit: int, removed: list[InboxItem] | None = None
) -> int:
    """Deletes some notifications that expired before a time, and events and letters of before it; how many rows went.

    `removed` takes the items that inboxes lost, each as the change that takes it from open lists.
    """
    nids = [
        row[0]
        for row in connection.execute(
            "SELECT nid FROM notification WHERE expires_ms < ? ORDER BY expires_ms LIMIT 20", (before_ms,)
        )
    ]
    rows = forget_events(connection, before_ms, limit)
    rows += forget_letters(connection, before_ms, limit)
    for nid in nids:
        if rows >= limit:
            break
        rows += forget_notification(connection, nid, limit - rows, before_ms, [] if removed is None else removed)
    return rows


def forget_notification(
    connection: sqlite3.Connection, nid: int, limit: int, before_ms: int, removed: list[InboxItem]
) -> int:
    """Deletes some rows of a notification, itself last; how many. The receiver of an address goes with it, unless it is needed later."""
    rows = _forget_deliveries(connection, nid, limit, removed)
    rows += forget_personal(connection, nid, max(0, limit - rows))
    for table, key in _MANY.items():
        rows += connection.execute(
            f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE nid = ? LIMIT ?)",
            (nid, max(0, limit - rows)),
        ).rowcount
    if rows >= limit:
        return rows
    tenant, size, targets, options = connection.execute(
        "SELECT tenant, length(body) + length(targets) + length(options) + coalesce((SELECT sum(length(body)) "
        "FROM rendered WHERE rendered.nid = notification.nid), 0), targets, options FROM notification WHERE nid = ?",
        (nid,),
    ).fetchone()
    give_bytes_back(connection, tenant, size)
    if read_options(options).channel:
        for rid in unpack_numbers(targets):
            forget_address(connection, rid, before_ms)
    for table in _FEW:
        rows += connection.execute(f"DELETE FROM {table} WHERE nid = ?", (nid,)).rowcount
    return rows


def _forget_deliveries(connection: sqlite3.Connection, nid: int, limit: int, removed: list[InboxItem]) -> int:
    """Delete the first remaining deliveries, each with its item, and return the number of rows. No row is visited twice."""
    keys = connection.execute(
        "SELECT rid, channel, aid FROM delivery WHERE nid = ? ORDER BY rid, channel, aid LIMIT ?", (nid, limit)
    ).fetchall()
    if not keys:
        return 0
    rows = connection.execute(
        "SELECT item.rid, receiver.tenant, receiver.name, item.seq, item.flags, item.at_ms, item.first, notification.id "
        "FROM delivery JOIN item USING (rid, nid) JOIN receiver ON receiver.rid = item.rid JOIN notification USING (nid) "
        "WHERE delivery.nid = ? AND channel = 'inbox' AND delivery.rid BETWEEN ? AND ?",
        (nid, keys[0][0], keys[-1][0]),
    ).fetchall()
    removed += _remove_items(connection, [(rid, tenant, name, StoredItem(*row)) for rid, tenant, name, *row in rows])
    connection.execute("DELETE FROM delivery WHERE nid = ? AND (rid, channel, aid) <= (?, ?, ?)", (nid, *keys[-1]))
    return len(rows) + len(keys)


class StoredItem(NamedTuple):
    """An item's row, with the id of its notification."""

    seq: int
    flags: int
    at_ms: int
    first: int
    notification: str


def remove_item(
    connection: sqlite3.Connection, rid: int, tenant: str, receiver: str, item: StoredItem
) -> list[InboxItem]:
    """Delete an item and correct the counts. Returns the change by which clients remove it from their lists; None for a recalled item."""
    return _remove_items(connection, [(rid, tenant, receiver, item)])


def remove_oldest(
    connection: sqlite3.Connection, rid: int, tenant: str, receiver: str, surplus: int
) -> list[InboxItem]:
    """Deletes an inbox's oldest items, where it has too many: a few with each item that comes, as a limit that was lowered would
    make the unit of a page last for minutes.
    """
    rows = connection.execute(
        "SELECT seq, flags, at_ms, first, coalesce(id, '') FROM item LEFT JOIN notification USING (nid) WHERE rid = ? "
        "ORDER BY first LIMIT ?",
        (rid, min(surplus, SURPLUS_MAX)),
    ).fetchall()
    return [change for row in rows for change in remove_item(connection, rid, tenant, receiver, StoredItem(*row))]


def _remove_items(connection: sqlite3.Connection, items: Sequence[tuple[int, str, str, StoredItem]]) -> list[InboxItem]:
    """The same for items of different receivers: the statements run for all of them at once."""
    connection.executemany("DELETE FROM item WHERE rid = ? AND seq = ?", [(rid, item.seq) for rid, _, _, item in items])
    connection.executemany(
        "UPDATE head SET seq = seq + ?, unread = unread - ?, unseen = unseen - ?, items = items - 1 WHERE rid = ?",
        [(*_weigh(item.flags), rid) for rid, _, _, item in items],
    )
    heads: dict[int, Head] = {}
    shown = [row for row in items if not row[3].flags & Flag.RECALLED]
    for begin in range(0, len(shown), _HEADS_AT_ONCE):
        rids = [row[0] for row in shown[begin : begin + _HEADS_AT_ONCE]]
        marks = ",".join("?" * len(rids))
        rows = connection.execute(f"SELECT rid, epoch, seq, unread, unseen FROM head WHERE rid IN ({marks})", rids)
        heads.update((rid, Head(*row)) for rid, *row in rows)
    changes = []
    for rid, tenant, receiver, item in shown:
        if head := heads.get(rid):
            flags = item.flags | Flag.RECALLED
            changes.append(
                InboxItem(tenant, receiver, head.seq, head, item.notification, flags, item.at_ms, b"{}", item.first)
            )
    return changes


def _weigh(flags: int) -> tuple[int, int, int]:
    """What an item with these flags counts in its head: SEQs that its removal takes, unread, unseen."""
    is_open = not flags & (Flag.ARCHIVED | Flag.RECALLED)
    unread, unseen = (is_open and not flags & closing for closing in (Flag.READ, Flag.SEEN | Flag.READ))
    return int(not flags & Flag.RECALLED), int(unread), int(unseen)
