"""Collapse keys and duplicate addresses in the embedded store.

A newer notification with the same key cancels unsent deliveries of an older one to the same receiver, and replaces its
inbox item.
"""

from __future__ import annotations

import sqlite3

from ...model import DeliveryKey, State
from .changes import Changes
from .deciding import digest_value


def supersede(connection: sqlite3.Connection, key: DeliveryKey, collapse_key: str, changes: Changes) -> bool:
    """Make a delivery's notification the latest with its key; false if there is a newer one."""
    where = (key.rid, collapse_key, key.channel)
    row = connection.execute("SELECT nid FROM latest WHERE rid = ? AND key = ? AND channel = ?", where).fetchone()
    older = None if row is None else int(row[0])
    if older is not None and older > key.nid:
        return False
    connection.execute("INSERT OR REPLACE INTO latest VALUES (?, ?, ?, ?)", (*where, key.nid))
    if older is not None and older < key.nid:
        _end_unsent(connection, DeliveryKey(older, key.rid, key.channel, 0), changes)
    return True


def is_superseded(connection: sqlite3.Connection, key: DeliveryKey) -> bool:
    """Whether a newer notification has a delivery's collapse key."""
    row = connection.execute(
        "SELECT 1 FROM notification JOIN latest ON latest.rid = ? AND latest.key = collapse_key AND latest.channel = ? "
        "WHERE notification.nid = ? AND collapse_key <> '' AND latest.nid > notification.nid",
        (key.rid, key.channel, key.nid),
    ).fetchone()
    return row is not None


def find_replaced(connection: sqlite3.Connection, key: DeliveryKey, collapse_key: str) -> list[int]:
    """The SEQs of a receiver's items that a new item replaces."""
    rows = connection.execute(
        "SELECT seq FROM item JOIN notification USING (nid) WHERE rid = ? AND collapse_key = ? AND nid < ? AND NOT flags & 16",
        (key.rid, collapse_key, key.nid),
    )
    return [int(seq) for (seq,) in rows]


def take_value(connection: sqlite3.Connection, key: DeliveryKey, value: str) -> bool:
    """Whether this delivery is the first of its notification to an address value, which is its own from now on."""
    made = connection.execute(
        "INSERT OR IGNORE INTO sent_value VALUES (?, ?, ?, ?, ?)",
        (key.nid, key.channel, digest_value(key.channel, value), key.rid, key.aid),
    )
    return made.rowcount == 1


def retake_value(connection: sqlite3.Connection, key: DeliveryKey, value: str) -> bool:
    """The same before a first attempt, for an address that may have changed since: the earlier value is free for others."""
    row = connection.execute(
        "SELECT value FROM sent_value WHERE nid = ? AND rid = ? AND aid = ? AND channel = ?", _owner(key)
    ).fetchone()
    if row == (digest_value(key.channel, value),):
        return True
    release_value(connection, key)
    return take_value(connection, key, value) or _take_left(connection, key, value)


def _take_left(connection: sqlite3.Connection, key: DeliveryKey, value: str) -> bool:
    """Take a value whose delivery was never tried and whose address has another value now: it takes that one when it is due."""
    digest = digest_value(key.channel, value)
    row = connection.execute(
        "SELECT rid, aid, (SELECT value FROM address WHERE address.aid = delivery.aid) FROM sent_value "
        "JOIN delivery USING (nid, rid, channel, aid) WHERE nid = ? AND channel = ? AND sent_value.value = ? "
        "AND state = ? AND attempt = 0 AND doubt = 0",
        (key.nid, key.channel, digest, int(State.DEFERRED)),
    ).fetchone()
    if row is None or (row[2] is not None and digest_value(key.channel, row[2]) == digest):
        return False
    release_value(connection, key._replace(rid=row[0], aid=row[1]))
    return take_value(connection, key, value)


def release_value(connection: sqlite3.Connection, key: DeliveryKey) -> None:
    """Release the address value of a delivery that ended before anything was sent, for other receivers of the notification."""
    connection.execute("DELETE FROM sent_value WHERE nid = ? AND rid = ? AND aid = ? AND channel = ?", _owner(key))


def _owner(key: DeliveryKey) -> tuple[int, int, int, str]:
    return key.nid, key.rid, key.aid, key.channel


def _end_unsent(connection: sqlite3.Connection, key: DeliveryKey, changes: Changes) -> None:
    where = "nid = ? AND rid = ? AND channel = ? AND state IN (1, 2)"
    rows = connection.execute(f"SELECT aid, state FROM delivery WHERE {where}", key[:3]).fetchall()
    connection.execute(f"UPDATE delivery SET state = 11, reason = 'newer' WHERE {where}", key[:3])
    for aid, state in rows:
        changes.move(key._replace(aid=aid), State(state), State.COLLAPSED, "newer")
