"""The event feed in the embedded store: events of notifications, kept as long as the notifications.

Events name receivers and addresses by number. Names are looked up when an event is read, so those of erased receivers do
not appear.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from ....model import ADDRESS_PREFIX
from ..changes import Member, unpack_members

FRESH_MAX = 1_000
MEMBERS_SHOWN_MAX = 100


class EventRow(NamedTuple):
    """One event. `members` is packed."""

    eid: int
    type: str
    nid: int
    notification: str | None
    channel: str
    reason: str
    time_ms: int
    size: int
    members: bytes


def read_fresh(connection: sqlite3.Connection, after: int) -> tuple[int, list[tuple[str, int, str, str, int]]]:
    """The number of the last event, and of each event after `after`: tenant, notification, channel, type, count. With -1 no
    events are returned.
    """
    if after < 0:
        return int(connection.execute("SELECT coalesce(max(eid), 0) FROM event").fetchone()[0]), []
    rows = connection.execute(
        "SELECT eid, tenant, nid, channel, type, count FROM event WHERE eid > ? ORDER BY eid LIMIT ?",
        (after, FRESH_MAX),
    ).fetchall()
    return (rows[-1][0] if rows else after), [row[1:] for row in rows]


def list_events(
    connection: sqlite3.Connection, tenant: str, after: int, types: Collection[str], limit: int
) -> tuple[list[EventRow], int, bool]:
    """A tenant's events after a number, the number up to which they are complete, and whether there are more."""
    marks = ",".join("?" * len(types))
    which = f"AND type IN ({marks}) " if types else ""
    rows = connection.execute(
        "SELECT eid, type, event.nid, notification.id, channel, reason, time_ms, count, members FROM event "
        "LEFT JOIN notification ON notification.nid = event.nid AND notification.tenant = event.tenant "
        f"WHERE event.tenant = ? AND eid > ? {which}ORDER BY eid LIMIT ?",
        (tenant, after, *types, limit + 1),
    ).fetchall()
    events = [EventRow(*row) for row in rows[:limit]]
    if len(rows) > limit:
        return events, events[-1].eid, True
    last = connection.execute("SELECT max(eid) FROM event WHERE tenant = ?", (tenant,)).fetchone()[0]
    return events, min(max(after, last or 0), read_newest(connection)), False


def read_newest(connection: sqlite3.Connection) -> int:
    """The number of the newest event of all tenants, also if it was deleted since. A larger one, such as that of a restored
    database, would pass over what is still to come.
    """
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
    return 0 if row is None else int(row[0])


def show_event(row: EventRow) -> dict[str, Any]:
    """An event without its deliveries."""
    shown: dict[str, Any] = {"notification": row.notification, "channel": row.channel, "count": row.size}
    return {**shown, "reason": row.reason} if row.reason else shown


def show_members(connection: sqlite3.Connection, row: EventRow) -> list[dict[str, Any]]:
    """The deliveries of an event, with current names."""
    members = unpack_members(row.members)
    receivers = find_names(connection, "receiver", "rid", {member.rid for member in members})
    addresses = find_address_names(connection, members)
    bare = {rid for rid, name in receivers.items() if name.startswith(ADDRESS_PREFIX)}
    if bare:  # no receiver of the tenant's: the address as it was given
        values = find_names(connection, "address", "aid", {one.aid for one in members if one.rid in bare}, "value")
        addresses |= values
        receivers = {rid: name for rid, name in receivers.items() if rid not in bare}
    return [
        {
            "receiver": receivers.get(member.rid),
            "address": addresses.get(member.aid),
            "attempt": member.attempt,
            "possible_duplicate": member.is_doubtful,
        }
        for member in members
    ]


def forget_events(connection: sqlite3.Connection, before_ms: int, limit: int) -> int:
    """Delete old events; returns their number."""
    gone = connection.execute(
        "DELETE FROM event WHERE eid IN (SELECT eid FROM event WHERE time_ms < ? ORDER BY time_ms LIMIT ?)",
        (before_ms, limit),
    )
    return gone.rowcount


def find_address_names(connection: sqlite3.Connection, members: Collection[Member]) -> dict[int, str]:
    """The API's names of deliveries' addresses; inboxes have none."""
    copies = {member.aid: f"cc/{-1 - member.aid}" for member in members if member.aid < 0}
    return copies | find_names(connection, "address", "aid", {member.aid for member in members if member.aid > 0})


def find_names(
    connection: sqlite3.Connection, table: str, key: str, numbers: Iterable[int], column: str = "name"
) -> dict[int, str]:
    """The names of rows by their numbers; deleted rows have none."""
    found: dict[int, str] = {}
    wanted = sorted(numbers)
    for begin in range(0, len(wanted), 500):
        some = wanted[begin : begin + 500]
        marks = ",".join("?" * len(some))
        found.update(
            connection.execute(f"SELECT {key}, {column} FROM {table} WHERE {key} IN ({marks})", some).fetchall()
        )
    return found
