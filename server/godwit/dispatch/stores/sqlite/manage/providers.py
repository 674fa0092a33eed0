"""Providers of e-mail in the embedded store: their settings as JSON, and their secrets encrypted."""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

import msgspec

CONFIGURED = "default"
"""The name of the configured provider; no stored provider has it."""


class ProviderRow(NamedTuple):
    """A provider. `settings` is JSON, without the secrets."""

    name: str
    settings: bytes
    password: str
    dkim_key: str


def put_provider(connection: sqlite3.Connection, row: ProviderRow) -> bool:
    """Creates or replaces a provider; whether it is new."""
    is_new = find_provider(connection, row.name) is None
    connection.execute(
        "INSERT INTO provider (name, settings, password, dkim_key) VALUES (?, ?, seal(?), seal(?)) ON CONFLICT (name) DO UPDATE "
        "SET settings = excluded.settings, password = excluded.password, dkim_key = excluded.dkim_key",
        row,
    )
    return is_new


def find_provider(connection: sqlite3.Connection, name: str) -> ProviderRow | None:
    """One provider with its secrets."""
    return next((row for row in list_providers(connection) if row.name == name), None)


def list_providers(connection: sqlite3.Connection) -> list[ProviderRow]:
    """All providers with their secrets, by name."""
    rows = connection.execute("SELECT name, settings, unseal(password), unseal(dkim_key) FROM provider ORDER BY name")
    return [ProviderRow(*row) for row in rows]


def delete_provider(connection: sqlite3.Connection, name: str) -> bool:
    """Delete a provider; returns whether it existed."""
    return connection.execute("DELETE FROM provider WHERE name = ?", (name,)).rowcount == 1


def leave_providers(connection: sqlite3.Connection, tenant: str) -> list[ProviderRow]:
    """Remove a deleted tenant from all providers, so that a later tenant of its name has none of them. Returns the changed providers.

    A provider of only this tenant is deleted: without tenants it would serve all. It is returned without settings.
    """
    changed = []
    for row in list_providers(connection):
        settings = msgspec.json.decode(row.settings, type=dict[str, Any])
        if tenant not in settings.get("tenants", ()):
            continue
        settings["tenants"] = [name for name in settings["tenants"] if name != tenant]
        row = row._replace(settings=msgspec.json.encode(settings) if settings["tenants"] else b"")
        if row.settings:
            put_provider(connection, row)
        else:
            delete_provider(connection, row.name)
        changed.append(row)
    return changed


def has_mail(connection: sqlite3.Connection) -> bool:
    """Whether e-mail waits to be sent, or an e-mail job is open."""
    row = connection.execute(
        "SELECT 1 FROM job WHERE channel = 'email' AND is_done <> 1 "
        "UNION ALL SELECT 1 FROM delivery WHERE channel = 'email' AND state IN (1, 2, 3) LIMIT 1"
    ).fetchone()
    return row is not None
