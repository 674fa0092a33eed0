"""Copies of e-mails in the embedded store: each is a delivery of its own.

They are inserted in the transaction that stores the receiver's first e-mail as sent, so that a copy is neither lost nor
sent twice. A copy is retried, suppressed and counted like any other delivery.
"""

from __future__ import annotations

import sqlite3

from ....model import DeliveryKey, State
from ..changes import Changes
from ..deciding import read_options


def add_copies(connection: sqlite3.Connection, sent: DeliveryKey, changes: Changes) -> None:
    """Insert the copies of a receiver's e-mail that was sent. Does nothing if they exist, or if the e-mail is a copy itself."""
    row = connection.execute("SELECT options FROM notification WHERE nid = ?", (sent.nid,)).fetchone()
    if sent.aid < 0 or row is None:
        return
    for number in range(len(read_options(bytes(row[0])).copies)):
        key = sent._replace(aid=-1 - number)
        made = connection.execute(
            "INSERT OR IGNORE INTO delivery VALUES (?, ?, ?, ?, ?, 0, ?, 0, '', '')",
            (*key, int(State.DEFERRED), changes.now_ms),
        )
        if made.rowcount:
            changes.insert(key, State.DEFERRED)
