"""Event webhooks in the embedded store: each is a cursor over its tenant's events."""

from __future__ import annotations

import base64
import secrets
import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ..changes import add_event

ROTATION_MS = 86_400_000
_COLUMNS = (
    "wid, tenant, name, url, unseal(secret), unseal(old_secret), old_until_ms, types, detail, cursor, state, failures, "
    "failing_since_ms, due_ms, reason"
)
LETTERS_MAX = 1_000


class Hook(NamedTuple):
    """One event webhook. `types` is empty for all."""

    wid: int
    tenant: str
    name: str
    url: str
    secret: str
    old_secret: str
    old_until_ms: int
    types: str
    detail: str
    cursor: int
    state: str
    failures: int
    failing_since_ms: int
    due_ms: int
    reason: str

    @property
    def type_list(self) -> tuple[str, ...]:
        """The types of events that it receives."""
        return tuple(self.types.split())


def make_secret() -> str:
    """A signing secret of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def put_hook(
    connection: sqlite3.Connection, tenant: str, name: str, url: str, types: Sequence[str], detail: str
) -> tuple[Hook, bool]:
    """Create a webhook that begins with the next event, or change one; returns whether it is new. A disabled one becomes active again."""
    packed = " ".join(sorted(set(types)))
    changed = connection.execute(
        "UPDATE webhook SET url = ?, types = ?, detail = ?, state = 'active', failures = 0, due_ms = 0, reason = '' "
        "WHERE tenant = ? AND name = ?",
        (url, packed, detail, tenant, name),
    )
    if not changed.rowcount:
        last = connection.execute("SELECT coalesce(max(eid), 0) FROM event").fetchone()[0]
        row = (tenant, name, url, make_secret(), packed, detail, last)
        connection.execute(
            "INSERT INTO webhook (tenant, name, url, secret, old_secret, old_until_ms, types, detail, cursor, state, failures, "
            "failing_since_ms, due_ms, reason) VALUES (?, ?, ?, seal(?), '', 0, ?, ?, ?, 'active', 0, 0, 0, '')",
            row,
        )
    return list_hooks_of(connection, tenant, name)[0], not changed.rowcount


def list_hooks_of(connection: sqlite3.Connection, tenant: str, name: str | None = None) -> list[Hook]:
    """A tenant's webhooks, or the one of this name."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM webhook WHERE tenant = ? AND (? IS NULL OR name = ?) ORDER BY name",
        (tenant, name, name),
    )
    return [Hook(*row) for row in rows]


def list_ready(connection: sqlite3.Connection, now_ms: int) -> list[Hook]:
    """Active webhooks that are due and have events to send."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM webhook WHERE state = 'active' AND due_ms <= ? "
        "AND cursor < coalesce((SELECT max(eid) FROM event WHERE event.tenant = webhook.tenant), 0)",
        (now_ms,),
    )
    return [Hook(*row) for row in rows]


def delete_hook(connection: sqlite3.Connection, tenant: str, name: str) -> bool:
    """Delete a webhook with its dead letters; returns whether it existed."""
    found = list_hooks_of(connection, tenant, name)
    for hook in found:
        connection.execute("DELETE FROM webhook_letter WHERE wid = ?", (hook.wid,))
        connection.execute("DELETE FROM webhook WHERE wid = ?", (hook.wid,))
    return bool(found)


def rotate(connection: sqlite3.Connection, tenant: str, name: str, now_ms: int) -> Hook | None:
    """Make a new secret; the old one also signs for a day."""
    connection.execute(
        "UPDATE webhook SET old_secret = secret, old_until_ms = ?, secret = seal(?) WHERE tenant = ? AND name = ?",
        (now_ms + ROTATION_MS, make_secret(), tenant, name),
    )
    found = list_hooks_of(connection, tenant, name)
    return found[0] if found else None


def replay(connection: sqlite3.Connection, tenant: str, name: str, after: int) -> bool:
    """Send the events after a number again, also if the webhook was disabled."""
    changed = connection.execute(
        "UPDATE webhook SET cursor = ?, state = 'active', failures = 0, due_ms = 0, reason = '' WHERE tenant = ? AND name = ?",
        (after, tenant, name),
    )
    return changed.rowcount == 1


def move(connection: sqlite3.Connection, hook: Hook, cursor: int) -> Hook | None:
    """Everything up to `cursor` was sent. Returns the stored webhook; None if it was changed since `hook` was read."""
    row = connection.execute(
        f"UPDATE webhook SET cursor = ?, failures = 0, reason = '' WHERE {_SAME} RETURNING {_COLUMNS}",
        (cursor, *_same(hook)),
    ).fetchone()
    return None if row is None else Hook(*row)


def fail(connection: sqlite3.Connection, hook: Hook, failures: int, since_ms: int, due_ms: int, reason: str) -> None:
    """The endpoint failed; its next probe is due at `due_ms`."""
    connection.execute(
        f"UPDATE webhook SET failures = ?, failing_since_ms = ?, due_ms = ?, reason = ? WHERE {_SAME}",
        (failures, since_ms, due_ms, reason, *_same(hook)),
    )


def disable(connection: sqlite3.Connection, hook: Hook, reason: str, now_ms: int) -> None:
    """Send nothing more until the webhook is stored again; the feed reports it."""
    changed = connection.execute(
        f"UPDATE webhook SET state = 'disabled', reason = ? WHERE {_SAME}", (reason, *_same(hook))
    )
    if changed.rowcount:
        add_event(connection, hook.tenant, "webhook.disabled", 0, "", hook.name, now_ms, [])


def bury(connection: sqlite3.Connection, hook: Hook, eid: int, part: str, reason: str, now_ms: int) -> None:
    """Store an event that was rejected for good. The last LETTERS_MAX are kept, and none of a deleted webhook."""
    connection.execute(
        f"INSERT OR REPLACE INTO webhook_letter SELECT wid, ?, ?, ?, ? FROM webhook WHERE {_SAME}",
        (eid, part, reason, now_ms, *_same(hook)),
    )
    connection.execute(
        "DELETE FROM webhook_letter WHERE wid = ? AND eid <= "
        "(SELECT eid FROM webhook_letter WHERE wid = ? ORDER BY eid DESC LIMIT 1 OFFSET ?)",
        (hook.wid, hook.wid, LETTERS_MAX),
    )


def forget_letters(connection: sqlite3.Connection, before_ms: int, limit: int) -> int:
    """Delete some old letters; returns their number."""
    return connection.execute(
        "DELETE FROM webhook_letter WHERE (wid, eid, part) IN "
        "(SELECT wid, eid, part FROM webhook_letter WHERE time_ms < ? LIMIT ?)",
        (before_ms, limit),
    ).rowcount


_SAME = "wid = ? AND cursor = ? AND url = ? AND state = 'active'"
"""A webhook that was not replayed, moved or deleted since it was read."""


def _same(hook: Hook) -> tuple[int, int, str]:
    return hook.wid, hook.cursor, hook.url


def list_letters(connection: sqlite3.Connection, wid: int, limit: int) -> list[tuple[int, str, str, int]]:
    """Rejected events: number, part, reason, time."""
    return connection.execute(
        "SELECT eid, part, reason, time_ms FROM webhook_letter WHERE wid = ? ORDER BY eid DESC LIMIT ?", (wid, limit)
    ).fetchall()
