"""One subscription under oath: everything it was told, in order, held to the promises as it comes.

A witness of the wire hears the node itself, and knows what may come again after a resume. A witness of a client hears what a
library gives its user: there nothing may come twice. Places of subjects are place.py's, truth is the ledger's, merged
values are merging's, the causes of gaps cause's. Pure: the time is given with each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from ...model import Gap, GapReason, Message, Outcome, Position
from ...subject import is_pattern, matches
from .cause import judge_cause
from .court import Counts, Court
from .finding import Breach, Finding, Promise
from .history import tell_history
from .merging import claim_of
from .place import SEEN_MAX, Place, Seen

RESUME_TOKENS_KEPT = 2
WORDS_MAX = 400
UNTOLD = -1
JOIN_MS = 10_000
"""So long a join may take before its first resume token, where no resume token is heard of: on a node that was just restarted."""
OVERLAP_MS = 5_000
"""The window that is open when a conflated subscription resumes may close over what its join gave; on a frozen node, later."""


class Witness:
    """See the module. The shell calls `asked`, `joined`, `message`, `gap`, `marked`, `lost` as they happen."""

    def __init__(
        self,
        name: str,
        selector: str,
        court: Court,
        *,
        is_client: bool = False,
        conflate_ms: int = 0,
        goes_on_from_oldest: bool = False,
    ) -> None:
        self.name, self.selector, self.court = name, selector, court
        self._goes_on_from_oldest = goes_on_from_oldest
        self.is_client, self.is_conflated = is_client, conflate_ms > 0
        self._overlap_ms = conflate_ms + OVERLAP_MS if conflate_ms else 0
        self._asked_ms = 0
        self.is_pattern = is_pattern(selector)
        self.counts = Counts()
        self.places: dict[str, Place] = {}
        self.moved: Callable[[], None] = _nobody_waits
        self._ledger = court.ledger
        self._events: deque[Seen] = deque(maxlen=SEEN_MAX)  # of the whole subscription: cuts, resumes, pattern gaps
        self._words: deque[Seen] = deque(maxlen=SEEN_MAX)  # what its library said
        self._resume_tokens: dict[str, dict[str, Position]] = {}
        self._heads: Mapping[str, Position] = {}  # what had been acknowledged when it last joined anew
        # What the reply to its subscribe said; None between connections.
        self._join: tuple[Outcome | None, int | None] | None = None
        self._restarts = court.restarts  # that this subscription has been told of
        self._is_late = False  # it was told of a restart, and nothing has come yet of the run that is now
        self._unmarked_ms: int | None = (
            None  # when it was told of one by a gap of the whole pattern, no resume token having come since
        )
        self._last_of: dict[int, tuple[int, str, Position]] = {}  # across subjects: the last message of each publisher
        self._is_feed = False  # what comes is the feed's order: no join by subjects is under way

    # Its own doings

    def asked(self, at_ms: int, since: str | None = None, is_new: bool = False) -> None:
        """It subscribes: anew, from a resume token, or from its positions."""
        if is_new or (since is None and not self.places):
            for place in self.places.values():
                place.begin()
            self._resume_tokens.clear()
            self._heads = self._ledger.heads()
            self._restarts = self.court.restarts
            self._note(at_ms, "subscribed as a newcomer", None)
        else:
            self.counts.resumes += 1
            self._heads = self._ledger.heads() if self._heads else {}
            if since is not None:
                self._rewind(self._resume_tokens.get(since, {}))
            self._note(at_ms, "resumed" if since is None else "resumed from a resume token", None)
        self._join = None
        self._last_of.clear()
        self._is_feed = since is not None
        self._asked_ms = at_ms

    def _rewind(self, stands: Mapping[str, Position]) -> None:
        joins_runs = self.court.rules.keeps_journal and self.court.restarts > 0
        for subject, place in self.places.items():
            to = stands.get(subject)
            if to is None and joins_runs:
                place.begin()  # it is of after the resume token: all of it comes again, from its first run on
            else:
                place.rewind(to)

    def lost(self, at_ms: int, reason: str = "") -> None:
        """Its connection went."""
        self.counts.losses += 1
        for place in self.places.values():
            place.is_due = False
        self._join = None
        self._forget_unmarked(at_ms)
        self._note(at_ms, f"the connection went{reason and ': '}{reason[:60]}", None)

    def said(self, at_ms: int, words: str) -> None:
        """What its library says of itself: proof of nothing, but of use to whoever has to look."""
        self._words.append((at_ms, f"it says: {words[:WORDS_MAX]}", None))

    # What it is told

    def joined(self, at_ms: int, at: Position | None, outcome: Outcome | None, count: int | None = None) -> None:
        """The reply to its subscribe; `at` and `count` only on a subject."""
        self.counts.joins += 1
        self._join = (outcome, count)
        if self.is_pattern or at is None:
            return
        place = self.place(self.selector)
        place.seen.append((at_ms, "reply", (outcome, at, count)))
        breach = self._judge_reply(place, at, outcome, count)
        if breach is not None:
            self._find(at_ms, self.selector, breach)
        if place.stand is None and outcome is Outcome.LIVE:
            place.stand = at

    def resumed(self, at_ms: int) -> None:
        """A client says that it is served again; where, is the client's own affair."""
        self.counts.joins += 1
        self.counts.resumes += 1
        self._note(at_ms, "the client is served again", None)

    def message(self, at_ms: int, message: Message) -> None:
        at = message.position
        if at is None:
            return
        subject = message.subject
        place = self.places.get(subject)
        if place is None:
            if subject not in self._ledger.styles or not matches(self.selector, subject):
                self._find(at_ms, subject, Breach(Promise.CONTENT, f"{subject} is not what was subscribed to"))
                return
            place = self.place(subject)
        self.counts.messages += 1
        if self._is_late and not self._ledger.has_ended(subject, at.epoch):
            self._restarts, self._is_late = self.court.restarts, False
        before = place.stand
        if message.is_snapshot:
            breach = self._judge_snapshot(place, subject, at)
        elif before is None:
            breach = self._judge_first(place, message, at)
        else:
            breach = place.message(message)
            if breach is not None and self._begins_a_run(before, message):
                breach = None
            if breach is not None and breach.promise is Promise.NO_REPEAT and at_ms - self._asked_ms < self._overlap_ms:
                breach = None
            self.counts.again += breach is None and place.stand == before
        breach = self._judge_content(at_ms, subject, message, at) or breach
        place.seen.append((at_ms, "snapshot" if message.is_snapshot else "message", _short(message)))
        if breach is not None:
            self._find(at_ms, subject, breach)
        elif self._is_feed and not message.is_snapshot and not self.is_conflated and place.stand == at:
            self._judge_order(at_ms, subject, at)
        self.moved()

    def gap(self, at_ms: int, gap: Gap) -> None:
        self.counts.gaps += 1
        self._last_of.clear()
        if gap.position is None:
            self._pattern_gap(at_ms, gap)
            return
        place = self.place(gap.subject)
        is_told_by_node = not (
            self.is_client and self.is_pattern
        )  # else `after` may be the client's own stand, further on
        if is_told_by_node and gap.missed == 0 and gap.after is not None and gap.position.epoch != gap.after.epoch:
            self._ledger.follow(gap.subject, gap.position.epoch, gap.after)
        is_epoch = gap.reason is GapReason.EPOCH  # then the kept messages follow, and the snapshot where there are none
        needs_snapshot = not is_epoch and gap.missed != 0 and gap.position.sequence > 0 and self._expects_snapshot
        stand = place.stand
        if stand is not None and stand.sequence == 0 and self._ledger.followed(gap.subject, stand.epoch) == gap.after:
            gap = replace(gap, after=stand)  # where a run ends and where the next begins is one place
        breach = place.gap(gap, self.is_pattern and not self.is_client, needs_count=not self.is_pattern)
        place.is_due = needs_snapshot
        place.seen.append((at_ms, "gap", (gap.after, gap.position, gap.reason, gap.missed)))
        self.counts.missed += gap.missed or 0
        self.counts.gaps_uncounted += gap.missed is None
        breach = breach or judge_cause(self.court, gap, at_ms, self._goes_on_from_oldest)
        if breach is not None:
            self._find(at_ms, gap.subject, breach)
        self.moved()

    def marked(self, at_ms: int, resume_token: str) -> None:
        """Everything up to this resume token was sent before it."""
        self._resume_tokens[resume_token] = {
            subject: place.stand for subject, place in self.places.items() if place.stand is not None
        }
        if len(self._resume_tokens) > RESUME_TOKENS_KEPT:
            del self._resume_tokens[next(iter(self._resume_tokens))]
        for subject, place in self.places.items():
            if place.is_due:
                place.is_due = False
                self._find(at_ms, subject, Breach(Promise.GAPS, f"no snapshot followed the gap to {place.stand}"))
        for subject, head in self._heads.items():
            self._judge_fresh(at_ms, subject, head)
        self._heads = {}
        self._is_feed = True
        self._unmarked_ms = None
        self.moved()

    # At the end

    def is_at(self, heads: Mapping[str, Position]) -> bool:
        """Whether it has come to the end of everything it listens to."""
        return not self._short_of(heads) and not any(place.is_due for place in self.places.values())

    def end(self, at_ms: int, heads: Mapping[str, Position]) -> None:
        """Nothing more will come: whatever is missing is lost."""
        for subject, head in self._short_of(heads):
            place = self.places.get(subject)
            stand = place.stand if place is not None else None
            self._find(at_ms, subject, Breach(Promise.NO_LOSS, f"{head} is the head, but this one ended at {stand}"))
        for subject, place in self.places.items():
            if place.is_due:
                self._find(at_ms, subject, Breach(Promise.GAPS, f"no snapshot followed the gap to {place.stand}"))

    def _short_of(self, heads: Mapping[str, Position]) -> list[tuple[str, Position]]:
        short = []
        for subject, head in heads.items():
            if matches(self.selector, subject):
                place = self.places.get(subject)
                stand = place.stand if place is not None else None
                if stand is None or stand.epoch != head.epoch or stand.sequence < head.sequence:
                    short.append((subject, head))
        return short

    # Judging

    @property
    def _expects_snapshot(self) -> bool:
        """After a gap."""
        return self.court.rules.has_snapshots and not self._goes_on_from_oldest

    def _judge_reply(self, place: Place, at: Position, outcome: Outcome | None, count: int | None) -> Breach | None:
        stand, head = place.stand, self._heads.get(self.selector)
        if stand is None:
            if head is not None and at.epoch == head.epoch and at.sequence < head.sequence:
                return Breach(Promise.FRESH, f"joined at {at}, though {head} had been acknowledged before")
            if outcome is Outcome.LIVE and at.sequence > 0 and self.court.rules.has_snapshots:
                return Breach(Promise.FRESH, f"joined at {at} without the snapshot")
            return None
        if outcome is Outcome.RESYNC:
            return None  # a gap must say why: the next message is held against it
        if at.epoch != stand.epoch:
            has_ended = stand.sequence == 0 or self._ledger.has_ended(self.selector, stand.epoch)
            if self.court.rules.keeps_journal and self.court.restarts and has_ended:
                return None  # the rest of a run follows, then the change is told: the next message is held against it
            return Breach(Promise.RUN, f"resumed from {stand} and was placed at {at} as {outcome}, not told of a gap")
        if count is not None and not self.is_conflated and count != at.sequence - stand.sequence:
            return Breach(Promise.GAPS, f"resumed from {stand} to {at} and was promised {count} messages")
        return None

    def _judge_snapshot(self, place: Place, subject: str, at: Position) -> Breach | None:
        self.counts.snapshots += 1
        stand, is_due = place.stand, place.is_due
        place.stand_at(at, self.is_pattern and not self.is_client)
        is_behind_gap = bool(place.seen) and place.seen[-1][1] == "gap"
        if is_due or (at == stand and (is_behind_gap or (self.court.rules.keeps_journal and at.sequence == 0))):
            # At the beginning of a run there is a snapshot only where a journal brought it back.
            return None if at == stand else Breach(Promise.GAPS, f"the gap was to {stand}, its snapshot is at {at}")
        if stand is not None:
            return Breach(Promise.GAPS, f"a snapshot at {at} came to one who stood at {stand}, and no gap before it")
        head = self._heads.get(subject)
        if head is not None and head.epoch == at.epoch and at.sequence < head.sequence:
            return Breach(Promise.FRESH, f"joined at {at}, though {head} had been acknowledged before")
        return None

    def _judge_first(self, place: Place, message: Message, at: Position) -> Breach | None:
        """The first that comes of a subject, and no snapshot: only the first there is can be that."""
        follows = message.after  # of another run: it is the first of its own, or was merged over the end of that one
        is_within = follows is not None and (follows.epoch == at.epoch or message.conflated)
        after = follows.sequence if follows is not None and is_within else at.sequence - 1
        place.stand = at
        if after == 0 or not self.court.rules.has_snapshots:
            return None
        return Breach(Promise.NO_LOSS, f"{at} was the first that came; what was before it never came")

    def _begins_a_run(self, stand: Position, message: Message) -> bool:
        """Who stood before everything in a run that ended has missed nothing of a subject that the journal begins with (6.7)."""
        at = message.position
        if at is None:
            return False
        after = message.after or Position(at.epoch, at.sequence - 1)
        is_first = at.epoch != stand.epoch and after == Position(at.epoch, 0)
        return self.court.rules.keeps_journal and is_first and stand.sequence == 0

    def _judge_content(self, at_ms: int, subject: str, message: Message, at: Position) -> Breach | None:
        after = message.after
        if at.sequence == 1 and after is not None and after.epoch != at.epoch and not message.conflated:
            self._ledger.follow(subject, at.epoch, after)  # what was merged over the end of a run began before it
        if not message.is_snapshot and not message.conflated:
            return self._ledger.observe(subject, at, message.content)
        self.counts.conflated += bool(message.conflated)
        claim = claim_of(subject, message.after, at, message.is_snapshot, message.content)
        return self.court.merging.claim(claim, message.content, self.name, at_ms)

    def _judge_order(self, at_ms: int, subject: str, at: Position) -> None:
        """One publisher's messages keep their order across the subjects of a pattern (5.2)."""
        identity = self._ledger.identity_at(subject, at)
        if identity is None:
            return
        last = self._last_of.get(identity.publisher)
        if last is not None and identity.number < last[0] and self.places[last[1]].stand == last[2]:
            breach = Breach(
                Promise.ORDER,
                f"{identity} came on {subject} at {at} after number {last[0]} of the same publisher on {last[1]} at {last[2]}",
            )
            self._find(at_ms, subject, breach)
        self._last_of[identity.publisher] = (identity.number, subject, at)

    def _pattern_gap(self, at_ms: int, gap: Gap) -> None:
        self._note(at_ms, f"gap of the whole pattern ({gap.reason})", None)
        self.counts.gaps_uncounted += 1
        if self.court.rules.knows_restarts and self._restarts == self.court.restarts:
            breach = Breach(Promise.GAPS, "a gap of the whole pattern was told, but nobody restarted the node")
            self._find(at_ms, self.selector, breach)
        # What waited to be read may speak of a restart before the last: it tells of one, until a message is of this run.
        self._restarts, self._is_late = min(self._restarts + 1, self.court.restarts), True
        self._unmarked_ms = at_ms
        for place in self.places.values():
            place.begin()
        self._resume_tokens.clear()
        self._heads, self._is_feed = {}, False
        self.moved()

    def _forget_unmarked(self, at_ms: int) -> None:
        """A join that is cut before its first resume token begins again where it began, and reports its gap again. A client's user
        sees no resume tokens: there a join is given some time.
        """
        if self._unmarked_ms is not None and (not self.is_client or at_ms - self._unmarked_ms < JOIN_MS):
            self._restarts = UNTOLD
        self._unmarked_ms = None

    def _judge_fresh(self, at_ms: int, subject: str, head: Position) -> None:
        place = self.places.get(subject)
        if matches(self.selector, subject) and (place is None or place.stand is None):
            breach = Breach(
                Promise.FRESH, f"the join is complete, and nothing came of what was acknowledged up to {head}"
            )
            self._find(at_ms, subject, breach)

    # Inside

    def place(self, subject: str) -> Place:
        """Where it stands in a subject."""
        place = self.places.get(subject)
        if place is None:
            place = self.places[subject] = Place()
        return place

    def _note(self, at_ms: int, what: str, detail: object) -> None:
        self._events.append((at_ms, what, detail))

    def _find(self, at_ms: int, subject: str, breach: Breach) -> None:
        if breach.promise not in self.court.rules.promises:
            return
        place = self.places.get(subject)
        seen = list(place.seen) if place is not None else []
        history = tell_history(self._ledger, subject, breach, seen, [*self._events, *self._words])
        self.court.findings.add(Finding(breach.promise, breach.sentence, self.name, subject, at_ms, history))


def _short(message: Message) -> tuple[Position | None, Position | None, int]:
    return message.position, message.after, message.conflated


def _nobody_waits() -> None:
    """Nobody waits for this witness to move."""
