"""Deletes a tenant and everything that belongs to it from the embedded store.

Its keys are deleted first, so that nothing more is accepted, and its own row last: after a crash the next request deletes
the rest. It works in bounded units, so that other tenants do not wait.
"""

from __future__ import annotations

import sqlite3

from ..receivers import delete_receiver
from ..retention import forget_notification
from ..tenants import has_tenant

ROWS = 500
_NEVER_MS = 2**62
_SMALL = ("template", "category", "suppression", "presence_tenant")


def take_keys(connection: sqlite3.Connection, tenant: str) -> list[bytes] | None:
    """Delete a tenant's API keys, and end its jobs; returns the digests of the keys. None: no such tenant."""
    if not has_tenant(connection, tenant):
        return None
    rows = connection.execute("DELETE FROM api_key WHERE tenant = ? RETURNING digest", (tenant,)).fetchall()
    connection.execute("UPDATE notification SET state = 'cancelled' WHERE tenant = ?", (tenant,))
    connection.execute("UPDATE job SET is_done = 1, fence = fence + 1 WHERE tenant = ?", (tenant,))
    connection.execute("DELETE FROM webhook_letter WHERE wid IN (SELECT wid FROM webhook WHERE tenant = ?)", (tenant,))
    connection.execute("DELETE FROM webhook WHERE tenant = ?", (tenant,))
    return [digest for (digest,) in rows]


def delete_some(connection: sqlite3.Connection, tenant: str) -> bool:
    """Delete some rows of a tenant; false once none are left."""
    nid = connection.execute("SELECT nid FROM notification WHERE tenant = ? LIMIT 1", (tenant,)).fetchone()
    if nid is not None:
        forget_notification(connection, nid[0], ROWS, _NEVER_MS, [])
        return True
    names = connection.execute("SELECT name FROM receiver WHERE tenant = ? LIMIT ?", (tenant, ROWS // 5)).fetchall()
    for (name,) in names:
        delete_receiver(connection, tenant, name)
    if names:
        return True
    events = connection.execute(
        "DELETE FROM event WHERE eid IN (SELECT eid FROM event WHERE tenant = ? LIMIT ?)", (tenant, ROWS)
    )
    if events.rowcount:
        return True
    subscribed = connection.execute(
        "DELETE FROM subscription WHERE (gid, version, rid) IN (SELECT gid, subscription.version, rid FROM subscription "
        "JOIN receiver_group USING (gid) WHERE tenant = ? LIMIT ?)",
        (tenant, ROWS),
    )
    if subscribed.rowcount:
        return True
    connection.execute("DELETE FROM receiver_group WHERE tenant = ?", (tenant,))
    for table in _SMALL:
        connection.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))
    connection.execute("DELETE FROM api_key WHERE tenant = ?", (tenant,))
    connection.execute("DELETE FROM tenant WHERE name = ?", (tenant,))
    return False
