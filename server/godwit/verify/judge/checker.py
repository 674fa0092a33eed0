"""Checks one subscription: everything it received, in order, against the guarantees, as it arrives.

For a raw subscriber it knows what may be repeated after a resume. For a client library nothing may arrive twice. `subject_state`
keeps the position in each subject, `expected_history` what was published, `merging` judges merged values, and `cause` the causes
of gaps. Pure: the time is given with each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...model import Gap, GapReason, Message, Outcome, Position
from ...subject import is_pattern, matches
from .cause import judge_cause
from .context import CheckContext, Counts
from .finding import Finding, Guarantee, Violation
from .history import tell_history
from .merging import claim_of
from .subject_state import SEEN_MAX, Seen, SubjectState

RESUME_TOKENS_KEPT = 2
WORDS_MAX = 400
UNTOLD = -1
JOIN_MS = 10_000
"""How long a join may take before its first resume token, if tokens are not visible, on a node that just restarted."""
OVERLAP_MS = 5_000
"""How long the window of a conflated subscription may stay open after a resume; longer on a frozen node."""


class Checker:
    """See the module. The subscriber calls `asked`, `joined`, `message`, `gap`, `marked` and `lost` as they happen."""

    def __init__(
        self,
        name: str,
        selector: str,
        context: CheckContext,
        *,
        is_client: bool = False,
        conflate_ms: int = 0,
        goes_on_from_oldest: bool = False,
    ) -> None:
        self.name, self.selector, self.context = name, selector, context
        self._goes_on_from_oldest = goes_on_from_oldest
        self.is_client, self.is_conflated = is_client, conflate_ms > 0
        self._overlap_ms = conflate_ms + OVERLAP_MS if conflate_ms else 0
        self._asked_ms = 0
        self.is_pattern = is_pattern(selector)
        self.counts = Counts()
        self.states: dict[str, SubjectState] = {}
        self.moved: Callable[[], None] = _nobody_waits
        self._expected = context.expected
        self._events: deque[Seen] = deque(maxlen=SEEN_MAX)  # of the whole subscription: cuts, resumes, pattern gaps
        self._words: deque[Seen] = deque(maxlen=SEEN_MAX)  # what its library said
        self._resume_tokens: dict[str, dict[str, Position]] = {}
        self._heads: Mapping[str, Position] = {}  # the acknowledged positions when it last subscribed again
        # What the reply to its subscribe said; None between connections.
        self._join: tuple[Outcome | None, int | None] | None = None
        self._restarts = context.restarts  # that this subscription has received
        self._is_late = False  # a restart was reported, and nothing of the current run has arrived yet
        self._unmarked_ms: int | None = (
            None  # when a gap of the whole pattern reported one, if no resume token came since
        )
        self._last_of: dict[int, tuple[int, str, Position]] = {}  # across subjects: the last message of each publisher
        self._is_feed = False  # what comes is the feed's order: no join by subjects is under way

    # Its own doings

    def asked(self, at_ms: int, since: str | None = None, is_new: bool = False) -> None:
        """A subscribe was sent: new, from a resume token, or from positions."""
        if is_new or (since is None and not self.states):
            for state in self.states.values():
                state.begin()
            self._resume_tokens.clear()
            self._heads = self._expected.heads()
            self._restarts = self.context.restarts
            self._note(at_ms, "subscribed without a position", None)
        else:
            self.counts.resumes += 1
            self._heads = self._expected.heads() if self._heads else {}
            if since is not None:
                self._rewind(self._resume_tokens.get(since, {}))
            self._note(at_ms, "resumed" if since is None else "resumed from a resume token", None)
        self._join = None
        self._last_of.clear()
        self._is_feed = since is not None
        self._asked_ms = at_ms

    def _rewind(self, reached: Mapping[str, Position]) -> None:
        joins_runs = self.context.rules.keeps_journal and self.context.restarts > 0
        for subject, state in self.states.items():
            to = reached.get(subject)
            if to is None and joins_runs:
                state.begin()  # it is of after the resume token: all of it comes again, from its first run on
            else:
                state.rewind(to)

    def lost(self, at_ms: int, reason: str = "") -> None:
        """The connection was lost."""
        self.counts.losses += 1
        for state in self.states.values():
            state.is_due = False
        self._join = None
        self._forget_unmarked(at_ms)
        self._note(at_ms, f"the connection closed{reason and ': '}{reason[:60]}", None)

    def said(self, at_ms: int, words: str) -> None:
        """Record a report of the library, for the history only."""
        self._words.append((at_ms, f"client log: {words[:WORDS_MAX]}", None))

    # What it receives

    def joined(self, at_ms: int, at: Position | None, outcome: Outcome | None, count: int | None = None) -> None:
        """The reply to its subscribe; `at` and `count` only on a subject."""
        self.counts.joins += 1
        self._join = (outcome, count)
        if self.is_pattern or at is None:
            return
        state = self.state(self.selector)
        state.seen.append((at_ms, "reply", (outcome, at, count)))
        violation = self._judge_reply(state, at, outcome, count)
        if violation is not None:
            self._find(at_ms, self.selector, violation)
        if state.reached is None and outcome is Outcome.LIVE:
            state.reached = at

    def resumed(self, at_ms: int) -> None:
        """A client reports that it is served again; it keeps its own position."""
        self.counts.joins += 1
        self.counts.resumes += 1
        self._note(at_ms, "the client reconnected", None)

    def message(self, at_ms: int, message: Message) -> None:
        at = message.position
        if at is None:
            return
        subject = message.subject
        state = self.states.get(subject)
        if state is None:
            if subject not in self._expected.styles or not matches(self.selector, subject):
                self._find(at_ms, subject, Violation(Guarantee.CONTENT, f"{subject} does not match the subscription"))
                return
            state = self.state(subject)
        self.counts.messages += 1
        if self._is_late and not self._expected.has_ended(subject, at.epoch):
            self._restarts, self._is_late = self.context.restarts, False
        before = state.reached
        if message.is_snapshot:
            violation = self._judge_snapshot(state, subject, at)
        elif before is None:
            violation = self._judge_first(state, message, at)
        else:
            violation = state.message(message)
            if violation is not None and self._begins_a_run(before, message):
                violation = None
            if (
                violation is not None
                and violation.guarantee is Guarantee.NO_REPEAT
                and at_ms - self._asked_ms < self._overlap_ms
            ):
                violation = None
            self.counts.again += violation is None and state.reached == before
        violation = self._judge_content(at_ms, subject, message, at) or violation
        state.seen.append((at_ms, "snapshot" if message.is_snapshot else "message", _short(message)))
        if violation is not None:
            self._find(at_ms, subject, violation)
        elif self._is_feed and not message.is_snapshot and not self.is_conflated and state.reached == at:
            self._judge_order(at_ms, subject, at)
        self.moved()

    def gap(self, at_ms: int, gap: Gap) -> None:
        self.counts.gaps += 1
        self._last_of.clear()
        if gap.position is None:
            self._pattern_gap(at_ms, gap)
            return
        state = self.state(gap.subject)
        is_position_of_node = not (
            self.is_client and self.is_pattern
        )  # otherwise `after` may be the client's own, later position
        if is_position_of_node and gap.missed == 0 and gap.after is not None and gap.position.epoch != gap.after.epoch:
            self._expected.follow(gap.subject, gap.position.epoch, gap.after)
        is_epoch = gap.reason is GapReason.EPOCH  # then the kept messages follow, or the snapshot if there are none
        needs_snapshot = not is_epoch and gap.missed != 0 and gap.position.sequence > 0 and self._expects_snapshot
        reached = state.reached
        if (
            reached is not None
            and reached.sequence == 0
            and self._expected.followed(gap.subject, reached.epoch) == gap.after
        ):
            gap = replace(gap, after=reached)  # where a run ends and where the next begins is one place
        violation = state.gap(gap, self.is_pattern and not self.is_client, needs_count=not self.is_pattern)
        state.is_due = needs_snapshot
        state.seen.append((at_ms, "gap", (gap.after, gap.position, gap.reason, gap.missed)))
        self.counts.missed += gap.missed or 0
        self.counts.gaps_uncounted += gap.missed is None
        violation = violation or judge_cause(self.context, gap, at_ms, self._goes_on_from_oldest)
        if violation is not None:
            self._find(at_ms, gap.subject, violation)
        self.moved()

    def marked(self, at_ms: int, resume_token: str) -> None:
        """A resume token arrived: everything up to it was sent before it."""
        self._resume_tokens[resume_token] = {
            subject: state.reached for subject, state in self.states.items() if state.reached is not None
        }
        if len(self._resume_tokens) > RESUME_TOKENS_KEPT:
            del self._resume_tokens[next(iter(self._resume_tokens))]
        for subject, state in self.states.items():
            if state.is_due:
                state.is_due = False
                self._find(
                    at_ms, subject, Violation(Guarantee.GAPS, f"no snapshot followed the gap to {state.reached}")
                )
        for subject, head in self._heads.items():
            self._judge_fresh(at_ms, subject, head)
        self._heads = {}
        self._is_feed = True
        self._unmarked_ms = None
        self.moved()

    # At the end

    def is_at(self, heads: Mapping[str, Position]) -> bool:
        """Whether it has reached the end of everything that it subscribes to."""
        return not self._short_of(heads) and not any(state.is_due for state in self.states.values())

    def end(self, at_ms: int, heads: Mapping[str, Position]) -> None:
        """Nothing more will arrive: messages that are missing are lost."""
        for subject, head in self._short_of(heads):
            state = self.states.get(subject)
            reached = state.reached if state is not None else None
            self._find(
                at_ms, subject, Violation(Guarantee.NO_LOSS, f"the subject ends at {head}, the subscriber at {reached}")
            )
        for subject, state in self.states.items():
            if state.is_due:
                self._find(
                    at_ms, subject, Violation(Guarantee.GAPS, f"no snapshot followed the gap to {state.reached}")
                )

    def _short_of(self, heads: Mapping[str, Position]) -> list[tuple[str, Position]]:
        short = []
        for subject, head in heads.items():
            if matches(self.selector, subject):
                state = self.states.get(subject)
                reached = state.reached if state is not None else None
                if reached is None or reached.epoch != head.epoch or reached.sequence < head.sequence:
                    short.append((subject, head))
        return short

    # Judging

    @property
    def _expects_snapshot(self) -> bool:
        """Whether a snapshot must follow, after a gap."""
        return self.context.rules.has_snapshots and not self._goes_on_from_oldest

    def _judge_reply(
        self, state: SubjectState, at: Position, outcome: Outcome | None, count: int | None
    ) -> Violation | None:
        reached, head = state.reached, self._heads.get(self.selector)
        if reached is None:
            if head is not None and at.epoch == head.epoch and at.sequence < head.sequence:
                return Violation(Guarantee.FRESH, f"subscribed at {at}, but {head} was acknowledged before")
            if outcome is Outcome.LIVE and at.sequence > 0 and self.context.rules.has_snapshots:
                return Violation(Guarantee.FRESH, f"subscribed at {at} and received no snapshot")
            return None
        if outcome is Outcome.RESYNC:
            return None  # a gap must say why: the next message is held against it
        if at.epoch != reached.epoch:
            has_ended = reached.sequence == 0 or self._expected.has_ended(self.selector, reached.epoch)
            if self.context.rules.keeps_journal and self.context.restarts and has_ended:
                return None  # the rest of a run follows, then a report of the change, with which the next is compared
            return Violation(Guarantee.RUN, f"resumed from {reached} to {at} as {outcome} without a gap")
        if count is not None and not self.is_conflated and count != at.sequence - reached.sequence:
            return Violation(Guarantee.GAPS, f"resumed from {reached} to {at} with {count} announced")
        return None

    def _judge_snapshot(self, state: SubjectState, subject: str, at: Position) -> Violation | None:
        self.counts.snapshots += 1
        reached, is_due = state.reached, state.is_due
        state.move_to(at, self.is_pattern and not self.is_client)
        is_behind_gap = bool(state.seen) and state.seen[-1][1] == "gap"
        if is_due or (at == reached and (is_behind_gap or (self.context.rules.keeps_journal and at.sequence == 0))):
            # At the beginning of a run there is a snapshot only where a journal brought it back.
            return (
                None
                if at == reached
                else Violation(Guarantee.GAPS, f"the gap ends at {reached}, its snapshot is at {at}")
            )
        if reached is not None:
            return Violation(Guarantee.GAPS, f"received a snapshot at {at} after {reached}, and no gap before it")
        head = self._heads.get(subject)
        if head is not None and head.epoch == at.epoch and at.sequence < head.sequence:
            return Violation(Guarantee.FRESH, f"subscribed at {at}, but {head} was acknowledged before")
        return None

    def _judge_first(self, state: SubjectState, message: Message, at: Position) -> Violation | None:
        """Check the first message of a subject without a snapshot: it must be the first one that exists."""
        follows = message.after  # of another run: it is the first of its own, or was merged over the end of that one
        is_within = follows is not None and (follows.epoch == at.epoch or message.conflated)
        after = follows.sequence if follows is not None and is_within else at.sequence - 1
        state.reached = at
        if after == 0 or not self.context.rules.has_snapshots:
            return None
        return Violation(Guarantee.NO_LOSS, f"received {at} first: the messages before it are missing")

    def _begins_a_run(self, reached: Position, message: Message) -> bool:
        """Whether a subscriber before everything in an ended run missed nothing, because the journal begins there (6.7)."""
        at = message.position
        if at is None:
            return False
        after = message.after or Position(at.epoch, at.sequence - 1)
        is_first = at.epoch != reached.epoch and after == Position(at.epoch, 0)
        return self.context.rules.keeps_journal and is_first and reached.sequence == 0

    def _judge_content(self, at_ms: int, subject: str, message: Message, at: Position) -> Violation | None:
        after = message.after
        if at.sequence == 1 and after is not None and after.epoch != at.epoch and not message.conflated:
            self._expected.follow(subject, at.epoch, after)  # what was merged over the end of a run began before it
        if not message.is_snapshot and not message.conflated:
            return self._expected.observe(subject, at, message.content)
        self.counts.conflated += bool(message.conflated)
        claim = claim_of(subject, message.after, at, message.is_snapshot, message.content)
        return self.context.merging.claim(claim, message.content, self.name, at_ms)

    def _judge_order(self, at_ms: int, subject: str, at: Position) -> None:
        """Messages of one publisher must keep their order across the subjects of a pattern (5.2)."""
        identity = self._expected.identity_at(subject, at)
        if identity is None:
            return
        last = self._last_of.get(identity.publisher)
        if last is not None and identity.number < last[0] and self.states[last[1]].reached == last[2]:
            violation = Violation(
                Guarantee.ORDER,
                f"received {identity} on {subject} at {at} after number {last[0]} of the same publisher on {last[1]} at {last[2]}",
            )
            self._find(at_ms, subject, violation)
        self._last_of[identity.publisher] = (identity.number, subject, at)

    def _pattern_gap(self, at_ms: int, gap: Gap) -> None:
        self._note(at_ms, f"gap of the whole pattern ({gap.reason})", None)
        self.counts.gaps_uncounted += 1
        if self.context.rules.knows_restarts and self._restarts == self.context.restarts:
            violation = Violation(Guarantee.GAPS, "received a gap of the whole pattern, but the node was not restarted")
            self._find(at_ms, self.selector, violation)
        # A gap that waited to be read may be of an earlier restart: it counts as one restart, until a message of this run arrives.
        self._restarts, self._is_late = min(self._restarts + 1, self.context.restarts), True
        self._unmarked_ms = at_ms
        for state in self.states.values():
            state.begin()
        self._resume_tokens.clear()
        self._heads, self._is_feed = {}, False
        self.moved()

    def _forget_unmarked(self, at_ms: int) -> None:
        """Discard positions after a join that ended before its first resume token: it starts again, and repeats its gap.
        Users of a client see no resume tokens, so there a join is given some time.
        """
        if self._unmarked_ms is not None and (not self.is_client or at_ms - self._unmarked_ms < JOIN_MS):
            self._restarts = UNTOLD
        self._unmarked_ms = None

    def _judge_fresh(self, at_ms: int, subject: str, head: Position) -> None:
        state = self.states.get(subject)
        if matches(self.selector, subject) and (state is None or state.reached is None):
            violation = Violation(Guarantee.FRESH, f"subscribed, but nothing up to {head} was received")
            self._find(at_ms, subject, violation)

    # Inside

    def state(self, subject: str) -> SubjectState:
        """The state of one subject."""
        state = self.states.get(subject)
        if state is None:
            state = self.states[subject] = SubjectState()
        return state

    def _note(self, at_ms: int, what: str, detail: object) -> None:
        self._events.append((at_ms, what, detail))

    def _find(self, at_ms: int, subject: str, violation: Violation) -> None:
        if violation.guarantee not in self.context.rules.guarantees:
            return
        state = self.states.get(subject)
        seen = list(state.seen) if state is not None else []
        history = tell_history(self._expected, subject, violation, seen, [*self._events, *self._words])
        self.context.findings.add(Finding(violation.guarantee, violation.sentence, self.name, subject, at_ms, history))


def _short(message: Message) -> tuple[Position | None, Position | None, int]:
    return message.position, message.after, message.conflated


def _nobody_waits() -> None:
    """Default callback: nothing waits for this checker's progress."""
