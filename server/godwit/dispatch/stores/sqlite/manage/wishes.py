"""Categories and suppressions in the embedded store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ..deciding import digest_value

BOUNCED = "bounced"
"""The reason if an address is unknown to its mail server."""


def list_categories(
    connection: sqlite3.Connection, tenant: str, name: str | None = None
) -> list[tuple[str, bool, int | None]]:
    """A tenant's categories, or the one of this name: name, whether it is required, default `expires_s`."""
    rows = connection.execute(
        "SELECT name, is_required, expires_s FROM category WHERE tenant = ? AND (? IS NULL OR name = ?) ORDER BY name",
        (tenant, name, name),
    )
    return [(found, bool(is_required), expires_s) for found, is_required, expires_s in rows]


def put_category(
    connection: sqlite3.Connection, tenant: str, name: str, is_required: bool, expires_s: int | None
) -> bool:
    """Create or replace a category; returns whether it is new."""
    is_new = not list_categories(connection, tenant, name)
    connection.execute(
        "INSERT OR REPLACE INTO category VALUES (?, ?, ?, ?)", (tenant, name, int(is_required), expires_s)
    )
    return is_new


def delete_category(connection: sqlite3.Connection, tenant: str, name: str) -> bool:
    """Delete a category; returns whether it existed."""
    return connection.execute("DELETE FROM category WHERE tenant = ? AND name = ?", (tenant, name)).rowcount == 1


def list_suppressions(
    connection: sqlite3.Connection, tenant: str, channel: str, value: str
) -> list[tuple[str, str, int]]:
    """The suppressions of an address: category, reason, since when."""
    rows = connection.execute(
        "SELECT category, reason, since_ms FROM suppression WHERE tenant = ? AND channel = ? AND value = ? ORDER BY category",
        (tenant, channel, digest_value(channel, value)),
    )
    return rows.fetchall()


def put_suppression(
    connection: sqlite3.Connection, tenant: str, channel: str, value: str, category: str, reason: str, now_ms: int
) -> None:
    """Suppress a category (`*`: all) for an address. An existing suppression stays unchanged."""
    put_digest(connection, tenant, channel, digest_value(channel, value), category, reason, now_ms)


def put_digest(
    connection: sqlite3.Connection, tenant: str, channel: str, digest: str, category: str, reason: str, now_ms: int
) -> None:
    """Suppress a category for an address known only by its digest."""
    row = (tenant, channel, digest, category, reason, now_ms)
    connection.execute("INSERT OR IGNORE INTO suppression VALUES (?, ?, ?, ?, ?, ?)", row)


def list_invalid(connection: sqlite3.Connection, tenant: str, channel: str, value: str) -> list[int]:
    """A tenant's addresses with this value that were found to be invalid. It reads every address, for infrequent requests."""
    rows = connection.execute(
        "SELECT aid, value FROM address JOIN receiver USING (rid) WHERE tenant = ? AND channel = ? AND address.state = 'invalid'",
        (tenant, channel),
    )
    digest = digest_value(channel, value)
    return [aid for aid, found in rows if digest_value(channel, found) == digest]


def revive(connection: sqlite3.Connection, aids: Sequence[int]) -> None:
    """Use invalid addresses again."""
    query = "UPDATE address SET state = 'active', reason = '' WHERE aid = ? AND state = 'invalid'"
    connection.executemany(query, [(aid,) for aid in aids])


def delete_suppressions(connection: sqlite3.Connection, tenant: str, channel: str, value: str) -> bool:
    """Delete all suppressions of an address; returns whether there were any."""
    gone = connection.execute(
        "DELETE FROM suppression WHERE tenant = ? AND channel = ? AND value = ?",
        (tenant, channel, digest_value(channel, value)),
    )
    return gone.rowcount > 0
