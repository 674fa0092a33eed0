"""Rows of the journal table `feedback`, made from events, and the number of the last one written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from .....rows.feedback import FeedbackRow
from ..changes import Member, unpack_members
from ..deciding import read_options
from .events import find_address_names, find_names

NAME = "feedback"
_ALIASES = ("delivery.", "item.", "receiver.")


class _Event(NamedTuple):
    eid: int
    tenant: str
    type: str
    channel: str
    reason: str
    time_ms: int
    members: bytes
    notification: str | None
    accepted_ms: int | None
    options: bytes | None
    group_name: str | None


def read_written(connection: sqlite3.Connection) -> int:
    """The number of the last event whose rows are in the journal."""
    row = connection.execute("SELECT value FROM progress WHERE name = ?", (NAME,)).fetchone()
    return 0 if row is None else int(row[0])


def set_written(connection: sqlite3.Connection, last: int) -> None:
    """Record that the rows of all events up to `last` are in the journal."""
    connection.execute("INSERT OR REPLACE INTO progress VALUES (?, ?)", (NAME, last))


def read_rows(connection: sqlite3.Connection, after: int, limit: int) -> tuple[list[FeedbackRow], int]:
    """The rows of whole events after a number, at least `limit` if there are as many, and the number of the last event."""
    found = connection.execute(
        "SELECT eid, event.tenant, type, channel, reason, time_ms, members, notification.id, accepted_ms, options, receiver_group.name "
        "FROM event LEFT JOIN notification ON notification.nid = event.nid AND notification.tenant = event.tenant "
        "LEFT JOIN receiver_group ON receiver_group.gid = notification.gid WHERE eid > ? ORDER BY eid",
        (after,),
    )
    rows: list[FeedbackRow] = []
    last = after
    for values in found:
        event = _Event(*values)
        rows += _make_rows(connection, event)
        last = event.eid
        if len(rows) >= limit or last - after >= limit:
            break
    found.close()
    return rows, last


def _make_rows(connection: sqlite3.Connection, event: _Event) -> Iterator[FeedbackRow]:
    if not event.type.startswith(_ALIASES):
        return
    members = unpack_members(event.members)
    receivers = find_names(connection, "receiver", "rid", {member.rid for member in members})
    addresses = find_address_names(connection, members)
    shared: dict[str, Any] = {
        "tenant": event.tenant,
        "time_ms": event.time_ms,
        "notification": event.notification or "",
        "channel": event.channel,
        "state": event.type.partition(".")[2],
        "reason": event.reason or None,
        "accepted_ms": event.accepted_ms,
        "provider": None,
        "group_name": event.group_name,
        "category": (read_options(event.options).category or None) if event.options else None,
    }
    for number, member in enumerate(members):
        yield _make_row(event.eid, number, member, receivers, addresses, shared)


def _make_row(
    eid: int,
    number: int,
    member: Member,
    receivers: dict[int, str],
    addresses: dict[int, str],
    shared: dict[str, Any],
) -> FeedbackRow:
    return FeedbackRow(
        event=f"evt_{eid}.{number}",
        receiver=receivers.get(member.rid, ""),
        address=addresses.get(member.aid, ""),
        attempt=member.attempt,
        possible_duplicate=member.is_doubtful,
        **shared,
    )
