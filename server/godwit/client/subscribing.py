"""One subscription of a session: what was requested from the server, and how its pushes are processed.

    IDLE ──ask──▶ ASKED ──answer──▶ SERVED        lost: any ──▶ IDLE        refused or left: any ──▶ ENDED
      ▲                                │
      └──────────pause_now─────────────┘   (the queue stays full while others wait for data)

Messages count only in SERVED. Messages that arrive in ASKED belong to an earlier request.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ..errors import GodwitError
from ..model import Gap, GapReason, Message, Outcome, Position
from .codec.command import Choice, Subscribe
from .codec.push import Epochs, Marked
from .codec.reply import Reply
from .item_queue import ItemQueue
from .items import Dropped, Status
from .position_tracker import PositionTracker, Verdict

PAUSE_MS = 1_000  # between two pauses of one subscription, at least


class State(Enum):
    IDLE = "idle"
    ASKED = "asked"
    SERVED = "served"
    ENDED = "ended"


class Subscribing:
    """The state above, and counts of reported and dropped items. `wake` is called when the queue has something new."""

    def __init__(self, selector: str, choice: Choice, tracker: PositionTracker, queue: ItemQueue) -> None:
        self.selector, self.choice, self.tracker, self.queue = selector, choice, tracker, queue
        self.state = State.IDLE
        self.is_paused = False  # not requested until its queue has room again
        self.was_paused = False  # by its full queue, and not yet reported
        self.resumed_at = -PAUSE_MS  # after a pause
        self.resumes_at = 0  # not before, so that it is paused once a second at most
        self.refusals = 0  # since it was served last
        self._has_begun_anew = False
        self.error: GodwitError | None = None  # why it ended, when it did not end by its own wish
        self.wake: Callable[[], None] = _nothing
        self.is_joined = (
            False  # nothing published from now on can be lost: a new pattern waits for its first resume token
        )
        self.duplicates = self.gaps = self.missing = self.joins = 0
        self._asked_id: int | None = None

    def ask(self, id: int, node: str | None) -> Subscribe:
        """Request the subscription from this node, from its resume point."""
        self.state, self._asked_id, self.is_paused = State.ASKED, id, False
        if not self.tracker.resume_point.can_be_asked:
            self._begin_anew()
        return Subscribe(id, self.selector, self.tracker.resume_point.for_node(node), self.choice)

    def reply(self, reply: Reply) -> None:
        if not self.is_asked_by(reply.id):
            return
        self.state = State.SERVED
        self.joins += 1
        self.refusals = 0
        self.is_joined = self.is_joined or not self.tracker.is_pattern or bool(self.tracker.resume_point)
        # After a resync the gap says where it continues; without a count the messages themselves do.
        is_placed = reply.outcome is not Outcome.RESYNC and reply.count is not None
        self.tracker.joined(reply.position if is_placed else None, reply.count or 0)
        self._put(Status(self.selector, "subscribed", reply.outcome, reply.position, reply.count))
        if self.was_paused:
            self.was_paused = False
            self._put(Dropped(self.selector, None))  # standard messages may have passed meanwhile

    @property
    def is_asked(self) -> bool:
        """Whether it was requested from the server."""
        return self.state in (State.ASKED, State.SERVED)

    def is_asked_by(self, id: int | None) -> bool:
        return self.state is State.ASKED and id == self._asked_id

    def message(self, message: Message) -> None:
        if self.state is not State.SERVED:
            return
        resume_point = self.tracker.position(message.subject)
        verdict = self.tracker.judge(message)
        if verdict is Verdict.DUPLICATE:
            self.duplicates += 1
            return
        if verdict is Verdict.MISSING:
            self.missing += 1
            self._put(_missing_gap(message, resume_point))
        self._put(message)

    def gap(self, gap: Gap) -> None:
        refined = self.tracker.refine(gap)
        if self.state is State.SERVED and refined is not None:
            self.gaps += 1
            self.tracker.place(refined)
            self._put(refined)

    def epochs(self, epochs: Epochs) -> None:
        if self.state is State.SERVED:
            self.tracker.order(epochs.subject, epochs.order)

    def marked(self, marked: Marked) -> None:
        if self.state is State.SERVED:
            self.is_joined = True
            self.tracker.resume_token(marked.resume_token, marked.node)
            self._put(marked)

    def dropped(self, dropped: Dropped) -> None:
        if self.state is State.SERVED:
            self._put(dropped)

    @property
    def can_pause(self) -> bool:
        """Whether it can be paused. False for a first join that was restarted: with repeated pauses it would never complete."""
        return self.is_joined or not self._has_begun_anew

    def pause(self, now: int) -> bool:
        """Pause it until its full queue has room. Returns True if an unsubscribe must be sent."""
        self.was_paused = self.was_paused or self.state is State.SERVED
        self.resumes_at = max(now, self.resumed_at + PAUSE_MS)
        return self.pause_now()

    def pause_now(self) -> bool:
        """Mark it as paused. Returns True if an unsubscribe must be sent."""
        was_asked = self.is_asked
        if self.state is not State.ENDED:
            self.state, self.is_paused = State.IDLE, True
        return was_asked

    def lost(self, reason: str) -> None:
        """The connection was lost. With a full queue the subscription is requested again only after there is room."""
        if self.state is State.ENDED:
            return
        if self.state is State.SERVED:
            self._put(Status(self.selector, "disconnected", reason=reason))
        self.state = State.IDLE
        self.is_paused = self.is_paused or self.queue.is_full

    def end(self, error: GodwitError | None) -> None:
        if self.state is not State.ENDED:
            self.state, self.error = State.ENDED, error
            self.is_paused = False  # an ended subscription never resumes, even if something still wakes its reader
            self.queue.let_go()
            self.wake()

    def _begin_anew(self) -> None:
        """Restart a first join of many subjects that was interrupted. Messages missed before cannot be requested, so a gap
        is reported.
        """
        self._has_begun_anew = True
        gap = Gap(self.selector, None, None, GapReason.UNKNOWN, None, self.selector)
        self.gaps += 1
        self.tracker.place(gap)
        self._put(gap)

    def _put(self, entry: Message | Gap | Dropped | Status | Marked) -> None:
        self.queue.put(entry)
        self.wake()


def _missing_gap(message: Message, resume_point: Position | None) -> Gap:
    """Report messages that the server should have sent and did not."""
    at = message.position
    assert at is not None and resume_point is not None, "messages are missing between two positions"
    upto = message.after or Position(at.epoch, at.sequence - 1)
    return Gap(
        message.subject, upto, resume_point, GapReason.UNKNOWN, upto.sequence - resume_point.sequence, message.pattern
    )


def _nothing() -> None:
    """Nobody is waiting."""
