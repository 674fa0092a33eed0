"""Deliveries in the embedded store: the operations of a channel's workers, each a unit of the writer.

Invariant: a delivery starts an attempt only from the state `queued` with the attempt number that its worker knows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...model import DeliveryKey, Outcome, PutOff, Shipment, State, Target
from ...pure.rank import may_settle
from ...pure.sandbox import is_sandbox
from .changes import Changes
from .collapsing import is_superseded, release_value, retake_value
from .deciding import Facts, decide_all, digest_value, find_target, read_facts
from .manage.attempts import note_attempt
from .manage.copies import add_copies
from .manage.pausing import hold, is_paused, note_render
from .manage.wishes import BOUNCED, put_suppression
from .many.rows import PAIR, pack_rows

NEXT_STEP = "next_step"
"""The reason of a delivery whose policy went to the next step. One that is being sent then is not retried."""
_KEY = "nid = ? AND rid = ? AND channel = ? AND aid = ?"
_KEPT_ADDRESS = "(SELECT value FROM address WHERE aid = ? AND state = 'active')"
_KEPT_RECEIVER = "(SELECT 1 FROM receiver WHERE rid = ?)"


def advance(
    connection: sqlite3.Connection,
    outcomes: Sequence[Outcome],
    starts: Sequence[Shipment],
    in_flight: Sequence[Shipment],
    now_ms: int,
    due_ms: int,
) -> list[Shipment]:
    """One tick of a worker: outcomes, leases, and the sends that begin."""
    changes = Changes(connection, now_ms)
    for outcome in outcomes:
        _settle(connection, outcome, changes)
    connection.executemany(
        f"UPDATE delivery SET due_ms = ? WHERE {_KEY} AND state = 3 AND attempt = ?",
        [(due_ms, *shipment.key, shipment.attempt) for shipment in in_flight],
    )
    begun = [
        started
        for shipment in starts
        if _may_begin(connection, shipment, changes) and (started := _begin(connection, shipment, due_ms, changes))
    ]
    changes.store()
    return begun


def put_off(connection: sqlite3.Connection, rows: Sequence[PutOff]) -> None:
    """Make queued deliveries due at other times, unless another worker has begun them."""
    connection.executemany(
        f"UPDATE delivery SET due_ms = ? WHERE {_KEY} AND state = 1 AND attempt = ?",
        [(row.due_ms, *row.key, row.attempt) for row in rows],
    )


def claim_due(
    connection: sqlite3.Connection, channel: str, now_ms: int, due_ms: int, limit: int, own: Collection[DeliveryKey]
) -> list[Shipment]:
    """Claim deliveries without a worker: deferred and due, or of a worker whose lease ended."""
    rows = connection.execute(
        "SELECT nid, rid, channel, aid, state, attempt, doubt, reason FROM delivery "
        "WHERE channel = ? AND state IN (1, 2, 3) AND due_ms <= ? ORDER BY due_ms LIMIT ?",
        (channel, now_ms, limit + len(own)),
    ).fetchall()
    changes = Changes(connection, now_ms)
    known: dict[int, tuple[Facts | None, bool]] = {}
    claimed: list[Shipment] = []
    for nid, rid, _, aid, state, attempt, doubt, reason in rows:
        key = DeliveryKey(nid, rid, channel, aid)
        if key in own or len(claimed) >= limit:
            continue
        if nid not in known:
            known[nid] = read_facts(connection, nid), is_paused(connection, nid, channel)
        facts, waits = known[nid]
        if waits and facts is not None and state != State.SENDING and now_ms < facts.expires_ms:
            hold(connection, facts, key, State(state), changes)
            continue
        is_left = state == State.SENDING and reason == NEXT_STEP
        if state == State.SENDING:
            note_attempt(connection, key, attempt, State.UNKNOWN, now_ms, reason="doubt")
        due = Due(key, State(state), attempt, bool(doubt) or state == State.SENDING, facts, is_left)
        if target := settle_due(connection, due, changes):
            claimed.append(_claim(connection, due, target, due_ms, changes))
    changes.store()
    return claimed


class Due:
    """A delivery that is due, and its previous state."""

    __slots__ = ("attempt", "facts", "is_doubtful", "is_left", "key", "state")

    def __init__(
        self,
        key: DeliveryKey,
        state: State,
        attempt: int,
        is_doubtful: bool,
        facts: Facts | None,
        is_left: bool = False,
    ) -> None:
        """`is_left`: its policy went to the next step while it was being sent."""
        self.key, self.state, self.attempt, self.is_doubtful, self.facts = key, state, attempt, is_doubtful, facts
        self.is_left = is_left


def settle_due(connection: sqlite3.Connection, due: Due, changes: Changes) -> Target | None:
    """The target of a due delivery that is sent now. Every other one is ended, or waits longer."""
    key, facts = due.key, due.facts
    found = None if facts is None else find_target(connection, key, facts.options.copies)
    if facts is None or facts.is_cancelled:
        _end(connection, due, State.CANCELLED, "", changes)
        return None
    if found is None:
        _end(connection, due, State.FAILED, "address", changes)
        return None
    if due.state is State.SENDING and facts.options.holds_doubt:
        _end(connection, due, State.UNKNOWN, "doubt", changes)
        return None
    if due.is_left:
        _end(connection, due, State.CANCELLED, NEXT_STEP, changes)
        return None
    (target,) = decide_all(connection, facts, key.channel, [found], changes.now_ms)
    verdict = target.verdict
    has_waited = due.attempt > 0 or due.state is not State.DEFERRED
    if verdict.state is State.QUEUED or (verdict.state is State.DEFERRED and has_waited):
        # Its time had come once: it waits no more, but what ends a delivery ends it.
        if _is_first(connection, due, target):
            return target
        _end(connection, due, State.COLLAPSED, "duplicate_address", changes)
        return None
    if verdict.state is not State.DEFERRED:
        _end(connection, due, verdict.state, verdict.reason, changes, verdict.detail)
        return None
    connection.execute(
        f"UPDATE delivery SET due_ms = ?, reason = ? WHERE {_KEY}", (verdict.due_ms, verdict.reason, *key)
    )
    return None


def _claim(connection: sqlite3.Connection, due: Due, target: Target, due_ms: int, changes: Changes) -> Shipment:
    assert due.facts is not None
    connection.execute(
        f"UPDATE delivery SET state = 1, due_ms = ?, doubt = ? WHERE {_KEY}", (due_ms, int(due.is_doubtful), *due.key)
    )
    changes.move(due.key, due.state, State.QUEUED)
    facts = due.facts
    return Shipment(due.key, facts.tenant, target, due.attempt, facts.expires_ms, due.is_doubtful, facts.priority)


def _is_first(connection: sqlite3.Connection, due: Due, target: Target) -> bool:
    """Whether nothing of the notification went to the address, which may have changed while the delivery waited."""
    is_deduped = due.facts is not None and due.facts.options.dedupe
    if not is_deduped or due.attempt or due.is_doubtful or not target.value or due.key.aid < 0:
        return True
    return retake_value(connection, due.key, target.value)


def _end(
    connection: sqlite3.Connection, due: Due, state: State, reason: str, changes: Changes, detail: str = ""
) -> None:
    doubt = int(due.is_doubtful)
    connection.execute(
        f"UPDATE delivery SET state = ?, reason = ?, doubt = ?, ref = iif(? = '', ref, ?) WHERE {_KEY}",
        (int(state), reason, doubt, detail, detail, *due.key),
    )
    changes.move(due.key, due.state, state, reason, due.attempt, is_doubtful=due.is_doubtful)
    if due.attempt == 0 and due.facts is not None and due.facts.options.dedupe:
        release_value(connection, due.key)
    hurry_route(connection, due.key)


def hurry_route(connection: sqlite3.Connection, key: DeliveryKey) -> None:
    """A delivery of a policy's step ended, or its receiver acted: check now whether the next step begins."""
    connection.execute("UPDATE route SET due_ms = 0 WHERE nid = ? AND rid = ?", key[:2])


def hurry_routes(connection: sqlite3.Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """The same for many receivers, each with the number of its notification before its own."""
    if pairs and connection.execute("SELECT EXISTS (SELECT 1 FROM route)").fetchone()[0]:
        connection.execute(
            f"UPDATE route SET due_ms = 0 FROM {PAIR} WHERE route.nid = pair.nid AND route.rid = pair.rid",
            (pack_rows(pairs),),
        )


def _may_begin(connection: sqlite3.Connection, shipment: Shipment, changes: Changes) -> bool:
    """Whether the receiver and the address of a shipment are still those that its worker read, and not suppressed. A delivery
    whose address has changed is due now, and is claimed with the new one.
    """
    key, value = shipment.key, shipment.target.value
    is_address = key.aid > 0
    kept, is_suppressed = connection.execute(
        f"SELECT {_KEPT_ADDRESS if is_address else _KEPT_RECEIVER}, EXISTS "
        "(SELECT 1 FROM suppression WHERE tenant = ? AND channel = ? AND value = ?)",
        (key.aid if is_address else key.rid, shipment.tenant, key.channel, digest_value(key.channel, value)),
    ).fetchone()
    is_same = kept == value if is_address else kept is not None
    if is_same and not is_suppressed:
        return True
    row = connection.execute(
        f"SELECT doubt FROM delivery WHERE {_KEY} AND state = 1 AND attempt = ?", (*key, shipment.attempt)
    ).fetchone()
    if row is None:
        return False  # another worker has it, or it ended
    due = Due(key, State.QUEUED, shipment.attempt, bool(row[0]), read_facts(connection, key.nid))
    target = settle_due(connection, due, changes)
    if target is not None and target.value != value:
        connection.execute(f"UPDATE delivery SET due_ms = 0 WHERE {_KEY}", key)
    return target is not None and target.value == value


def _begin(connection: sqlite3.Connection, shipment: Shipment, due_ms: int, changes: Changes) -> Shipment | None:
    begun = connection.execute(
        f"UPDATE delivery SET state = 3, attempt = attempt + 1, due_ms = ? WHERE {_KEY} AND state = 1 AND attempt = ? "
        "AND NOT EXISTS (SELECT 1 FROM notification WHERE nid = ? AND state = 'cancelled')",
        (due_ms, *shipment.key, shipment.attempt, shipment.key.nid),
    )
    if not begun.rowcount:
        return None  # another worker has it, or it ended
    changes.move(shipment.key, State.QUEUED, State.SENDING)
    return replace(shipment, attempt=shipment.attempt + 1)


def _settle(connection: sqlite3.Connection, outcome: Outcome, changes: Changes) -> None:
    row = connection.execute(f"SELECT state, attempt, doubt, reason FROM delivery WHERE {_KEY}", outcome.key).fetchone()
    if row is None or not may_settle(State(row[0]), row[1], outcome.state, outcome.attempt):
        return
    is_retry = outcome.state is State.DEFERRED
    state, reason = (_judge_retry(connection, outcome, row[3]) if is_retry else None) or (outcome.state, outcome.reason)
    is_doubtful = bool(row[2]) or (is_retry and outcome.reason == "doubt")
    connection.execute(
        f"UPDATE delivery SET state = ?, due_ms = ?, reason = ?, ref = ?, doubt = ?, attempt = attempt - ? WHERE {_KEY}",
        (
            *(int(state), outcome.retry_at_ms or 0, reason, outcome.ref, int(is_doubtful)),
            *(int(outcome.throttle_ms > 0), *outcome.key),  # what was throttled was not an attempt
        ),
    )
    changes.move(outcome.key, State(row[0]), state, reason, outcome.attempt, is_doubtful=is_doubtful)
    if not outcome.throttle_ms:
        said = outcome.reason if is_retry else reason
        note_attempt(connection, outcome.key, outcome.attempt, state, changes.now_ms, reason=said, ref=outcome.ref)
    if outcome.rendered is not None:
        note_render(connection, outcome.key, outcome.rendered, changes)
    if state is State.SENT and outcome.key.channel == "email":
        add_copies(connection, outcome.key, changes)
    if state is not State.DEFERRED:
        hurry_route(connection, outcome.key)
    if outcome.throttle_ms and outcome.attempt == 1 and state is not State.DEFERRED:
        release_value(connection, outcome.key)  # it ended before anything was sent
    if outcome.reason == "address" and outcome.value:
        _end_address(connection, outcome, changes.now_ms)


def _end_address(connection: sqlite3.Connection, outcome: Outcome, now_ms: int) -> None:
    """Send nothing more to the address; an e-mail address is suppressed for all receivers. Mail servers judge senders by how
    often they address unknown mailboxes. A webhook that answers 410 may be used again later.
    """
    connection.execute(
        "UPDATE address SET state = 'invalid', reason = ? WHERE aid = ? AND value = ?",
        (outcome.ref, outcome.key.aid, outcome.value),
    )
    facts = read_facts(connection, outcome.key.nid)
    if outcome.key.channel == "email" and facts is not None and not is_sandbox("email", outcome.value):
        put_suppression(connection, facts.tenant, "email", outcome.value, "*", BOUNCED, now_ms)


def _judge_retry(connection: sqlite3.Connection, outcome: Outcome, stored: str) -> tuple[State, str] | None:
    """The state of a delivery that is not retried after a temporary failure; None: it is retried."""
    facts = read_facts(connection, outcome.key.nid)
    if facts is None or facts.is_cancelled:
        return State.CANCELLED, ""
    if facts.options.holds_doubt and outcome.reason == "doubt":
        return State.UNKNOWN, "doubt"
    if stored == NEXT_STEP:
        return State.CANCELLED, NEXT_STEP
    if facts.options.collapse_key and is_superseded(connection, outcome.key):
        return State.COLLAPSED, "newer"
    return None
