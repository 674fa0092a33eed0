"""Tenants, their API keys and their quotas in the embedded store.

Usage is counted in the transaction that causes it. Invariant: a write beyond a quota is refused as a whole.
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ...codes import DispatchCode
from ...errors import RequestRefused
from ...model import Quotas

DAY_MS = 86_400_000
LEAVING = "leaving:"
"""Before the name of a tenant that is being deleted, in the table `progress`."""


class Usage(NamedTuple):
    """A tenant's current usage."""

    receivers: int
    stored_bytes: int
    deliveries_today: int


def put_tenant(connection: sqlite3.Connection, name: str, quotas: Quotas | None = None) -> bool:
    """Create a tenant, or set its quotas; returns whether it is new. Jobs that wait for the next day are examined again."""
    packed = msgspec.json.encode(quotas or Quotas())
    made = connection.execute("INSERT OR IGNORE INTO tenant VALUES (?, ?, 0, 0, 0, 0)", (name, packed))
    if not made.rowcount and quotas is not None:
        connection.execute("UPDATE tenant SET quotas = ? WHERE name = ?", (packed, name))
        connection.execute(
            "UPDATE job SET lease_end_ms = 0, is_done = 0 WHERE tenant = ? AND is_done IN (0, 2)", (name,)
        )
    return made.rowcount == 1


def read_tenant(connection: sqlite3.Connection, name: str, now_ms: int) -> tuple[Quotas, Usage] | None:
    """A tenant's quotas and usage."""
    row = connection.execute(
        "SELECT quotas, receivers, stored_bytes, day, deliveries FROM tenant WHERE name = ?", (name,)
    ).fetchone()
    if row is None:
        return None
    today = row[4] if row[3] == now_ms // DAY_MS else 0
    return _read_quotas(row[0]), Usage(row[1], row[2], today)


@lru_cache(maxsize=1_000)
def _read_quotas(packed: bytes) -> Quotas:
    return msgspec.json.decode(packed, type=Quotas)


def take_receiver(connection: sqlite3.Connection, tenant: str, change: int = 1) -> None:
    """Count one receiver more, or fewer; raises RequestRefused beyond the quota."""
    found = read_tenant(connection, tenant, 0)
    if found is not None and change > 0 and 0 < found[0].receivers < found[1].receivers + change:
        raise RequestRefused(
            DispatchCode.QUOTA_EXCEEDED, f"the tenant may have at most {found[0].receivers:,} receivers"
        )
    connection.execute("UPDATE tenant SET receivers = receivers + ? WHERE name = ?", (change, tenant))


def find_exceeded(connection: sqlite3.Connection, tenant: str, size: int, now_ms: int) -> str:
    """The quota that a notification of `size` bytes would exceed; empty if there is none."""
    found = read_tenant(connection, tenant, now_ms)
    return "" if found is None else judge_size(*found, size)


def judge_size(quotas: Quotas, usage: Usage, size: int) -> str:
    """The quota that `size` more bytes would exceed; empty if there is none."""
    if 0 < quotas.stored_bytes < usage.stored_bytes + size:
        return f"the tenant may store at most {quotas.stored_bytes:,} bytes"
    if 0 < quotas.deliveries_per_day <= usage.deliveries_today:
        return f"the tenant may make at most {quotas.deliveries_per_day:,} deliveries a day"
    return ""


def count_left(connection: sqlite3.Connection, tenant: str, now_ms: int) -> int | None:
    """How many more deliveries a tenant may make today; None: unlimited."""
    found = read_tenant(connection, tenant, now_ms)
    if found is None or not found[0].deliveries_per_day:
        return None
    return max(0, found[0].deliveries_per_day - found[1].deliveries_today)


def next_day_ms(now_ms: int) -> int:
    """When the next day begins (UTC)."""
    return (now_ms // DAY_MS + 1) * DAY_MS


def take_bytes(connection: sqlite3.Connection, tenant: str, size: int) -> None:
    """Count the bytes of an accepted notification."""
    connection.execute("UPDATE tenant SET stored_bytes = stored_bytes + ? WHERE name = ?", (size, tenant))


def give_bytes_back(connection: sqlite3.Connection, tenant: str, size: int) -> None:
    """Subtract the bytes of a deleted notification."""
    connection.execute("UPDATE tenant SET stored_bytes = max(0, stored_bytes - ?) WHERE name = ?", (size, tenant))


def count_deliveries(connection: sqlite3.Connection, tenant: str, count: int, now_ms: int) -> None:
    """Count deliveries that were made today."""
    day = now_ms // DAY_MS
    connection.execute(
        "UPDATE tenant SET deliveries = IIF(day = ?, deliveries, 0) + ?, day = ? WHERE name = ?",
        (day, count, day, tenant),
    )


def has_tenant(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a tenant exists. One that is being deleted does not."""
    found = connection.execute("SELECT 1 FROM tenant WHERE name = ?", (name,)).fetchone()
    return found is not None and not is_leaving(connection, name)


def has_tenants(connection: sqlite3.Connection) -> bool:
    """Whether the database has any tenant: one that was just created has none."""
    return connection.execute("SELECT 1 FROM tenant LIMIT 1").fetchone() is not None


def is_leaving(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a tenant is being deleted."""
    return connection.execute("SELECT 1 FROM progress WHERE name = ?", (LEAVING + name,)).fetchone() is not None


def put_key(connection: sqlite3.Connection, digest: bytes, tenant: str, scopes: str, is_test: bool = False) -> bool:
    """Register an API key by its digest; returns true."""
    connection.execute("INSERT OR REPLACE INTO api_key VALUES (?, ?, ?, ?)", (digest, tenant, scopes, int(is_test)))
    return True


def list_keys(connection: sqlite3.Connection, tenant: str) -> list[tuple[bytes, str, bool]]:
    """Digests and scopes of a tenant's keys, and which are test keys."""
    rows = connection.execute("SELECT digest, scopes, is_test FROM api_key WHERE tenant = ? ORDER BY digest", (tenant,))
    return [(bytes(digest), str(scopes), bool(is_test)) for digest, scopes, is_test in rows]


def delete_key(connection: sqlite3.Connection, tenant: str, name: str) -> list[bytes]:
    """Delete a tenant's key by its id, the first digits of its digest; returns the deleted digests."""
    gone = [digest for digest, _, _ in list_keys(connection, tenant) if digest.hex()[:16] == name]
    connection.executemany("DELETE FROM api_key WHERE digest = ?", [(digest,) for digest in gone])
    return gone


def find_key(connection: sqlite3.Connection, digest: bytes) -> tuple[str, str, bool] | None:
    """Tenant and scopes of an API key, and whether it is a test key."""
    row = connection.execute("SELECT tenant, scopes, is_test FROM api_key WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else (str(row[0]), str(row[1]), bool(row[2]))
