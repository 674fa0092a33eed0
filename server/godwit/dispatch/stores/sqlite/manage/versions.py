"""Versions of groups in the embedded store: which exist, which import is not finished, and which nobody needs any more.

The current version, the one before it, which an operator may switch back to, and newer ones, which may be imported now,
are kept. Older ones are deleted in pages once no notification reads them.
"""

from __future__ import annotations

import sqlite3

from ..groups import IMPORT_BEGUN, find_group

_READ = (
    "SELECT EXISTS (SELECT 1 FROM notification AS n WHERE gid > 0 AND gid = ? AND version = ? AND (state = 'accepted' OR "
    "state = 'routed' AND EXISTS (SELECT 1 FROM job WHERE job.nid = n.nid AND is_done <> 1)))"
)
_NEXT = "SELECT min(version) FROM subscription WHERE gid = ? AND version > ?"
_BEFORE = (
    "(SELECT version FROM subscription WHERE subscription.gid = receiver_group.gid "
    "AND subscription.version < receiver_group.version ORDER BY subscription.version {} LIMIT 1)"
)


def begin_import(connection: sqlite3.Connection, gid: int, version: int) -> None:
    """Lines of a version arrive: until `end_import` it cannot become the current one."""
    connection.execute("INSERT OR REPLACE INTO progress VALUES (?, 1)", (_name(gid, version),))


def end_import(connection: sqlite3.Connection, gid: int, version: int) -> None:
    """All lines of a request are stored."""
    connection.execute("DELETE FROM progress WHERE name = ?", (_name(gid, version),))


def may_switch(connection: sqlite3.Connection, tenant: str, group: str, version: int) -> str | None:
    """Why a version cannot become the current one, empty if it can; None: no such group."""
    found = find_group(connection, tenant, group)
    if found is None:
        return None
    gid, current = found
    query = "SELECT 1 FROM subscription WHERE gid = ? AND version = ? LIMIT 1"
    if version != current and connection.execute(query, (gid, version)).fetchone() is None:
        return f"version {version} has no receivers: import it first; the current one is {current}"
    query = "SELECT 1 FROM progress WHERE name = ?"
    if connection.execute(query, (_name(gid, version),)).fetchone() is not None:
        return f"the import of version {version} was interrupted or is running: send its lines again, or continue with after_line"
    return ""


def list_old(connection: sqlite3.Connection, after: int, limit: int) -> tuple[list[tuple[int, int]], int]:
    """The versions of groups after a number that are older than the one before the current, each with its group; the last
    group examined, 0 at the end.
    """
    rows = connection.execute(
        f"SELECT gid, {_BEFORE.format('ASC')}, {_BEFORE.format('DESC')} FROM receiver_group WHERE gid > ? ORDER BY gid LIMIT ?",
        (after, limit),
    ).fetchall()
    old: list[tuple[int, int]] = []
    for gid, oldest, before in rows:
        while oldest is not None and oldest < before and len(old) < limit:
            old.append((gid, oldest))
            (oldest,) = connection.execute(_NEXT, (gid, oldest)).fetchone()
    return old, rows[-1][0] if len(rows) == limit else 0


def forget_version(connection: sqlite3.Connection, gid: int, version: int, limit: int) -> bool:
    """Delete some rows of an old version of a group, unless it is read or current; returns whether some may be left."""
    row = connection.execute("SELECT version FROM receiver_group WHERE gid = ?", (gid,)).fetchone()
    if row is None or row[0] <= version or connection.execute(_READ, (gid, version)).fetchone()[0]:
        return False
    gone = connection.execute(
        "DELETE FROM subscription WHERE gid = ?1 AND version = ?2 AND rid IN "
        "(SELECT rid FROM subscription WHERE gid = ?1 AND version = ?2 LIMIT ?3)",
        (gid, version, limit),
    )
    end_import(connection, gid, version)
    return gone.rowcount == limit


def _name(gid: int, version: int) -> str:
    return f"{IMPORT_BEGUN}{gid}:{version}"
