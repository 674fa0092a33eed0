"""Forgetting in the embedded store: notifications that are old enough, with all that belongs to them.

Works in ranges of bounded size, so that accepting never waits long. Invariant: what is deleted is settled or expired; items of inboxes go
with their notification and leave the counts right.
"""

from __future__ import annotations

import sqlite3

from ...model import Flag
from .accept import unpack_numbers
from .deciding import read_options
from .feed.events import forget_events
from .feed.hooks import forget_letters
from .receivers import forget_address
from .tenants import give_bytes_back


def forget_old(connection: sqlite3.Connection, before_ms: int, limit: int) -> int:
    """Deletes some notifications that were accepted, and expired, before a time; how many rows went."""
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
        rows += _forget_items(connection, nid, limit - rows)
        if rows >= limit:
            break  # its deliveries name the items that are left
        gone = connection.execute(
            "DELETE FROM delivery WHERE (nid, rid, channel, aid) IN "
            "(SELECT nid, rid, channel, aid FROM delivery WHERE nid = ? LIMIT ?)",
            (nid, max(1, limit - rows)),
        ).rowcount
        rows += gone
        if connection.execute("SELECT 1 FROM delivery WHERE nid = ? LIMIT 1", (nid,)).fetchone() is None:
            tenant, size, targets, options = connection.execute(
                "SELECT tenant, length(body) + length(targets) + length(options) + coalesce((SELECT sum(length(body)) "
                "FROM rendered WHERE rendered.nid = notification.nid), 0), targets, options FROM notification WHERE nid = ?",
                (nid,),
            ).fetchone()
            give_bytes_back(connection, tenant, size)
            if read_options(options).channel:
                for rid in unpack_numbers(targets):
                    forget_address(connection, rid, before_ms)
            for table in ("job", "route", "latest", "sent_value", "rendered", "delivery_count", "notification"):
                rows += connection.execute(f"DELETE FROM {table} WHERE nid = ?", (nid,)).rowcount
    return rows


def _forget_items(connection: sqlite3.Connection, nid: int, limit: int) -> int:
    """Items of inboxes, by the deliveries that made them."""
    rows = connection.execute(
        "SELECT item.rid, item.seq, item.flags FROM delivery JOIN item USING (rid, nid) "
        "WHERE delivery.nid = ? AND channel = 'inbox' LIMIT ?",
        (nid, limit),
    ).fetchall()
    closed = Flag.ARCHIVED | Flag.RECALLED
    for rid, seq, flags in rows:
        connection.execute("DELETE FROM item WHERE rid = ? AND seq = ?", (rid, seq))
        connection.execute(
            "UPDATE head SET items = items - 1, unread = unread - ?, unseen = unseen - ? WHERE rid = ?",
            (int(not flags & (Flag.READ | closed)), int(not flags & (Flag.SEEN | Flag.READ | closed)), rid),
        )
    return len(rows)
