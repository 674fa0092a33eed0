"""The attempts of each delivery in the embedded store, with their results and times.

An attempt is written when its outcome is stored, or when its outcome will stay unknown. A throttled send is not an
attempt.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ....model import DeliveryKey, State

KEPT_MAX = 50
"""How many attempts of one delivery are kept; older ones are deleted."""


class AttemptRow(NamedTuple):
    """One attempt, in the API's form."""

    attempt: int
    state: str
    reason: str
    ref: str
    time_ms: int
    """The time at which its outcome was stored."""


def note_attempt(
    connection: sqlite3.Connection,
    key: DeliveryKey,
    number: int,
    state: State,
    now_ms: int,
    *,
    reason: str = "",
    ref: str = "",
) -> None:
    """Store an attempt's result. A later fact about the same attempt replaces it."""
    connection.execute(
        "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, number, int(state), reason, ref, now_ms),
    )
    if number > KEPT_MAX:
        connection.execute(
            "DELETE FROM attempt WHERE nid = ? AND rid = ? AND channel = ? AND aid = ? AND number <= ?",
            (*key, number - KEPT_MAX),
        )


def list_attempts(connection: sqlite3.Connection, key: DeliveryKey) -> list[AttemptRow]:
    """The attempts of a delivery whose outcome is known, oldest first."""
    rows = connection.execute(
        "SELECT number, state, reason, ref, time_ms FROM attempt WHERE nid = ? AND rid = ? AND channel = ? AND aid = ? "
        "ORDER BY number",
        key,
    )
    return [
        AttemptRow(number, State(state).label, reason, ref, time_ms) for number, state, reason, ref, time_ms in rows
    ]
