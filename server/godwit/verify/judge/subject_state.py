"""The position of one subscription in one subject, and what may follow: the rules of protocol chapters 2, 5, 6 and 8.

    unknown ──snapshot, gap, reply, first message──▶ at (epoch, sequence) ──message──▶ … ──gap──▶ …

A resume from a resume token, and a join of a pattern, may repeat messages: then `again` is the position of the last repeated one. They
must be in order, and reach the current position before a new message. Pure.
"""

from __future__ import annotations

from collections import deque

from ...model import Gap, Message, Position
from .finding import Guarantee, Violation

SEEN_MAX = 8  # events kept of each place, for the history of a finding
MISSING_MAX = 64  # missing positions that are remembered, to distinguish late messages from duplicates

Seen = tuple[int, str, object]
"""Time, kind, and the message, gap or reply."""


class SubjectState:
    """One subject of one subscription."""

    __slots__ = ("again", "is_due", "missing", "reached", "seen")

    def __init__(self) -> None:
        self.reached: Position | None = None
        self.again: int | None = None  # None: nothing may come twice
        self.is_due = False  # the next item must be a snapshot at the current position
        self.missing: list[int] = []
        self.seen: deque[Seen] = deque(maxlen=SEEN_MAX)

    def begin(self) -> None:
        """A new join: nothing is known, as for a new subscriber."""
        self.reached, self.again, self.is_due = None, None, False
        self.missing.clear()

    def rewind(self, to: Position | None) -> None:
        """A resume from a resume token, whose position in this subject is `to`: messages after it may be repeated."""
        self.is_due = False
        if to is not None and self.reached is not None and to.epoch != self.reached.epoch:
            self.move_to(
                to, may_come_again=False
            )  # what followed the resume token comes again, over the end of its run
        elif self.reached is not None:
            self.again = to.sequence if to is not None and to.epoch == self.reached.epoch else 0

    def move_to(self, at: Position, may_come_again: bool) -> None:
        self.reached, self.is_due = at, False
        self.again = 0 if may_come_again else None
        self.missing.clear()

    def message(self, message: Message) -> Violation | None:
        """A message, not a snapshot, in a subject with a known position."""
        at, reached = message.position, self.reached
        assert at is not None and reached is not None
        after_epoch, after = at.epoch, at.sequence - 1
        if message.after is not None:
            after_epoch, after = message.after.epoch, message.after.sequence
        if self.is_due:
            self.is_due = False
            self.reached = at
            return Violation(
                Guarantee.GAPS, f"received {at} instead of the snapshot at {reached} that must follow its gap"
            )
        if at.epoch != reached.epoch:
            return self._other_run(at, reached, Position(after_epoch, after))
        if after_epoch != at.epoch:
            after = 0  # the first of its run says what that follows
        if at.sequence <= reached.sequence:
            return self._come_again(at.sequence, reached)
        if message.conflated and after_epoch == at.epoch and message.conflated != at.sequence - after:
            self.reached = at
            return Violation(
                Guarantee.MERGE,
                f"{at} reports {message.conflated} conflated messages, but {at.sequence - after} follow {after}",
            )
        self.reached, self.again = at, None
        if after > reached.sequence or (not message.conflated and at.sequence != after + 1):
            return self._hole(at, reached, after)
        return None

    def _hole(self, at: Position, reached: Position, after: int) -> Violation:
        first, last = reached.sequence + 1, max(after, at.sequence - 1)
        self.missing.extend(range(first, min(last, first + MISSING_MAX - 1) + 1))
        del self.missing[:-MISSING_MAX]
        lost = f"{at.epoch}.{first}" if first == last else f"{at.epoch}.{first} to {at.epoch}.{last}"
        return Violation(
            Guarantee.NO_LOSS, f"received {at} after {reached}: {lost} is missing, and no gap was reported"
        )

    def _come_again(self, sequence: int, reached: Position) -> Violation | None:
        if sequence in self.missing:
            self.missing.remove(sequence)
            return Violation(Guarantee.ORDER, f"received {reached.epoch}.{sequence} after {reached}: out of order")
        if self.again is None or sequence <= self.again:
            return Violation(
                Guarantee.NO_REPEAT, f"received {reached.epoch}.{sequence} at position {reached}: a duplicate"
            )
        self.again = None if sequence == reached.sequence else sequence
        return None

    def _other_run(self, at: Position, reached: Position, after: Position) -> Violation | None:
        self.reached, self.again = at, None
        self.missing.clear()
        if after.epoch == reached.epoch and after.sequence <= reached.sequence:
            return None  # the message names its predecessor: a client that received more than the disk kept has missed nothing
        if reached.sequence == 0 and after.epoch < reached.epoch < at.epoch:
            return None  # the beginning of an epoch without messages is where the one before it ended
        return Violation(Guarantee.RUN, f"received {at} after {reached}: the epoch changed, and no gap was reported")

    def gap(self, gap: Gap, may_come_again: bool, needs_count: bool) -> Violation | None:
        """A gap of this subject: it must begin at the current position and have the correct count."""
        at, reached, again = gap.position, self.reached, self.again
        assert at is not None
        is_new = (
            reached is None and gap.after is not None and gap.after.sequence == 0
        )  # a subject since the resume token
        begins_well = (
            gap.after == reached
            or is_new
            or (
                reached is not None
                and gap.after is not None
                and again is not None
                and gap.after.epoch == reached.epoch
                and again <= gap.after.sequence <= reached.sequence
            )
        )
        self.move_to(at, may_come_again)
        if not begins_well:
            return Violation(Guarantee.GAPS, f"received a gap after {gap.after} at position {reached}")
        if gap.after is None or gap.after.epoch != at.epoch:
            return None
        exact = at.sequence - gap.after.sequence
        if gap.missed is None:
            if needs_count:
                return Violation(
                    Guarantee.GAPS, f"the gap after {gap.after} to {at} has no count; exactly {exact} are missing"
                )
        elif gap.missed != exact:
            return Violation(
                Guarantee.GAPS,
                f"the gap after {gap.after} to {at} reports {gap.missed} missed messages; exactly {exact} are missing",
            )
        return None
