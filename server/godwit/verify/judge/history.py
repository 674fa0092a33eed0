"""The shortest history that shows a violation: the subscriber's position and how it got there, what it received, and what
was published there. Events before the last known position are left out. Pure.
"""

from __future__ import annotations

import re

from ...model import Position
from .expected_history import ExpectedHistory
from .finding import Guarantee, Violation
from .subject_state import Seen

PUBLISHED_LINES_MAX = 4
_POSITIONS = re.compile(r"\b(\d+)\.(\d+)\b")


def tell_history(
    expected: ExpectedHistory, subject: str, violation: Violation, seen: list[Seen], events: list[Seen]
) -> list[str]:
    """The lines, oldest first. `seen` has the events of the subject, `events` those of the whole subscription; the last one
    seen is the violation.
    """
    shortest = seen[_first_needed(violation, seen) :]
    begin = shortest[0][0] if shortest else 0
    merged = sorted([*shortest, *(event for event in events if event[0] >= begin)], key=lambda one: one[0])
    lines = [tell_seen(one) for one in merged]
    return lines + [f"published: {subject} {line}" for line in _expected_lines(expected, subject, violation)]


def _first_needed(violation: Violation, seen: list[Seen]) -> int:
    """The index of the first event needed: the one that set the position; for a duplicate the first delivery, if it is known."""
    start = max(0, len(seen) - 2)
    if violation.guarantee in (Guarantee.NO_REPEAT, Guarantee.ORDER) and seen:
        position = _position_of(seen[-1])
        for state in range(start, -1, -1):
            if position is not None and _position_of(seen[state]) == position:
                return state
    return start


def _position_of(one: Seen) -> object:
    return one[2][0] if isinstance(one[2], tuple) and one[1] == "message" else None


def tell_seen(one: Seen) -> str:
    """One event as a line."""
    at_ms, what, detail = one
    when = f"{at_ms / 1000:9.3f} s  "
    match what, detail:
        case "message", (at, after, conflated):
            text = f"message {at}" + (f", {conflated} became one" if conflated else "")
            return when + text + (f", after {after}" if after is not None else "")
        case "snapshot", (at, _, _):
            return f"{when}snapshot at {at}"
        case "gap", (after, at, reason, missed):
            return f"{when}gap after {after} to {at}, {reason}, missed {missed}"
        case "reply", (outcome, at, count):
            return f"{when}reply: {outcome} at {at}, {count} messages follow"
        case _:
            return when + what


def _expected_lines(expected: ExpectedHistory, subject: str, violation: Violation) -> list[str]:
    if subject not in expected.runs:
        return []
    named = dict.fromkeys(Position(int(e), int(s)) for e, s in _POSITIONS.findall(violation.sentence) if int(s) > 0)
    return [expected.tell(subject, at) for at in list(named)[:PUBLISHED_LINES_MAX]]
