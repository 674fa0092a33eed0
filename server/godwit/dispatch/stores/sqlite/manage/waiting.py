"""What became of a delivery that waited for a provider after it had begun, in the embedded store."""

from __future__ import annotations

import sqlite3

from ....model import Shipment, State
from ..collapsing import is_superseded
from ..deciding import decide_all, find_target, read_facts


def find_end(connection: sqlite3.Connection, shipment: Shipment, now_ms: int) -> tuple[State, str] | None:
    """How the delivery ended, and why. DEFERRED: decide again, because its address changed. None: send it."""
    key = shipment.key
    facts = read_facts(connection, key.nid)
    if facts is None or facts.is_cancelled:
        return State.CANCELLED, ""
    found = find_target(connection, key, facts.options.copies)
    if found is None:
        return State.FAILED, "address"
    if found[0].value != shipment.target.value:
        return State.DEFERRED, ""
    if facts.options.collapse_key and is_superseded(connection, key):
        return State.COLLAPSED, "newer"
    (target,) = decide_all(connection, facts, key.channel, [found], now_ms)
    verdict = target.verdict
    return None if verdict.state in (State.QUEUED, State.DEFERRED) else (verdict.state, verdict.reason)
