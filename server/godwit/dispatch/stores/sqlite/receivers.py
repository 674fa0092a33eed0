"""Receivers, their addresses and API keys in the embedded store: units for the writer, and reads."""

from __future__ import annotations

import base64
import secrets
import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from ...model import ADDRESS_PREFIX, Profile
from .many.rows import pack_names
from .tenants import give_bytes_back, take_receiver


class ReceiverRow(NamedTuple):
    """One receiver, in the API's form."""

    name: str
    epoch: int
    attributes: bytes


class AddressRow(NamedTuple):
    """One address of a receiver. The secret is shown once, when it is created."""

    name: str
    channel: str
    value: str
    secret: str
    state: str


def take_number(connection: sqlite3.Connection, count: int = 1) -> int:
    """The next number of the counter that orders accepting and subscribing; for several, the last one."""
    row = connection.execute("UPDATE number SET value = value + ? RETURNING value", (count,)).fetchone()
    return int(row[0])


def find_receiver(connection: sqlite3.Connection, tenant: str, name: str) -> int | None:
    """The number of a receiver."""
    row = connection.execute("SELECT rid FROM receiver WHERE tenant = ? AND name = ?", (tenant, name)).fetchone()
    return None if row is None else int(row[0])


def find_receivers(connection: sqlite3.Connection, tenant: str, names: Iterable[str]) -> tuple[list[int], list[str]]:
    """The numbers of receivers, sorted and without repeats, and the names that do not exist."""
    found: set[int] = set()
    unknown = []
    for name in dict.fromkeys(names):
        rid = find_receiver(connection, tenant, name)
        found.add(rid) if rid is not None else unknown.append(name)
    return sorted(found), unknown


def put_receiver(connection: sqlite3.Connection, tenant: str, name: str, attributes: bytes, now_ms: int) -> bool:
    """Create or replace a receiver; returns whether it is new. A recreated one gets a new epoch, the time in milliseconds."""
    known = connection.execute(
        "SELECT preferences FROM receiver WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    profile = make_profile(attributes, b"" if known is None else known[0])
    if known is not None:
        connection.execute(
            "UPDATE receiver SET attributes = ?, profile = ? WHERE tenant = ? AND name = ?",
            (attributes, profile, tenant, name),
        )
        return False
    take_receiver(connection, tenant)
    row = connection.execute(
        "INSERT INTO receiver (tenant, name, epoch, since, attributes, profile, preferences) VALUES (?, ?, ?, ?, ?, ?, x'') "
        "RETURNING rid",
        (tenant, name, now_ms, take_number(connection), attributes, profile),
    ).fetchone()
    connection.execute("INSERT INTO head VALUES (?, ?, 0, 0, 0, 0)", (row[0], now_ms))
    return True


def put_receivers(connection: sqlite3.Connection, tenant: str, rows: Mapping[str, bytes], now_ms: int) -> None:
    """Create or replace many receivers, given as name and attributes, with one run of the statements."""
    names = pack_names(rows)
    which = "tenant = ? AND name IN (SELECT value FROM json_each(?))"
    known = dict(connection.execute(f"SELECT name, preferences FROM receiver WHERE {which}", (tenant, names)))
    connection.executemany(
        "UPDATE receiver SET attributes = ?, profile = ? WHERE tenant = ? AND name = ?",
        [(rows[name], make_profile(rows[name], known[name]), tenant, name) for name in known],
    )
    fresh = [name for name in rows if name not in known]
    if not fresh:
        return
    take_receiver(connection, tenant, len(fresh))
    since = take_number(connection)
    connection.executemany(
        "INSERT INTO receiver (tenant, name, epoch, since, attributes, profile, preferences) VALUES (?, ?, ?, ?, ?, ?, x'')",
        [(tenant, name, now_ms, since, rows[name], make_profile(rows[name], b"")) for name in fresh],
    )
    connection.execute(
        f"INSERT INTO head SELECT rid, epoch, 0, 0, 0, 0 FROM receiver WHERE {which}",
        (tenant, pack_names(fresh)),
    )


def keep_until(connection: sqlite3.Connection, tenant: str, name: str, until_ms: int) -> None:
    """Keep the receiver of an address at least until a notification expires."""
    connection.execute(
        "UPDATE receiver SET epoch = max(epoch, ?) WHERE tenant = ? AND name = ?", (until_ms, tenant, name)
    )


def forget_address(connection: sqlite3.Connection, rid: int, before_ms: int) -> None:
    """Delete the receiver of an address, unless a notification that expires later needs it."""
    row = connection.execute(
        "SELECT tenant, name FROM receiver WHERE rid = ? AND substr(name, 1, ?) = ? AND epoch < ?",
        (rid, len(ADDRESS_PREFIX), ADDRESS_PREFIX, before_ms),
    ).fetchone()
    if row is not None:
        delete_receiver(connection, *row)


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
    """Delete a receiver with its addresses, its inbox and its name in deliveries; returns whether it existed. Its routes, which
    are numbers only and have no index of their own, end when they are due, as nobody is left to reach.
    """
    rid = find_receiver(connection, tenant, name)
    if rid is None:
        return False
    take_receiver(connection, tenant, -1)
    size = "SELECT coalesce(sum(length(content) + length(email)), 0) FROM personal WHERE rid = ?"
    give_bytes_back(connection, tenant, connection.execute(size, (rid,)).fetchone()[0])
    for table in ("address", "personal", "subscription", "item", "head", "latest", "presence", "receiver"):
        connection.execute(f"DELETE FROM {table} WHERE rid = ?", (rid,))
    return True


def put_preferences(connection: sqlite3.Connection, tenant: str, name: str, preferences: bytes) -> bool:
    """Replace a receiver's preferences; false if it does not exist."""
    row = connection.execute("SELECT attributes FROM receiver WHERE tenant = ? AND name = ?", (tenant, name)).fetchone()
    if row is None:
        return False
    connection.execute(
        "UPDATE receiver SET preferences = ?, profile = ? WHERE tenant = ? AND name = ?",
        (preferences, make_profile(row[0], preferences), tenant, name),
    )
    return True


def read_preferences(connection: sqlite3.Connection, tenant: str, name: str) -> bytes | None:
    """A receiver's preferences, as JSON: category → channel → whether to send; empty: everything."""
    row = connection.execute(
        "SELECT preferences FROM receiver WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return None if row is None else bytes(row[0]) or b"{}"


def make_profile(attributes: bytes, preferences: bytes) -> bytes:
    """The profile for decisions, from preferences and attributes; empty if neither affects them."""
    known = msgspec.json.decode(attributes, type=_Attributes)
    wanted = msgspec.json.decode(preferences, type=dict[str, dict[str, bool]]) if preferences else {}
    out = frozenset(
        f"{category}/{channel}" for category, row in wanted.items() for channel, is_on in row.items() if not is_on
    )
    quiet = None if known.quiet is None else (known.quiet["start"], known.quiet["end"])
    profile = Profile(known.locale or "", known.zone or "", quiet, out)
    return b"" if profile == Profile() else msgspec.json.encode(profile)


class _Attributes(msgspec.Struct):
    locale: str | None = None
    zone: str | None = None
    quiet: dict[str, str] | None = None


def put_address(
    connection: sqlite3.Connection,
    tenant: str,
    receiver: str,
    name: str,
    channel: str,
    value: str,
    form: str | None = None,
) -> AddressRow | None:
    """Create or replace an address; None if the receiver does not exist. A new webhook gets a signing secret. Without `form`
    the stored one is kept.
    """
    rid = find_receiver(connection, tenant, receiver)
    if rid is None:
        return None
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode() if channel == "webhook" else ""
    row = connection.execute(
        "INSERT INTO address (rid, channel, name, value, secret, state, since, reason, format) "
        "VALUES (?, ?, ?, ?, seal(?), 'active', ?, '', seal(?)) "
        "ON CONFLICT (rid, channel, name) DO UPDATE SET value = excluded.value, state = 'active', reason = '', "
        "format = IIF(?, excluded.format, format) "
        "RETURNING name, channel, value, unseal(secret), state",
        (rid, channel, name, value, secret, take_number(connection), form or "", form is not None),
    ).fetchone()
    return AddressRow(*row)


def delete_address(connection: sqlite3.Connection, tenant: str, receiver: str, name: str) -> bool:
    """Delete a receiver's addresses of this name; returns whether there were any."""
    rid = find_receiver(connection, tenant, receiver)
    return connection.execute("DELETE FROM address WHERE rid = ? AND name = ?", (rid, name)).rowcount > 0
