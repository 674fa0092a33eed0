"""Lists for people: a tenant's notifications, receivers, and reasons of failed deliveries. Each reads a bounded number of rows."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import msgspec

from ....model import ADDRESS_PREFIX, State
from ..accept import NotificationRow, read_notification

LOOKED_AT_MAX = 100_000
"""How many rows one request reads at most; a tenant's rows may be far apart."""


CHECKED_MAX = 1_000
"""How many notifications' deliveries one request counts, to find their states."""


_AFTER_ADDRESSES = ADDRESS_PREFIX[:-1] + chr(ord(ADDRESS_PREFIX[-1]) + 1)
"""The first name after all reserved ones, which an index skips at once."""


class Listed(NamedTuple):
    """A notification in a list."""

    row: NotificationRow
    title: str


class Reason(NamedTuple):
    """Failed deliveries of one channel and reason."""

    channel: str
    state: str
    reason: str
    deliveries: int


def list_notifications(
    connection: sqlite3.Connection, tenant: str, state: str, gid: int | None, before: int, limit: int
) -> tuple[list[Listed], int]:
    """Notifications, the newest first, and where the next page begins (0: there is none). `gid` is a group's number; None:
    any receivers.
    """
    query = (
        "SELECT nid, id FROM notification WHERE nid < ?1 AND nid >= ?2 AND +tenant = ?3 AND (?4 IS NULL OR gid = ?4) "
        "ORDER BY nid DESC LIMIT ?5"
    )
    newest = connection.execute("SELECT coalesce(max(nid), 0) FROM notification").fetchone()[0]
    below = min(before or newest + 1, newest + 1)
    first = max(1, below - LOOKED_AT_MAX)
    found: list[Listed] = []
    for count, (nid, name) in enumerate(connection.execute(query, (below, first, tenant, gid, CHECKED_MAX + 1))):
        if count == CHECKED_MAX:
            return found, nid + 1
        row = read_notification(connection, tenant, name)
        if row is None or (state and row.state != state):
            continue
        if len(found) == limit:
            return found, nid + 1
        body = connection.execute("SELECT body FROM notification WHERE nid = ?", (nid,)).fetchone()
        found.append(Listed(row, _title(body[0])))
    return found, first if first > 1 else 0


def list_receivers(
    connection: sqlite3.Connection, tenant: str, prefix: str, after: str, limit: int
) -> tuple[list[tuple[str, int, int]], bool]:
    """Names with the counts of their inboxes, in order, and whether there are more. Bare addresses are left out."""
    rows: list[tuple[str, int, int]] = []
    for least, end in (("", ADDRESS_PREFIX), (_AFTER_ADDRESSES, prefix + "\U0010ffff")):
        rows += connection.execute(
            "SELECT name, unread, items FROM receiver JOIN head USING (rid) WHERE tenant = ? AND name > ? AND name >= ? "
            "AND substr(name, 1, ?) = ? AND name < ? ORDER BY name LIMIT ?",
            (tenant, after, max(prefix, least), len(prefix), prefix, min(end, prefix + "\U0010ffff"), limit + 1),
        ).fetchall()
    return rows[:limit], len(rows) > limit


def count_reasons(connection: sqlite3.Connection, tenant: str) -> tuple[list[Reason], bool]:
    """Failed deliveries by channel and reason, the most frequent first, and whether all were counted: only the newest of all
    tenants are.
    """
    failed = (
        "SELECT nid, channel, state, reason FROM delivery INDEXED BY delivery_failed WHERE state IN (6, 7) "
        "ORDER BY nid DESC LIMIT ?"
    )
    rows = connection.execute(
        "SELECT failed.channel, failed.state, failed.reason, sum(notification.tenant = ?), count(*) "
        f"FROM ({failed}) AS failed JOIN notification USING (nid) GROUP BY 1, 2, 3 ORDER BY 4 DESC",
        (tenant, LOOKED_AT_MAX),
    ).fetchall()
    reasons = [Reason(channel, State(state).label, reason, count) for channel, state, reason, count, _ in rows if count]
    return reasons, sum(row[4] for row in rows) < LOOKED_AT_MAX


def _title(body: bytes) -> str:
    try:
        content = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return ""
    if not isinstance(content, dict):
        return ""
    return str(content.get("title") or content.get("body") or content.get("template") or "")[:200]
