"""What reports about e-mails change in the embedded store. A repeated or late one changes nothing."""

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
"""The message may be out, and the outcome of the attempt is stored in a moment, or after the next one."""
_KEY = "nid = ? AND rid = ? AND channel = ? AND aid = ?"


def apply_report(connection: sqlite3.Connection, token: Token, report: Report, now_ms: int) -> bool:
    """Stores what a report says about a delivery. False: the outcome of its attempt is not stored yet, so nothing can be."""
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
    """The receiver called the e-mail unwanted: nothing more is sent to the address. Once is enough."""
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
    """The address is of no use: nothing more is sent to it."""
    if (address := _find_address(connection, token)) is None:
        return
    connection.execute("UPDATE address SET state = 'invalid', reason = ? WHERE aid = ?", (detail, token.key.aid))
    put_suppression(connection, *address, "*", BOUNCED, now_ms)


def _find_address(connection: sqlite3.Connection, token: Token) -> tuple[str, str, str] | None:
    """Tenant, channel and value of a delivery's address; None where it was erased, or changed since the message was sent."""
    row = connection.execute(
        "SELECT tenant, channel, value FROM address JOIN receiver USING (rid) WHERE aid = ? AND rid = ?",
        (token.key.aid, token.key.rid),
    ).fetchone()
    if row is None or token.check not in (b"", make_check(str(row[2]))):
        return None
    return str(row[0]), str(row[1]), str(row[2])
