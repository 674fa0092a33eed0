"""Deletes a tenant and everything that belongs to it from the embedded store.

Its keys and providers are deleted first, so that nothing more is accepted, and its own row last. It works in bounded
units, so that other tenants do not wait. A deletion that was interrupted is finished by retention; until then the tenant
does not exist.
"""

from __future__ import annotations

import sqlite3

from ..many.rows import pack_list
from ..receivers import delete_receiver
from ..retention import forget_notification
from ..tenants import LEAVING, has_tenant, is_leaving
from .providers import ProviderRow, leave_providers

ROWS = 500
_NEVER_MS = 2**62
_SMALL = ("template", "category", "suppression", "presence_tenant")


def begin(connection: sqlite3.Connection, tenant: str) -> tuple[list[bytes], list[ProviderRow]] | None:
    """Delete a tenant's API keys and webhooks, and take it from all providers; `cancel_some` then ends its jobs. Returns the
    digests of the keys and the providers that changed. None: no such tenant.
    """
    if not has_tenant(connection, tenant):
        return None
    connection.execute("INSERT INTO progress VALUES (?, 1)", (LEAVING + tenant,))
    rows = connection.execute("DELETE FROM api_key WHERE tenant = ? RETURNING digest", (tenant,)).fetchall()
    connection.execute("DELETE FROM webhook_letter WHERE wid IN (SELECT wid FROM webhook WHERE tenant = ?)", (tenant,))
    connection.execute("DELETE FROM webhook WHERE tenant = ?", (tenant,))
    return [digest for (digest,) in rows], leave_providers(connection, tenant)


def cancel_some(connection: sqlite3.Connection, tenant: str, after: str) -> str | None:
    """Cancel some notifications of a tenant that is being deleted, in the order of their ids, and end their jobs. Returns the
    last id examined, None at the end.
    """
    if not is_leaving(connection, tenant):
        return None
    rows = connection.execute(
        "SELECT id, nid FROM notification WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?", (tenant, after, ROWS)
    ).fetchall()
    nids = pack_list(nid for _, nid in rows)
    which = "nid IN (SELECT value FROM json_each(?))"
    connection.execute(f"UPDATE notification SET state = 'cancelled' WHERE {which} AND state <> 'cancelled'", (nids,))
    connection.execute(f"UPDATE job SET is_done = 1, fence = fence + 1 WHERE {which} AND is_done <> 1", (nids,))
    return str(rows[-1][0]) if len(rows) == ROWS else None


def list_leaving(connection: sqlite3.Connection) -> list[str]:
    """The tenants whose deletion is not finished."""
    rows = connection.execute("SELECT name FROM progress WHERE name BETWEEN ? AND ?", (LEAVING, LEAVING + "\U0010ffff"))
    return [name.removeprefix(LEAVING) for (name,) in rows]


def delete_some(connection: sqlite3.Connection, tenant: str) -> bool:
    """Delete some rows of a tenant that is being deleted; false once none are left."""
    if not is_leaving(connection, tenant):  # finished by another request, and perhaps created again
        return False
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
    connection.execute("DELETE FROM progress WHERE name = ?", (LEAVING + tenant,))
    return False
