"""Receivers, their addresses and API keys in the embedded store: units for the writer, and reads."""

from __future__ import annotations

import base64
import secrets
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple


class ReceiverRow(NamedTuple):
    """One receiver, as the API shows it."""

    name: str
    epoch: int
    attributes: bytes


class AddressRow(NamedTuple):
    """One address of a receiver. The secret is shown once, when it is made."""

    name: str
    channel: str
    value: str
    secret: str
    state: str


def take_number(connection: sqlite3.Connection) -> int:
    """The next number of the one counter that orders accepting and subscribing."""
    row = connection.execute("UPDATE number SET value = value + 1 RETURNING value").fetchone()
    return int(row[0])


def find_receiver(connection: sqlite3.Connection, tenant: str, name: str) -> int | None:
    """The number of a receiver."""
    row = connection.execute("SELECT rid FROM receiver WHERE tenant = ? AND name = ?", (tenant, name)).fetchone()
    return None if row is None else int(row[0])


def find_receivers(connection: sqlite3.Connection, tenant: str, names: Iterable[str]) -> tuple[list[int], list[str]]:
    """The numbers of receivers, sorted and each once, and the names that do not exist."""
    found: set[int] = set()
    unknown = []
    for name in dict.fromkeys(names):
        rid = find_receiver(connection, tenant, name)
        found.add(rid) if rid is not None else unknown.append(name)
    return sorted(found), unknown


def put_receiver(connection: sqlite3.Connection, tenant: str, name: str, attributes: bytes, now_ms: int) -> bool:
    """Creates or replaces a receiver; whether it is new. A recreated one gets a new epoch, the time in milliseconds."""
    changed = connection.execute(
        "UPDATE receiver SET attributes = ? WHERE tenant = ? AND name = ?", (attributes, tenant, name)
    )
    if changed.rowcount:
        return False
    row = connection.execute(
        "INSERT INTO receiver (tenant, name, epoch, since, attributes) VALUES (?, ?, ?, ?, ?) RETURNING rid",
        (tenant, name, now_ms, take_number(connection), attributes),
    ).fetchone()
    connection.execute("INSERT INTO head VALUES (?, ?, 0, 0, 0, 0)", (row[0], now_ms))
    return True


def read_receiver(
    connection: sqlite3.Connection, tenant: str, name: str
) -> tuple[ReceiverRow, list[AddressRow]] | None:
    """A receiver and its addresses, without their secrets."""
    row = connection.execute(
        "SELECT rid, name, epoch, attributes FROM receiver WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    if row is None:
        return None
    addresses = connection.execute(
        "SELECT name, channel, value, '', state FROM address WHERE rid = ? ORDER BY aid", (row[0],)
    )
    return ReceiverRow(*row[1:]), [AddressRow(*address) for address in addresses]


def delete_receiver(connection: sqlite3.Connection, tenant: str, name: str) -> bool:
    """Deletes a receiver with its addresses, inbox and deliveries' names; whether there was one."""
    rid = find_receiver(connection, tenant, name)
    if rid is None:
        return False
    for table in ("address", "subscription", "item", "head", "receiver"):
        connection.execute(f"DELETE FROM {table} WHERE rid = ?", (rid,))
    return True


def put_address(
    connection: sqlite3.Connection, tenant: str, receiver: str, name: str, channel: str, value: str
) -> AddressRow | None:
    """Creates or replaces an address; None where the receiver does not exist. A new webhook gets a signing secret."""
    rid = find_receiver(connection, tenant, receiver)
    if rid is None:
        return None
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode() if channel == "webhook" else ""
    row = connection.execute(
        "INSERT INTO address (rid, channel, name, value, secret, state, since, reason) VALUES (?, ?, ?, ?, ?, 'active', ?, '') "
        "ON CONFLICT (rid, channel, name) DO UPDATE SET value = excluded.value, state = 'active', reason = '' "
        "RETURNING name, channel, value, secret, state",
        (rid, channel, name, value, secret, take_number(connection)),
    ).fetchone()
    return AddressRow(*row)


def put_tenant(connection: sqlite3.Connection, name: str) -> bool:
    """Creates a tenant; whether it is new."""
    return connection.execute("INSERT OR IGNORE INTO tenant VALUES (?)", (name,)).rowcount == 1


def has_tenant(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a tenant exists."""
    return connection.execute("SELECT 1 FROM tenant WHERE name = ?", (name,)).fetchone() is not None


def put_key(connection: sqlite3.Connection, digest: bytes, tenant: str, scopes: str) -> bool:
    """Registers an API key by its digest; true."""
    connection.execute("INSERT OR REPLACE INTO api_key VALUES (?, ?, ?)", (digest, tenant, scopes))
    return True


def list_keys(connection: sqlite3.Connection, tenant: str) -> list[tuple[bytes, str]]:
    """Digests and scopes of a tenant's keys."""
    rows = connection.execute("SELECT digest, scopes FROM api_key WHERE tenant = ? ORDER BY digest", (tenant,))
    return [(bytes(digest), str(scopes)) for digest, scopes in rows]


def delete_key(connection: sqlite3.Connection, tenant: str, name: str) -> list[bytes]:
    """Deletes a tenant's key by its id, the first digits of its digest; the digests that are gone."""
    gone = [digest for digest, _ in list_keys(connection, tenant) if digest.hex()[:16] == name]
    connection.executemany("DELETE FROM api_key WHERE digest = ?", [(digest,) for digest in gone])
    return gone


def find_key(connection: sqlite3.Connection, digest: bytes) -> tuple[str, str] | None:
    """Tenant and scopes of an API key."""
    row = connection.execute("SELECT tenant, scopes FROM api_key WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else (str(row[0]), str(row[1]))
