"""The changes that reports about e-mails make in the embedded store. A repeated or late report changes nothing."""

from __future__ import annotations

import sqlite3

from ....channels.email.classes import hide_addresses, is_address_gone
from ....channels.email.reports import Action, Report
from ....model import DeliveryKey, State
from ....pure.verp import Token, make_check
from ..changes import Changes
from ..fanout import hurry_route
from .wishes import BOUNCED, put_suppression

COMPLAINED = "complained"
_PENDING = (State.QUEUED, State.DEFERRED, State.SENDING)
"""The states in which the message may have been sent, and the outcome of the attempt is not stored yet."""
_KEY = "nid = ? AND rid = ? AND channel = ? AND aid = ?"


def apply_report(connection: sqlite3.Connection, token: Token, report: Report, now_ms: int) -> bool:
    """Store what a report says about a delivery. False: the outcome of its attempt is not stored yet, so the report cannot be either."""
    key = token.key
    row = connection.execute(f"SELECT state, attempt, doubt FROM delivery WHERE {_KEY}", key).fetchone()
    if report.action is Action.COMPLAINED:
        complain(connection, token, now_ms)
        return True
    if row is None:
        return True
    state = State(row[0])
    changes = Changes(connection, now_ms)
    if report.action is Action.FAILED:
        if state in _PENDING:
            return False
        if state not in (State.SENT, State.UNKNOWN):
            return True
        detail = hide_addresses(f"{report.status} {report.text}".strip())
        _move(connection, key, State.FAILED, detail)
        changes.move(key, state, State.FAILED, BOUNCED, row[1], is_doubtful=bool(row[2]))
        if is_address_gone(report.status):
            _end_address(connection, token, detail, now_ms)
    elif report.action is Action.DELIVERED:
        if state in _PENDING:
            return False
        if state is not State.SENT:
            return True
        connection.execute(f"UPDATE delivery SET state = ? WHERE {_KEY}", (int(State.DELIVERED), *key))
        changes.move(key, State.SENT, State.DELIVERED, "", row[1], is_doubtful=bool(row[2]))
    changes.store()
    hurry_route(connection, key)
    return True


def complain(connection: sqlite3.Connection, token: Token, now_ms: int) -> None:
    """The receiver complained about the e-mail: send nothing more to the address. One complaint is enough."""
    address = _find_address(connection, token)
    if address is None:
        return
    known = connection.total_changes
    put_suppression(connection, *address, "*", COMPLAINED, now_ms)
    if connection.total_changes == known:
        return
    changes = Changes(connection, now_ms)
    changes.note(token.key, f"delivery.{COMPLAINED}")
    changes.store()


def _move(connection: sqlite3.Connection, key: DeliveryKey, state: State, detail: str) -> None:
    connection.execute(
        f"UPDATE delivery SET state = ?, reason = ?, ref = ? WHERE {_KEY}", (int(state), BOUNCED, detail, *key)
    )


def _end_address(connection: sqlite3.Connection, token: Token, detail: str, now_ms: int) -> None:
    """The address is invalid: send nothing more to it."""
    if (address := _find_address(connection, token)) is None:
        return
    connection.execute("UPDATE address SET state = 'invalid', reason = ? WHERE aid = ?", (detail, token.key.aid))
    put_suppression(connection, *address, "*", BOUNCED, now_ms)


def _find_address(connection: sqlite3.Connection, token: Token) -> tuple[str, str, str] | None:
    """Tenant, channel and value of a delivery's address; None if it was erased, or changed since the message was sent."""
    row = connection.execute(
        "SELECT tenant, channel, value FROM address JOIN receiver USING (rid) WHERE aid = ? AND rid = ?",
        (token.key.aid, token.key.rid),
    ).fetchone()
    if row is None or token.check not in (b"", make_check(str(row[2]))):
        return None
    return str(row[0]), str(row[1]), str(row[2])
