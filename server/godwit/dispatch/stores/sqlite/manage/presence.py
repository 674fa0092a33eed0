"""Connected receivers in the embedded store: rows for the tenants that enable connection events, and an event for each batch
of changes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ..changes import Member, add_event
from ..receivers import find_receiver
from ..store import SqliteStore


def set_wanted(connection: sqlite3.Connection, tenant: str, *, is_wanted: bool) -> None:
    """Set whether a tenant has connection events. If not, its rows are deleted."""
    if is_wanted:
        connection.execute("INSERT OR IGNORE INTO presence_tenant VALUES (?)", (tenant,))
        return
    connection.execute("DELETE FROM presence_tenant WHERE tenant = ?", (tenant,))
    connection.execute("DELETE FROM presence WHERE rid IN (SELECT rid FROM receiver WHERE tenant = ?)", (tenant,))


def is_wanted(connection: sqlite3.Connection, tenant: str) -> bool:
    """Whether a tenant has connection events."""
    return connection.execute("SELECT 1 FROM presence_tenant WHERE tenant = ?", (tenant,)).fetchone() is not None


def note(connection: sqlite3.Connection, changes: Iterable[tuple[str, str, bool]], now_ms: int) -> None:
    """Store receivers that are connected from now on, or no longer: (tenant, name, whether)."""
    events: dict[tuple[str, bool], list[Member]] = {}
    wanted: dict[str, bool] = {}
    for tenant, name, is_connected in changes:
        if tenant not in wanted:
            wanted[tenant] = is_wanted(connection, tenant)
        rid = find_receiver(connection, tenant, name) if wanted[tenant] else None
        if rid is None:
            continue
        before = connection.execute("SELECT is_connected FROM presence WHERE rid = ?", (rid,)).fetchone()
        if before == (int(is_connected),) or (before is None and not is_connected):
            continue
        connection.execute("INSERT OR REPLACE INTO presence VALUES (?, ?, ?)", (rid, int(is_connected), now_ms))
        events.setdefault((tenant, is_connected), []).append(Member(rid, 0, 0, False))
    for (tenant, is_connected), members in events.items():
        kind = "receiver.connected" if is_connected else "receiver.disconnected"
        add_event(connection, tenant, kind, 0, "", "", now_ms, sorted(members))


def read(connection: sqlite3.Connection, tenant: str, name: str) -> tuple[bool, int | None]:
    """Whether a receiver's tenant has connection events, and when the receiver was last connected."""
    row = connection.execute(
        "SELECT seen_ms FROM presence JOIN receiver USING (rid) WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return is_wanted(connection, tenant), None if row is None else int(row[0])


def list_present(connection: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, str, str]]:
    """Receivers after a number that are stored as connected: number, tenant, name."""
    return connection.execute(
        "SELECT rid, tenant, name FROM presence JOIN receiver USING (rid) WHERE is_connected = 1 AND rid > ? ORDER BY rid LIMIT ?",
        (after, limit),
    ).fetchall()


class StoredPresence:
    """Implements PresenceStore."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def note_presence(self, changes: Sequence[tuple[str, str, bool]], now_ms: int) -> None:
        await self._store.writer.run(lambda connection: note(connection, changes, now_ms), bulk=True)

    async def list_present(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        return await self._store.reader.run(lambda connection: list_present(connection, after, limit))
