"""Groups and their subscriptions in the embedded store.

A group has versions; notifications go to the current one. An import writes another version, which then becomes the
current one at once. Invariant: a notification goes to the version that was current when it was accepted, and to
subscriptions made before it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from .receivers import find_receiver, take_number

IMPORT_BEGUN = "import:"
"""Before number and version of a group whose import was begun and has not ended, in the table `progress`."""


def find_group(connection: sqlite3.Connection, tenant: str, name: str) -> tuple[int, int] | None:
    """Number and current version of a group."""
    row = connection.execute(
        "SELECT gid, version FROM receiver_group WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def put_group(connection: sqlite3.Connection, tenant: str, name: str) -> bool:
    """Create a group, with version 0; returns whether it is new."""
    made = connection.execute(
        "INSERT OR IGNORE INTO receiver_group (tenant, name, version) VALUES (?, ?, 0)", (tenant, name)
    )
    return made.rowcount == 1


def count_group(connection: sqlite3.Connection, tenant: str, name: str) -> tuple[int, int, int] | None:
    """The current version of a group, its number of receivers, and the last imported version, complete or not."""
    found = find_group(connection, tenant, name)
    if found is None:
        return None
    count = connection.execute("SELECT count(*) FROM subscription WHERE gid = ? AND version = ?", found).fetchone()[0]
    last = connection.execute("SELECT max(version) FROM subscription WHERE gid = ?", found[:1]).fetchone()[0]
    return found[1], int(count), max(found[1], last or 0)


def delete_some(connection: sqlite3.Connection, tenant: str, name: str, limit: int) -> bool | None:
    """Delete subscriptions of all versions of a group, and with the last ones the group; returns whether some are left. None: no
    such group. Jobs that read it end. After a crash the next request deletes the rest.
    """
    found = find_group(connection, tenant, name)
    if found is None:
        return None
    page = connection.execute(
        "DELETE FROM subscription WHERE gid = ?1 AND (version, rid) IN "
        "(SELECT version, rid FROM subscription WHERE gid = ?1 LIMIT ?2)",
        (found[0], limit),
    )
    if page.rowcount == limit:
        return True
    connection.execute("DELETE FROM receiver_group WHERE gid = ?", found[:1])
    connection.execute("DELETE FROM progress WHERE name GLOB ?", (f"{IMPORT_BEGUN}{found[0]}:*",))
    return False


def subscribe(
    connection: sqlite3.Connection, tenant: str, group: str, receivers: Iterable[str], version: int | None
) -> list[str] | None:
    """Add receivers to a version of a group (None: the current one); returns the names that do not exist. None: no such group."""
    found = find_group(connection, tenant, group)
    if found is None:
        return None
    gid, current = found
    since = take_number(connection)
    unknown = []
    for name in receivers:
        rid = find_receiver(connection, tenant, name)
        if rid is None:
            unknown.append(name)
        else:
            row = (gid, current if version is None else version, rid, since)
            connection.execute("INSERT OR IGNORE INTO subscription VALUES (?, ?, ?, ?)", row)
    return unknown


def is_subscribed(connection: sqlite3.Connection, tenant: str, group: str, receiver: str) -> bool | None:
    """Whether a receiver is in the current version; None: no such group."""
    found, rid = find_group(connection, tenant, group), find_receiver(connection, tenant, receiver)
    if found is None:
        return None
    query = "SELECT 1 FROM subscription WHERE gid = ? AND version = ? AND rid = ?"
    return connection.execute(query, (*found, rid)).fetchone() is not None


def unsubscribe(connection: sqlite3.Connection, tenant: str, group: str, receiver: str) -> bool:
    """Remove a receiver from all versions, because notifications that wait belong to earlier ones; returns whether it was in the
    current one.
    """
    found, rid = find_group(connection, tenant, group), find_receiver(connection, tenant, receiver)
    if found is None or rid is None:
        return False
    gid, current = found
    gone = connection.execute(
        "DELETE FROM subscription WHERE gid = ? AND rid = ? RETURNING version", (gid, rid)
    ).fetchall()
    return (current,) in gone


def set_version(connection: sqlite3.Connection, tenant: str, group: str, version: int) -> bool:
    """Make a version the current one. Older ones stay for notifications that were accepted before."""
    changed = connection.execute(
        "UPDATE receiver_group SET version = ? WHERE tenant = ? AND name = ?", (version, tenant, group)
    )
    return changed.rowcount == 1
