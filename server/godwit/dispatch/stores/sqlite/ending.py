"""Ending and repeating deliveries in the embedded store: cancel, dead letters, replay.

A dead letter is a delivery that failed or whose outcome is unknown. A replay queues it again and keeps its flag: a
delivery that may have been sent stays a possible duplicate.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ...model import DeliveryKey, State
from .changes import Changes
from .deciding import ADDRESS_NAME
from .manage.personal import ask_again


class DeadLetter(NamedTuple):
    """One delivery that failed or whose outcome is unknown."""

    notification: str
    receiver: str | None
    channel: str
    address: str | None
    state: str
    reason: str
    ref: str
    attempt: int
    possible_duplicate: bool


def cancel(connection: sqlite3.Connection, tenant: str, name: str, now_ms: int) -> int | None:
    """End a notification's jobs and unsent deliveries; returns the number of deliveries. None: no such notification."""
    row = connection.execute("SELECT nid FROM notification WHERE tenant = ? AND id = ?", (tenant, name)).fetchone()
    if row is None:
        return None
    connection.execute("UPDATE notification SET state = 'cancelled' WHERE nid = ?", row)
    connection.execute("UPDATE job SET is_done = 1, fence = fence + 1 WHERE nid = ?", row)
    connection.execute("DELETE FROM route WHERE nid = ?", row)
    changes = Changes(connection, now_ms)
    rows = connection.execute(
        "SELECT rid, channel, aid, state FROM delivery WHERE nid = ? AND state IN (1, 2)", row
    ).fetchall()
    for rid, channel, aid, state in rows:
        connection.execute(
            "UPDATE delivery SET state = 9 WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
            (row[0], rid, channel, aid),
        )
        changes.move(DeliveryKey(row[0], rid, channel, aid), State(state), State.CANCELLED)
    changes.store()
    return len(rows)


def list_dead(
    connection: sqlite3.Connection, tenant: str, reason: str | None, after: DeliveryKey, limit: int
) -> tuple[list[DeadLetter], DeliveryKey | None]:
    """Dead letters after a delivery, and the delivery after which the next page begins."""
    rows = connection.execute(
        f"SELECT nid, delivery.rid, delivery.channel, delivery.aid, notification.id, receiver.name, {ADDRESS_NAME}, delivery.state, "
        "delivery.reason, ref, attempt, doubt FROM delivery JOIN notification USING (nid) "
        "LEFT JOIN receiver ON receiver.rid = delivery.rid LEFT JOIN address ON address.aid = delivery.aid "
        "WHERE delivery.state IN (6, 7) AND nid >= ? AND notification.tenant = ? "
        "AND (nid, delivery.rid, delivery.channel, delivery.aid) > (?, ?, ?, ?) AND (? IS NULL OR delivery.reason = ?) "
        "ORDER BY nid, delivery.rid, delivery.channel, delivery.aid LIMIT ?",
        (after.nid, tenant, *after, reason, reason, limit + 1),
    ).fetchall()
    letters = [
        DeadLetter(name, receiver, channel, address, State(state).label, why, ref, attempt, bool(doubt))
        for _, _, channel, _, name, receiver, address, state, why, ref, attempt, doubt in rows[:limit]
    ]
    return letters, DeliveryKey(*rows[limit - 1][:4]) if len(rows) > limit else None


class Replayed(NamedTuple):
    """The filter for dead letters that are sent again; None: any."""

    state: State
    channel: str | None = None
    reason: str | None = None
    notification: str | None = None


def replay(
    connection: sqlite3.Connection,
    tenant: str,
    which: Replayed,
    limit: int,
    now_ms: int,
    expires_ms: int,
    *,
    is_dry: bool = False,
) -> int:
    """Queue dead letters again, and extend their notifications until `expires_ms`; returns their number. A dry run changes nothing."""
    state, channel, reason, name = which
    rows = connection.execute(
        "SELECT nid, rid, channel, aid FROM delivery JOIN notification USING (nid) "
        "WHERE delivery.state = ? AND delivery.state IN (6, 7) AND notification.tenant = ? AND notification.state <> 'cancelled' "
        "AND (? IS NULL OR notification.id = ?) AND (? IS NULL OR delivery.channel = ?) "
        "AND (? IS NULL OR delivery.reason = ?) ORDER BY nid LIMIT ?",
        (state, tenant, name, name, channel, channel, reason, reason, limit),
    ).fetchall()
    if is_dry:
        return len(rows)
    changes = Changes(connection, now_ms)
    for row in rows:
        key = DeliveryKey(*row)
        ask_again(connection, key)
        connection.execute(
            "UPDATE delivery SET state = 2, due_ms = ?, reason = '', doubt = doubt OR state = 7 "
            "WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
            (now_ms, *key),
        )
        connection.execute(
            "UPDATE notification SET expires_ms = max(expires_ms, ?), state = 'routed' WHERE nid = ?",
            (expires_ms, key.nid),
        )
        changes.move(key, state, State.DEFERRED, "replay")
    changes.store()
    return len(rows)
