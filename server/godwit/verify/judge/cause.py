"""Whether a gap had a valid cause: a restart, a journal that had not written the messages yet, or a log that had evicted
them.

A log keeps its messages across the runs that a journal connects, so the messages behind a subscriber are counted across
runs. Unknown facts are never counted against a broker. Pure.
"""

from __future__ import annotations

from ...model import Gap, GapReason, Position
from .context import CheckContext
from .finding import Guarantee, Violation


def judge_cause(context: CheckContext, gap: Gap, at_ms: int, goes_on_from_oldest: bool) -> Violation | None:
    """A gap without a cause counts as message loss."""
    at, after = gap.position, gap.after
    if at is None or after is None or gap.missed == 0:
        return None
    if at.epoch != after.epoch or gap.reason is GapReason.EPOCH:
        violation = _judge_run(context, gap, at, after)
        if violation is not None or gap.missed is None or not context.rules.keeps_journal:
            return violation
    return _judge_room(context, gap, after, _newest(context, gap.subject, at, goes_on_from_oldest), at_ms)


def _judge_run(context: CheckContext, gap: Gap, at: Position, after: Position) -> Violation | None:
    rules, expected = context.rules, context.expected
    if rules.knows_restarts and after.sequence and not expected.has_ended(gap.subject, after.epoch):
        return Violation(Guarantee.GAPS, f"a gap to {at} reports a new epoch, but the node was not restarted")
    if not rules.keeps_journal:
        return None
    if gap.missed is None:
        held = expected.held(gap.subject, after.epoch)
        if held is not None and 0 < after.sequence <= held:
            return Violation(
                Guarantee.GAPS,
                f"a gap after {after} has no count, but the journal holds {after.epoch}.{held}",
            )
        return None
    exact = expected.distance(gap.subject, after, at)
    if exact is not None and exact != gap.missed:
        return Violation(
            Guarantee.GAPS,
            f"the gap after {after} to {at} reports {gap.missed} missed messages; exactly {exact} are missing",
        )
    return None


def _newest(context: CheckContext, subject: str, at: Position, goes_on_from_oldest: bool) -> tuple[Position, int]:
    """The head of the log when the gap was reported, and how many messages it may have been beyond that."""
    if not goes_on_from_oldest:
        return at, 0
    # It is placed before the oldest that is kept, which may be of an earlier run, and not at the head.
    return context.expected.newest(subject) or at, context.rules.in_flight_max


def _judge_room(
    context: CheckContext, gap: Gap, after: Position, newest: tuple[Position, int], at_ms: int
) -> Violation | None:
    """Whether neither the count nor the age limit of the log allowed it to evict the missed messages."""
    rules, (head, beyond) = context.rules, newest
    if rules.log_messages_max is None or rules.log_age_ms_max is None:
        return None
    if gap.reason is GapReason.EXPIRED and rules.keeps_journal and context.is_clock_moved and context.restarts:
        return None
    behind = context.expected.distance(gap.subject, after, head)
    if behind is None or behind + beyond > rules.log_messages_max:
        return None
    first = context.expected.identity_after(gap.subject, after)
    if first is None or at_ms - context.expected.sent_ms(first) >= rules.log_age_ms_max:
        return None
    return Violation(
        Guarantee.GAPS,
        f"a gap of {gap.missed} ({gap.reason}) to {gap.position}, but the log keeps {rules.log_messages_max} "
        f"messages for {rules.log_age_ms_max / 1000:.0f} s",
    )
