"""Ending and repeating deliveries in the embedded store: cancel, dead letters, replay.

A dead letter is a delivery that failed or whose outcome is unknown. A replay queues it again and keeps its flag: a
delivery that may have been sent stays a possible duplicate.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ...model import DeliveryKey, State
from .accept import read_notification
from .changes import Changes
from .deciding import ADDRESS_NAME, RECEIVER_NAME, read_options
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


class Cancelled(NamedTuple):
    """A cancelled notification by its number. `is_settled`: all its deliveries had ended before, and nothing was changed."""

    nid: int
    is_settled: bool = False


def cancel(connection: sqlite3.Connection, tenant: str, name: str, *, also_settled: bool = False) -> Cancelled | None:
    """Cancel a notification and end its jobs: nothing more of it is sent. `cancel_some` then ends its unsent deliveries. One
    that is settled is changed only with `also_settled`: then nothing of it is sent again. None: no such notification.
    """
    row = connection.execute("SELECT nid FROM notification WHERE tenant = ? AND id = ?", (tenant, name)).fetchone()
    if row is None:
        return None
    found = read_notification(connection, tenant, name)
    if found is not None and found.state == "settled" and not also_settled:
        return Cancelled(row[0], is_settled=True)
    connection.execute("UPDATE notification SET state = 'cancelled' WHERE nid = ?", row)
    connection.execute("UPDATE job SET is_done = 1, fence = fence + 1 WHERE nid = ?", row)
    return Cancelled(row[0])


def cancel_some(connection: sqlite3.Connection, nid: int, after: int, limit: int, now_ms: int) -> tuple[int, int]:
    """End unsent deliveries of a cancelled notification, of the receivers after number `after`; returns their number, and the
    last receiver examined, 0 at the end. After a crash the other deliveries end when they are due.
    """
    connection.execute(
        "DELETE FROM route WHERE nid = ?1 AND rid IN (SELECT rid FROM route WHERE nid = ?1 LIMIT ?2)", (nid, limit)
    )
    looked = connection.execute(
        "SELECT rid FROM delivery WHERE nid = ? AND rid > ? ORDER BY rid LIMIT ?", (nid, after, limit)
    ).fetchall()
    if not looked:
        is_left = connection.execute("SELECT EXISTS (SELECT 1 FROM route WHERE nid = ?)", (nid,)).fetchone()[0]
        return 0, after if is_left else 0
    page = nid, after, looked[-1][0]
    which = "nid = ? AND rid > ? AND rid <= ? AND state IN (1, 2)"
    rows = connection.execute(f"SELECT rid, channel, aid, state FROM delivery WHERE {which}", page).fetchall()
    connection.execute(f"UPDATE delivery SET state = 9 WHERE {which}", page)
    changes = Changes(connection, now_ms)
    for rid, channel, aid, state in rows:
        changes.move(DeliveryKey(nid, rid, channel, aid), State(state), State.CANCELLED)
    changes.store()
    return len(rows), page[2]


def is_test(connection: sqlite3.Connection, tenant: str, name: str) -> bool:
    """Whether a test key sent the notification, or it does not exist."""
    row = connection.execute("SELECT options FROM notification WHERE tenant = ? AND id = ?", (tenant, name)).fetchone()
    return row is None or read_options(row[0]).is_test


def list_dead(
    connection: sqlite3.Connection, tenant: str, reason: str | None, after: DeliveryKey, limit: int
) -> tuple[list[DeadLetter], DeliveryKey | None]:
    """Dead letters after a delivery, and the delivery after which the next page begins."""
    rows = connection.execute(
        f"SELECT nid, delivery.rid, delivery.channel, delivery.aid, notification.id, {RECEIVER_NAME}, {ADDRESS_NAME}, delivery.state, "
        "delivery.reason, ref, attempt, doubt FROM delivery INDEXED BY delivery_failed CROSS JOIN notification USING (nid) "
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
        "SELECT nid, rid, channel, aid FROM delivery INDEXED BY delivery_failed CROSS JOIN notification USING (nid) "
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
