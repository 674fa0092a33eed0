"""Policies of several steps in the embedded store: one row for each receiver moves from channel to channel.

A step ends the policy when one of its deliveries reaches the required state. If all of them failed, or the time is over,
unsent deliveries are cancelled and the next step begins. Deliveries of a later step are inserted as deferred and due, so
that the channel's worker finds them like others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ...model import DeliveryKey, Flag, State, Step, Verdict
from ...pure.rank import is_open
from .changes import Changes
from .collapsing import release_value
from .deciding import Facts, decide_all, read_facts, read_targets
from .fanout import NEXT_STEP
from .jobs import insert_delivery
from .tenants import count_left, next_day_ms

_REACHED = {"seen": Flag.SEEN | Flag.READ, "read": Flag.READ, "confirmed": Flag.CONFIRMED}


def advance_routes(connection: sqlite3.Connection, channels: Collection[str], now_ms: int, limit: int) -> list[str]:
    """Move receivers whose step failed or took too long; returns the channels that now have work, one entry for each route examined."""
    rows = connection.execute(
        "SELECT nid, rid, step, deadline_ms FROM route WHERE due_ms <= ? ORDER BY due_ms LIMIT ?", (now_ms, limit)
    ).fetchall()
    changes = Changes(connection, now_ms)
    woken = []
    for nid, rid, step, deadline_ms in rows:
        facts = read_facts(connection, nid)
        woken.append(_advance(connection, facts, (nid, rid), step, deadline_ms, channels, changes))
    changes.store()
    return woken


def _advance(
    connection: sqlite3.Connection,
    facts: Facts | None,
    route: tuple[int, int],
    number: int,
    deadline_ms: int,
    channels: Collection[str],
    changes: Changes,
) -> str:
    if facts is None or facts.is_cancelled or changes.now_ms >= facts.expires_ms:
        return _finish(connection, route)
    step = facts.options.steps[number]
    rows = _read_states(connection, route, step.channel)
    if _is_reached(connection, route, step, [state for _, state in rows]):
        return _finish(connection, route)
    may_still = any(is_open(state) or state in (State.SENT, State.DELIVERED) for _, state in rows)
    if may_still and changes.now_ms < deadline_ms:
        connection.execute("UPDATE route SET due_ms = ? WHERE nid = ? AND rid = ?", (deadline_ms, *route))
        return ""
    following = next(
        (
            at
            for at in range(number + 1, len(facts.options.steps))
            if (channel := facts.options.steps[at].channel) in channels
            and read_targets(connection, channel, [route[1]])
        ),
        None,
    )
    if following is None:  # nothing comes after it: what waits or is tried again still goes out
        return _finish(connection, route)
    if count_left(connection, facts.tenant, changes.now_ms) == 0:
        due_ms = next_day_ms(changes.now_ms)
        connection.execute("UPDATE route SET due_ms = ? WHERE nid = ? AND rid = ?", (due_ms, *route))
        return ""
    _cancel_unsent(connection, route, step.channel, rows, changes, is_deduped=facts.options.dedupe)
    return _begin(connection, facts, route, following, changes)


def _begin(connection: sqlite3.Connection, facts: Facts, route: tuple[int, int], number: int, changes: Changes) -> str:
    steps: Sequence[Step] = facts.options.steps
    channel, now_ms = steps[number].channel, changes.now_ms
    targets = decide_all(connection, facts, channel, read_targets(connection, channel, [route[1]]), now_ms)
    states, starts = set(), [now_ms]
    if targets and all(target.verdict.state is State.DEFERRED for target in targets):
        starts = [target.verdict.due_ms for target in targets]
    for target in targets:
        if target.verdict.state is State.QUEUED:
            target = replace(target, verdict=Verdict(State.DEFERRED, now_ms))
        key = DeliveryKey(route[0], target.rid, channel, target.aid)
        states.add(insert_delivery(connection, key, target, facts, now_ms, changes, State.QUEUED))
    deadline_ms = min(starts) + steps[number].wait_s * 1_000
    due_ms = deadline_ms if State.DEFERRED in states else 0
    connection.execute(
        "UPDATE route SET step = ?, due_ms = ?, deadline_ms = ? WHERE nid = ? AND rid = ?",
        (number, due_ms, deadline_ms, *route),
    )
    return channel


def _finish(connection: sqlite3.Connection, route: tuple[int, int]) -> str:
    connection.execute("DELETE FROM route WHERE nid = ? AND rid = ?", route)
    return ""


def _read_states(connection: sqlite3.Connection, route: tuple[int, int], channel: str) -> list[tuple[int, State]]:
    rows = connection.execute(
        "SELECT aid, state FROM delivery WHERE nid = ? AND rid = ? AND channel = ? AND aid >= 0", (*route, channel)
    ).fetchall()
    return [(aid, State(state)) for aid, state in rows]


def _is_reached(connection: sqlite3.Connection, route: tuple[int, int], step: Step, states: list[State]) -> bool:
    if step.until in _REACHED:
        row = connection.execute("SELECT flags FROM item WHERE nid = ? AND rid = ?", route).fetchone()
        return row is not None and bool(row[0] & _REACHED[step.until])
    wanted = (State.DELIVERED,) if step.until == "delivered" else (State.SENT, State.DELIVERED)
    return any(state in wanted for state in states)


def _cancel_unsent(
    connection: sqlite3.Connection,
    route: tuple[int, int],
    channel: str,
    rows: list[tuple[int, State]],
    changes: Changes,
    *,
    is_deduped: bool,
) -> None:
    for aid, state in rows:
        if state in (State.QUEUED, State.DEFERRED):
            key = DeliveryKey(*route, channel, aid)
            connection.execute(
                "UPDATE delivery SET state = 9, reason = ? WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
                (NEXT_STEP, *key),
            )
            changes.move(key, state, State.CANCELLED, NEXT_STEP)
            if is_deduped:
                _release_unsent(connection, key)
        elif state is State.SENDING:  # what is on its way may arrive; if it does not, it is not tried again
            connection.execute(
                "UPDATE delivery SET reason = ? WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
                (NEXT_STEP, *route, channel, aid),
            )


def _release_unsent(connection: sqlite3.Connection, key: DeliveryKey) -> None:
    """Release the address value, unless an attempt may have reached the address."""
    row = connection.execute(
        "SELECT attempt FROM delivery WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?", key
    ).fetchone()
    if row == (0,):
        release_value(connection, key)
