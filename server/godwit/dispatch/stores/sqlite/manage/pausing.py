"""Jobs that pause because their receivers' bodies do not render, in the embedded store.

The renders of a job are counted from its start, or from its resumption, up to RENDERS. If more than half of them fail,
the job pauses: unsent deliveries are held until the job is resumed or the notification expires.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from .....logs import read_logger
from ....model import DeliveryKey, State
from ..changes import Changes, add_event
from ..deciding import Facts, read_facts

RENDERS = 100
TEMPLATE = "template"
"""The channel's name in a job that renders content for each receiver, before any channel."""
PAUSED = "paused"
"""The reason of a delivery whose job is paused."""
_KEY = "nid = ? AND rid = ? AND channel = ? AND aid = ?"


class Resumed(NamedTuple):
    """The result of resuming a notification's jobs."""

    nid: int
    channels: tuple[str, ...]
    is_live: bool


def note_render(connection: sqlite3.Connection, key: DeliveryKey, is_rendered: bool, changes: Changes) -> None:
    """Count one of a job's first renderings, and pause the job if more than half of them fail."""
    row = connection.execute(
        "INSERT INTO job_render VALUES (?1, ?2, 1, ?3, 0) ON CONFLICT DO UPDATE SET renders = renders + 1, failed = failed + ?3 "
        "WHERE renders < ?4 AND is_paused = 0 RETURNING failed",
        (key.nid, key.channel, int(not is_rendered), RENDERS),
    ).fetchone()
    if row is not None and row[0] > RENDERS // 2 and (facts := read_facts(connection, key.nid)) is not None:
        _pause(connection, facts, key.channel, changes)


def is_paused(connection: sqlite3.Connection, nid: int, channel: str) -> bool:
    """Whether a notification is paused on a channel."""
    query = "SELECT 1 FROM job_render WHERE nid = ? AND channel = ? AND is_paused = 1"
    return connection.execute(query, (nid, channel)).fetchone() is not None


def list_paused(connection: sqlite3.Connection, nid: int) -> tuple[str, ...]:
    """The channels on which a notification is paused."""
    query = "SELECT channel FROM job_render WHERE nid = ? AND is_paused = 1 ORDER BY channel"
    return tuple(channel for (channel,) in connection.execute(query, (nid,)))


def hold(connection: sqlite3.Connection, facts: Facts, key: DeliveryKey, state: State, changes: Changes) -> None:
    """Hold a delivery that would be sent until the job is resumed or the delivery expires."""
    connection.execute(
        f"UPDATE delivery SET state = ?, due_ms = ?, reason = ? WHERE {_KEY}",
        (int(State.DEFERRED), facts.expires_ms, PAUSED, *key),
    )
    if state is not State.DEFERRED:
        changes.move(key, state, State.DEFERRED, PAUSED)


def _pause(connection: sqlite3.Connection, facts: Facts, channel: str, changes: Changes) -> None:
    where = (facts.nid, channel)
    connection.execute("UPDATE job_render SET is_paused = 1 WHERE nid = ? AND channel = ?", where)
    connection.execute(
        "UPDATE job SET is_done = 3, fence = fence + 1 WHERE nid = ? AND channel = ? AND is_done IN (0, 2)", where
    )
    queued = connection.execute(
        "SELECT nid, rid, channel, aid FROM delivery WHERE nid = ? AND channel = ? AND state = 1", where
    ).fetchall()
    for row in queued:  # at most what one worker holds
        hold(connection, facts, DeliveryKey(*row), State.QUEUED, changes)
    add_event(connection, facts.tenant, "notification.paused", *where, "content", changes.now_ms, [])
    read_logger().warning("dispatch_job_paused", tenant=facts.tenant, nid=facts.nid, channel=channel)


def resume(connection: sqlite3.Connection, tenant: str, name: str, now_ms: int) -> Resumed | None:
    """Resume a notification's paused jobs; their renderings are counted from zero. None: no such notification."""
    row = connection.execute(
        "SELECT nid, state FROM notification WHERE tenant = ? AND id = ?", (tenant, name)
    ).fetchone()
    if row is None:
        return None
    nid, state = row
    is_live = state != "cancelled"
    channels = list_paused(connection, nid) if is_live else ()
    for channel in channels:
        if channel == TEMPLATE:  # what still does not render fails, and the rest is sent
            connection.execute(
                "UPDATE job_render SET renders = ?, is_paused = 0 WHERE nid = ? AND channel = ?",
                (RENDERS, nid, channel),
            )
        else:
            connection.execute("DELETE FROM job_render WHERE nid = ? AND channel = ?", (nid, channel))
        connection.execute(
            "UPDATE job SET is_done = 0, lease_end_ms = 0 WHERE nid = ? AND channel = ? AND is_done = 3", (nid, channel)
        )
        add_event(connection, tenant, "notification.resumed", nid, channel, "", now_ms, [])
    return Resumed(nid, channels, is_live)


def release_some(
    connection: sqlite3.Connection, resumed: Resumed, after: int, limit: int, now_ms: int
) -> tuple[int, int]:
    """Make held deliveries of the receivers after number `after` due; returns their number, and the last receiver examined."""
    rows = connection.execute(
        "SELECT rid, channel, aid, state, reason FROM delivery WHERE nid = ? AND rid > ? ORDER BY rid LIMIT ?",
        (resumed.nid, after, limit),
    ).fetchall()
    if not rows:
        return 0, 0
    last = rows[-1][0]
    count = connection.execute(
        "UPDATE delivery SET due_ms = ?, reason = '' WHERE nid = ? AND rid > ? AND rid <= ? AND state = 2 AND reason = ?",
        (now_ms, resumed.nid, after, last, PAUSED),
    ).rowcount
    return count, last
