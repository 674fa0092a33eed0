"""Where one subscription stands in one subject, and what may come next: the rules of protocol chapters 2, 5, 6 and 8.

    nobody ──snapshot, gap, reply, first message──▶ stands at (epoch, sequence) ──message──▶ … ──gap──▶ …

A resume from a resume token, and a join of a pattern, may bring again what was seen: then `again` is how far that has come, and it must
come in order and reach the stand before anything new. Pure.
"""

from __future__ import annotations

from collections import deque

from ...model import Gap, Message, Position
from .finding import Breach, Promise

SEEN_MAX = 8  # events kept of each place, for the history of a finding
HOLES_MAX = 64  # missing positions remembered, to tell what came late from what came twice

Seen = tuple[int, str, object]
"""When, what, and the message's, gap's or reply's own words."""


class Place:
    """One subject of one subscription."""

    __slots__ = ("again", "holes", "is_due", "seen", "stand")

    def __init__(self) -> None:
        self.stand: Position | None = None
        self.again: int | None = None  # None: nothing may come twice
        self.is_due = False  # a snapshot with the stand's own position must come next
        self.holes: list[int] = []
        self.seen: deque[Seen] = deque(maxlen=SEEN_MAX)

    def begin(self) -> None:
        """A new join: nothing is known, as for a new subscriber."""
        self.stand, self.again, self.is_due = None, None, False
        self.holes.clear()

    def rewind(self, to: Position | None) -> None:
        """A resume from a resume token, at which this subscription stood at `to`: what came after it may come again."""
        self.is_due = False
        if to is not None and self.stand is not None and to.epoch != self.stand.epoch:
            self.stand_at(
                to, may_come_again=False
            )  # what followed the resume token comes again, over the end of its run
        elif self.stand is not None:
            self.again = to.sequence if to is not None and to.epoch == self.stand.epoch else 0

    def stand_at(self, at: Position, may_come_again: bool) -> None:
        self.stand, self.is_due = at, False
        self.again = 0 if may_come_again else None
        self.holes.clear()

    def message(self, message: Message) -> Breach | None:
        """A message that is no snapshot, at a place where somebody stands."""
        at, stand = message.position, self.stand
        assert at is not None and stand is not None
        after_epoch, after = at.epoch, at.sequence - 1
        if message.after is not None:
            after_epoch, after = message.after.epoch, message.after.sequence
        if self.is_due:
            self.is_due = False
            self.stand = at
            return Breach(Promise.GAPS, f"{at} came where the snapshot at {stand} had to follow its gap")
        if at.epoch != stand.epoch:
            return self._other_run(at, stand, Position(after_epoch, after))
        if after_epoch != at.epoch:
            after = 0  # the first of its run says what that follows
        if at.sequence <= stand.sequence:
            return self._come_again(at.sequence, stand)
        if message.conflated and after_epoch == at.epoch and message.conflated != at.sequence - after:
            self.stand = at
            return Breach(
                Promise.MERGE,
                f"{at} says that {message.conflated} became one, but {at.sequence - after} lie after {after}",
            )
        self.stand, self.again = at, None
        if after > stand.sequence or (not message.conflated and at.sequence != after + 1):
            return self._hole(at, stand, after)
        return None

    def _hole(self, at: Position, stand: Position, after: int) -> Breach:
        first, last = stand.sequence + 1, max(after, at.sequence - 1)
        self.holes.extend(range(first, min(last, first + HOLES_MAX - 1) + 1))
        del self.holes[:-HOLES_MAX]
        lost = f"{at.epoch}.{first}" if first == last else f"{at.epoch}.{first} to {at.epoch}.{last}"
        return Breach(Promise.NO_LOSS, f"{at} came to one who stood at {stand}: {lost} never came and no gap was told")

    def _come_again(self, sequence: int, stand: Position) -> Breach | None:
        if sequence in self.holes:
            self.holes.remove(sequence)
            return Breach(Promise.ORDER, f"{stand.epoch}.{sequence} came after {stand}, which it precedes")
        if self.again is None or sequence <= self.again:
            return Breach(
                Promise.NO_REPEAT, f"{stand.epoch}.{sequence} came to one who stood at {stand}: it came again"
            )
        self.again = None if sequence == stand.sequence else sequence
        return None

    def _other_run(self, at: Position, stand: Position, after: Position) -> Breach | None:
        self.stand, self.again = at, None
        self.holes.clear()
        if after.epoch == stand.epoch and after.sequence <= stand.sequence:
            return None  # it says itself what it follows: who saw more than the disk did has not missed anything
        if stand.sequence == 0 and after.epoch < stand.epoch < at.epoch:
            return None  # the beginning of an epoch without messages is where the one before it ended
        return Breach(Promise.RUN, f"{at} came to one who stood at {stand}: another run, and no gap said so")

    def gap(self, gap: Gap, may_come_again: bool, needs_count: bool) -> Breach | None:
        """A gap of this subject: it must begin where this subscription stands, and count right."""
        at, stand, again = gap.position, self.stand, self.again
        assert at is not None
        is_new = stand is None and gap.after is not None and gap.after.sequence == 0  # a subject since the resume token
        begins_well = (
            gap.after == stand
            or is_new
            or (
                stand is not None
                and gap.after is not None
                and again is not None
                and gap.after.epoch == stand.epoch
                and again <= gap.after.sequence <= stand.sequence
            )
        )
        self.stand_at(at, may_come_again)
        if not begins_well:
            return Breach(Promise.GAPS, f"a gap after {gap.after} was told to one who stood at {stand}")
        if gap.after is None or gap.after.epoch != at.epoch:
            return None
        exact = at.sequence - gap.after.sequence
        if gap.missed is None:
            if needs_count:
                return Breach(Promise.GAPS, f"the gap after {gap.after} to {at} does not say that it is of {exact}")
        elif gap.missed != exact:
            return Breach(Promise.GAPS, f"the gap after {gap.after} to {at} says {gap.missed}, but it is of {exact}")
        return None
