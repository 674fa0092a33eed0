"""The order of delivery states, which decides whether one state may replace another.

Pure. Invariant: a final state changes only by a bounce of the attempt that was sent (manage/bounces.py).
"""

from __future__ import annotations

from ..model import State

RANKS: dict[State, int] = {
    State.QUEUED: 1,
    State.DEFERRED: 1,
    State.SENDING: 2,
    State.SENT: 3,
    State.DELIVERED: 4,
    State.UNKNOWN: 5,
    State.EXPIRED: 5,
    State.CANCELLED: 5,
    State.SUPPRESSED: 5,
    State.COLLAPSED: 5,
    State.FAILED: 5,
}
OPEN = (State.QUEUED, State.DEFERRED, State.SENDING)
"""States that need further work of dispatch."""


def is_open(state: State) -> bool:
    """Whether a delivery has no final state."""
    return state in OPEN


def may_settle(current: State, attempt: int, outcome: State, outcome_attempt: int) -> bool:
    """Whether the outcome of an attempt applies to a delivery.

    A success of any attempt applies. A failure or a retry applies only to the latest attempt, because a later one may
    already be running.
    """
    if outcome is State.SENT:
        return RANKS[current] < RANKS[State.SENT]
    return current is State.SENDING and attempt == outcome_attempt
