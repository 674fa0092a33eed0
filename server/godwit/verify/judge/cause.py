"""Whether a gap had a cause: a restart that somebody made, a disk that had not got so far, or a log that had moved past the subscriber.

A log keeps its messages over the runs that a journal joins, so that what lay behind a subscriber is counted over them too.
What the ledger cannot know is never held against a broker. Pure.
"""

from __future__ import annotations

from ...model import Gap, GapReason, Position
from .court import Court
from .finding import Breach, Promise


def judge_cause(court: Court, gap: Gap, at_ms: int, goes_on_from_oldest: bool) -> Breach | None:
    """A gap that nothing made is a loss by another name."""
    at, after = gap.position, gap.after
    if at is None or after is None or gap.missed == 0:
        return None
    if at.epoch != after.epoch or gap.reason is GapReason.EPOCH:
        breach = _judge_run(court, gap, at, after)
        if breach is not None or gap.missed is None or not court.rules.keeps_journal:
            return breach
    return _judge_room(court, gap, after, _newest(court, gap.subject, at, goes_on_from_oldest), at_ms)


def _judge_run(court: Court, gap: Gap, at: Position, after: Position) -> Breach | None:
    rules, ledger = court.rules, court.ledger
    if rules.knows_restarts and after.sequence and not ledger.has_ended(gap.subject, after.epoch):
        return Breach(Promise.GAPS, f"a gap to {at} speaks of another run, but nobody restarted the node")
    if not rules.keeps_journal:
        return None
    if gap.missed is None:
        held = ledger.held(gap.subject, after.epoch)
        if held is not None and 0 < after.sequence <= held:
            return Breach(
                Promise.GAPS,
                f"a gap of nobody knows how many after {after}, though the journal holds {after.epoch}.{held}",
            )
        return None
    exact = ledger.distance(gap.subject, after, at)
    if exact is not None and exact != gap.missed:
        return Breach(Promise.GAPS, f"the gap after {after} to {at} says {gap.missed}, but it is of {exact}")
    return None


def _newest(court: Court, subject: str, at: Position, goes_on_from_oldest: bool) -> tuple[Position, int]:
    """The head of the log when the gap was told, and how far it may have been beyond that."""
    if not goes_on_from_oldest:
        return at, 0
    # It is placed before the oldest that is kept, which may be of an earlier run, and not at the head.
    return court.ledger.newest(subject) or at, court.rules.in_flight_max


def _judge_room(court: Court, gap: Gap, after: Position, newest: tuple[Position, int], at_ms: int) -> Breach | None:
    """Neither its count nor its age had the log let go of what was missed."""
    rules, (head, beyond) = court.rules, newest
    if rules.log_messages_max is None or rules.log_age_ms_max is None:
        return None
    if gap.reason is GapReason.EXPIRED and rules.keeps_journal and court.is_clock_moved and court.restarts:
        return None
    behind = court.ledger.distance(gap.subject, after, head)
    if behind is None or behind + beyond > rules.log_messages_max:
        return None
    first = court.ledger.identity_after(gap.subject, after)
    if first is None or at_ms - court.ledger.sent_ms(first) >= rules.log_age_ms_max:
        return None
    return Breach(
        Promise.GAPS,
        f"a gap of {gap.missed} ({gap.reason}) to {gap.position}, though the log keeps {rules.log_messages_max} "
        f"messages for {rules.log_age_ms_max / 1000:.0f} s",
    )
