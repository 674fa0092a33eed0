"""The position of one subscription, and how the next message compares to it.

A message at or before the position is a duplicate. One whose `after` lies beyond it shows that messages are missing. Any
other advances the position. Snapshots and gaps set it. A pattern also keeps the node's last resume token: resuming there
needs only the positions after it. Earlier positions are kept, within a limit, to resume exactly on another node.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from ..model import Gap, GapReason, Message, Position
from .resume_point import ResumePoint


class Verdict(Enum):
    """What to do with a message."""

    NEW = "new"
    DUPLICATE = "duplicate"
    MISSING = "missing"  # new, but something before it never came


class PositionTracker:
    """The position of one subscription while it is served."""

    def __init__(
        self, selector: str, is_pattern: bool, subjects_max: int, resume_point: ResumePoint | None = None
    ) -> None:
        self.selector = selector
        self.is_pattern = is_pattern
        self._subjects_max = subjects_max
        self._positions: dict[str, Position] = dict(resume_point.after) if resume_point else {}  # oldest touched first
        self._resume_token = resume_point.since if resume_point else None
        self._node = resume_point.node if resume_point else None
        self._is_whole = resume_point.is_whole if resume_point else True  # no position was forgotten for the limit
        # touched after the last resume token, the last of the positions: never forgotten
        self._since_resume_token: set[str] = set(resume_point.beyond_resume_token) if resume_point else set()
        self._snapshot_due: set[str] = set()  # a gap set these; the snapshot after it is not a duplicate
        self._orders: dict[str, tuple[int, ...]] = {}  # of epochs, of subjects that the join has earlier ones of
        self.moves = 0  # how often it moved
        self._join: tuple[Position, int] | None = (
            None  # the end of a join, and how many of its messages are still missing
        )

    def position(self, subject: str) -> Position | None:
        return self._positions.get(subject)

    @property
    def resume_point(self) -> ResumePoint:
        """The resume point. If positions of some subjects were dropped, the map alone would hide what was missed on them:
        then it is the resume token, and the positions after it.
        """
        whole = ResumePoint(dict(self._positions), self._resume_token, self._node, len(self._since_resume_token))
        if self.is_pattern and not self._is_whole and self._resume_token is not None:
            return ResumePoint(whole.beyond_resume_token, self._resume_token, self._node, whole.recent, is_whole=False)
        return whole

    def joined(self, at: Position | None, count: int) -> None:
        """The node answered a join: `count` messages follow up to `at`, on one subject; a pattern's join ends with its
        resume token. The join before it is over, whatever it still owed; `at` is None where a gap is to say where this
        one begins.
        """
        self._join = None
        self._orders.clear()
        if at is not None and not self.is_pattern:
            self._join = (at, count)
            self._end_join()

    def order(self, subject: str, epochs: tuple[int, ...]) -> None:
        """The node reports the order of a subject's epochs before it sends a message of an earlier epoch."""
        self._orders[subject] = epochs

    def _is_passed(self, subject: str, at: Position, resume_point: Position) -> bool:
        """Whether a position is at or before the current one, in the same epoch or in an earlier one."""
        if at.epoch == resume_point.epoch:
            return at.is_at_or_before(resume_point)
        order = self._orders.get(subject, ())
        return (
            at.epoch in order
            and resume_point.epoch in order
            and order.index(at.epoch) < order.index(resume_point.epoch)
        )

    def judge(self, message: Message) -> Verdict:
        """Classify a message, and advance to it unless it is a duplicate."""
        at = message.position
        if at is None:
            return Verdict.NEW
        subject = message.subject
        resume_point = self._positions.get(subject)
        verdict = Verdict.NEW
        if resume_point is not None and not (message.is_snapshot and subject in self._snapshot_due):
            is_same = at.epoch == resume_point.epoch  # each step here is taken for each message
            if at.sequence <= resume_point.sequence if is_same else self._is_passed(subject, at, resume_point):
                verdict = Verdict.DUPLICATE
            elif not message.is_snapshot:
                after = message.after
                if after is None:
                    is_beyond = is_same and at.sequence - 1 > resume_point.sequence
                else:
                    is_beyond = after.epoch == resume_point.epoch and after.sequence > resume_point.sequence
                if is_beyond:
                    verdict = Verdict.MISSING
        if verdict is not Verdict.DUPLICATE:
            self._snapshot_due.discard(subject)
            self._place(subject, at)
        if self._join is not None:
            self._count_join()
        return verdict

    def note(self, message: Message) -> None:
        """Advance to a message that was classified elsewhere."""
        if message.position is not None:
            self._place(message.subject, message.position)
            if self._join is not None:
                self._count_join()

    def refine(self, gap: Gap) -> Gap | None:
        """The part of a gap that this client has not received; None if it has received everything (2.2).

        A node that received a resume token knows only the position of that token; the client may have received more
        since.
        """
        resume_point = self._positions.get(gap.subject)
        if resume_point is None or gap.position is None or gap.reason is GapReason.AHEAD:
            return gap
        if gap.position.epoch != resume_point.epoch and self._is_passed(gap.subject, gap.position, resume_point):
            return None
        is_other_epoch = gap.after is not None and gap.after.epoch != resume_point.epoch
        # After a join the client is already at its end: a gap that leads there from an earlier epoch is still new.
        if gap.position.is_at_or_before(resume_point) and not (is_other_epoch and gap.position == resume_point):
            return None
        if gap.after is None or is_other_epoch:
            return gap
        further = resume_point.sequence - gap.after.sequence
        if further <= 0:
            return gap
        return replace(gap, after=resume_point, missed=None if gap.missed is None else max(0, gap.missed - further))

    def place(self, gap: Gap) -> None:
        """Set the position that a gap names. A gap of a whole pattern clears all subjects: messages after it begin a new state."""
        self.moves += 1
        if self.is_pattern and gap.subject == self.selector:
            self._positions.clear()
            self._since_resume_token.clear()
            self._snapshot_due.clear()
            self._resume_token, self._is_whole = None, True
            return
        if gap.position is not None:
            self._place(gap.subject, gap.position)
        else:
            self._positions.pop(gap.subject, None)
            self._since_resume_token.discard(gap.subject)
        if gap.missed != 0:
            self._snapshot_due.add(gap.subject)

    def resume_token(self, text: str, node: str | None) -> None:
        self.moves += 1
        self._resume_token, self._node = text, node
        self._since_resume_token.clear()
        self._orders.clear()
        if self._snapshot_due:
            self._snapshot_due.clear()

    def _count_join(self) -> None:
        if self._join is not None:
            self._join = (self._join[0], self._join[1] - 1)
            self._end_join()

    def _end_join(self) -> None:
        if self._join is None or self._join[1] > 0:
            return
        at, self._join = self._join[0], None
        resume_point = self._positions.get(self.selector)
        if resume_point is None or not at.is_at_or_before(resume_point):
            self._place(self.selector, at)

    def _place(self, subject: str, at: Position) -> None:
        self.moves += 1
        positions = self._positions
        if not self.is_pattern:
            positions[subject] = at
            return
        positions.pop(subject, None)
        positions[subject] = at
        self._since_resume_token.add(subject)
        if len(positions) > self._subjects_max:
            oldest = next(iter(positions))
            if oldest not in self._since_resume_token:
                del positions[oldest]
                self._is_whole = False
