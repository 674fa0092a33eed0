"""Forgetting in the embedded store: notifications that are old enough, with all that belongs to them.

Works in ranges of bounded size, so that accepting never waits long. Invariant: what is deleted is settled or expired; items of inboxes go
with their notification, leave the counts right, and take a SEQ: clients that show them remove them.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ...model import Flag, Head, InboxItem
from .accept import unpack_numbers
from .deciding import read_options
from .feed.events import forget_events
from .feed.hooks import forget_letters
from .receivers import forget_address
from .tenants import give_bytes_back

_OF_NOTIFICATION = ("job", "job_render", "route", "latest", "sent_value", "rendered", "delivery_count", "notification")


def forget_old(
    connection: sqlite3.Connection, before_ms: int, limit: int, removed: list[InboxItem] | None = None
) -> int:
    """Deletes some notifications that were accepted, and expired, before a time; how many rows went.

    `removed` takes the items that inboxes lost, each as the change that takes it from open lists.
    """
    nids = [
        row[0]
        for row in connection.execute(
            "SELECT nid FROM notification WHERE accepted_ms < ? AND expires_ms < ? ORDER BY nid LIMIT 20",
            (before_ms, before_ms),
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
    rows = _forget_items(connection, nid, limit, removed)
    if rows >= limit:
        return rows  # its deliveries name the items that are left
    rows += connection.execute(
        "DELETE FROM delivery WHERE (nid, rid, channel, aid) IN "
        "(SELECT nid, rid, channel, aid FROM delivery WHERE nid = ? LIMIT ?)",
        (nid, limit - rows),
    ).rowcount
    if connection.execute("SELECT 1 FROM delivery WHERE nid = ? LIMIT 1", (nid,)).fetchone() is not None:
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
    for table in _OF_NOTIFICATION:
        rows += connection.execute(f"DELETE FROM {table} WHERE nid = ?", (nid,)).rowcount
    return rows


def _forget_items(connection: sqlite3.Connection, nid: int, limit: int, removed: list[InboxItem]) -> int:
    """Items of inboxes, by the deliveries that made them."""
    rows = connection.execute(
        "SELECT item.rid, receiver.tenant, receiver.name, item.seq, item.flags, item.at_ms, item.first, notification.id "
        "FROM delivery JOIN item USING (rid, nid) JOIN receiver ON receiver.rid = item.rid JOIN notification USING (nid) "
        "WHERE delivery.nid = ? AND channel = 'inbox' LIMIT ?",
        (nid, limit),
    ).fetchall()
    for rid, tenant, name, *row in rows:
        removed += remove_item(connection, rid, tenant, name, StoredItem(*row))
    return len(rows)


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
    """Deletes an item and corrects the counts. The change that clients take it from their lists with; none for one that was recalled."""
    is_shown = not item.flags & Flag.RECALLED
    is_open = not item.flags & (Flag.ARCHIVED | Flag.RECALLED)
    unread, unseen = (is_open and not item.flags & flags for flags in (Flag.READ, Flag.SEEN | Flag.READ))
    connection.execute("DELETE FROM item WHERE rid = ? AND seq = ?", (rid, item.seq))
    row = connection.execute(
        "UPDATE head SET seq = seq + ?, unread = unread - ?, unseen = unseen - ?, items = items - 1 WHERE rid = ? "
        "RETURNING epoch, seq, unread, unseen",
        (int(is_shown), int(unread), int(unseen), rid),
    ).fetchone()
    if row is None or not is_shown:
        return []
    head, flags = Head(*row), item.flags | Flag.RECALLED
    return [InboxItem(tenant, receiver, head.seq, head, item.notification, flags, item.at_ms, b"{}", item.first)]
