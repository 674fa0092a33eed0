"""Where one subscription stands, and what that makes of the next message.

A message at or before the stand is a repeat; one whose `after` lies beyond it reveals a hole; any other moves the
stand. Snapshots and gaps place it. A pattern also keeps the server's last mark: resuming needs positions only for
what came after it, the rest is kept (within a limit) so that another node can be told exactly.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from ..model import Gap, GapReason, Message, Position
from .stand import Stand


class Verdict(Enum):
    """What to do with a message."""

    NEW = "new"
    DUPLICATE = "duplicate"
    MISSING = "missing"  # new, but something before it never came


class Standing:
    """The stand of one subscription while it is served."""

    def __init__(self, selector: str, is_pattern: bool, subjects_max: int, stand: Stand | None = None) -> None:
        self.selector = selector
        self.is_pattern = is_pattern
        self._subjects_max = subjects_max
        self._positions: dict[str, Position] = dict(stand.after) if stand else {}  # oldest touched first
        self._mark = stand.since if stand else None
        self._node = stand.node if stand else None
        self._is_whole = stand.is_whole if stand else True  # no position was forgotten for the limit
        # touched after the last mark, the last of the positions: never forgotten
        self._since_mark: set[str] = set(stand.beyond_mark) if stand else set()
        self._snapshot_due: set[str] = set()  # a gap placed these; the snapshot after it is no repeat
        self.moves = 0  # how often it moved
        self._join: tuple[Position, int] | None = None  # where a join ends, and how many messages it has left

    def position(self, subject: str) -> Position | None:
        return self._positions.get(subject)

    @property
    def stand(self) -> Stand:
        """What to ask for when resuming. A map with forgotten subjects would hide what was missed on them: then only
        the mark, and what came after it.
        """
        whole = Stand(dict(self._positions), self._mark, self._node, len(self._since_mark))
        if self.is_pattern and not self._is_whole and self._mark is not None:
            return Stand(whole.beyond_mark, self._mark, self._node, whole.recent, is_whole=False)
        return whole

    def joined(self, at: Position | None, count: int) -> None:
        """A join was answered: `count` messages follow up to `at`, on one subject; a pattern's join ends with its
        mark. The join before it is over, whatever it still owed; `at` is None where a gap is to say where this one begins.
        """
        self._join = None
        if at is not None and not self.is_pattern:
            self._join = (at, count)
            self._end_join()

    def judge(self, message: Message) -> Verdict:
        """Decide what a message is, and stand at it unless it is a repeat."""
        at = message.position
        if at is None:
            return Verdict.NEW
        subject = message.subject
        stand = self._positions.get(subject)
        verdict = Verdict.NEW
        if stand is not None and not (message.is_snapshot and subject in self._snapshot_due):
            if at.is_at_or_before(stand):
                verdict = Verdict.DUPLICATE
            elif not message.is_snapshot:
                after = message.after or Position(at.epoch, at.sequence - 1)
                if after.epoch == stand.epoch and after.sequence > stand.sequence:
                    verdict = Verdict.MISSING
        if verdict is not Verdict.DUPLICATE:
            self._snapshot_due.discard(subject)
            self._place(subject, at)
        if self._join is not None:
            self._count_join()
        return verdict

    def note(self, message: Message) -> None:
        """Stand at a message that was judged elsewhere."""
        if message.position is not None:
            self._place(message.subject, message.position)
            if self._join is not None:
                self._count_join()

    def refine(self, gap: Gap) -> Gap | None:
        """What of a gap is this client's own; None when it has seen all of it (2.2).

        A server that was given a mark knows the stand at the mark only, and this client may have come further since.
        """
        stand = self._positions.get(gap.subject)
        if stand is None or gap.position is None or gap.reason is GapReason.AHEAD:
            return gap
        is_other_epoch = gap.after is not None and gap.after.epoch != stand.epoch
        # After a join the client already stands at its end: a gap that leads there from an earlier epoch is still news.
        if gap.position.is_at_or_before(stand) and not (is_other_epoch and gap.position == stand):
            return None
        if gap.after is None or is_other_epoch:
            return gap
        further = stand.sequence - gap.after.sequence
        if further <= 0:
            return gap
        return replace(gap, after=stand, missed=None if gap.missed is None else max(0, gap.missed - further))

    def place(self, gap: Gap) -> None:
        """A gap says where to stand. One for a whole pattern clears every subject: what follows it begins anew."""
        self.moves += 1
        if self.is_pattern and gap.subject == self.selector:
            self._positions.clear()
            self._since_mark.clear()
            self._snapshot_due.clear()
            self._mark, self._is_whole = None, True
            return
        if gap.position is not None:
            self._place(gap.subject, gap.position)
        else:
            self._positions.pop(gap.subject, None)
            self._since_mark.discard(gap.subject)
        if gap.missed != 0:
            self._snapshot_due.add(gap.subject)

    def mark(self, text: str, node: str | None) -> None:
        self.moves += 1
        self._mark, self._node = text, node
        self._since_mark.clear()
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
        stand = self._positions.get(self.selector)
        if stand is None or not at.is_at_or_before(stand):
            self._place(self.selector, at)

    def _place(self, subject: str, at: Position) -> None:
        self.moves += 1
        positions = self._positions
        if not self.is_pattern:
            positions[subject] = at
            return
        positions.pop(subject, None)
        positions[subject] = at
        self._since_mark.add(subject)
        if len(positions) > self._subjects_max:
            oldest = next(iter(positions))
            if oldest not in self._since_mark:
                del positions[oldest]
                self._is_whole = False
