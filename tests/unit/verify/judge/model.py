"""A simulated broker for the judge's tests, with one subscriber, and a brute-force judge that knows everything.

`Truth` keeps logs, answers a resume exactly as the protocol says, and can be made to lie. `judge` compares, position by
position, what arrived with what should have arrived: slow, obvious, and without any of the checker's states.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from godwit.model import Gap, GapReason, Kind, Message, Outcome, Position
from godwit.verify.judge.checker import Checker
from godwit.verify.judge.content import Contents, Identity, Style
from godwit.verify.judge.context import CheckContext, Rules
from godwit.verify.judge.expected_history import ExpectedHistory
from godwit.verify.judge.finding import Findings
from godwit.verify.judge.merging import Merging

SUBJECT = "/s"
EPOCH = 7
CONTENTS = Contents(seed=1, size=1, is_varied=False)

Push = Message | Gap


def context(log_max: int | None = None, styles: dict[str, Style] | None = None) -> CheckContext:
    expected = ExpectedHistory(CONTENTS, styles or {SUBJECT: Style.OBJECT})
    rules = Rules(log_messages_max=log_max, log_age_ms_max=10**9, knows_restarts=True)
    return CheckContext(expected, Merging(expected), Findings(), rules)


def content(number: int) -> bytes:
    return CONTENTS.make(Identity(1, number), Style.OBJECT)


def publish(expected: ExpectedHistory, count: int, subject: str = SUBJECT, epoch: int = EPOCH) -> None:
    """So many more, acknowledged one after the other."""
    begin = len(expected.senders[1].states) if 1 in expected.senders else 0
    head = expected.head(subject, epoch)
    for step in range(1, count + 1):
        expected.send(Identity(1, begin + step), subject, 0)
        assert expected.acknowledge(Identity(1, begin + step), Position(epoch, head + step)) is None


def merged(after: int, at: int) -> bytes:
    """What the messages after one place come to, folded forward from the oldest."""
    fields: dict[str, object] = {}
    for number in range(after + 1, at + 1):
        fields |= json.loads(content(number))
    return json.dumps(fields).encode()


def message(sequence: int, **more: object) -> Message:
    return Message(SUBJECT, content(sequence), position=Position(EPOCH, sequence), **more)  # type: ignore[arg-type]  # fields by name


def snapshot(sequence: int) -> Message:
    return Message(SUBJECT, merged(0, sequence), position=Position(EPOCH, sequence), is_snapshot=True)


def conflated(after: int, at: int, count: int | None = None) -> Message:
    became_one = at - after if count is None else count
    where = (Position(EPOCH, at), Position(EPOCH, after))
    return Message(SUBJECT, merged(after, at), Kind.JSON, *where, conflated=became_one)


def gap(after: int, at: int, missed: int | None = None) -> Gap:
    return Gap(
        SUBJECT,
        Position(EPOCH, at),
        Position(EPOCH, after),
        GapReason.OVERRUN,
        at - after if missed is None else missed,
    )


@dataclass
class Life:
    """One subscriber of one subject, from sequence 0: what it received, message by message, disconnected and resumed at random."""

    head: int
    log_max: int
    seen: list[Push] = field(default_factory=list)

    def live(self, count: int, published: int) -> None:
        """It is behind by some, reads `count`, while `published` are published."""
        self.head += published
        for _ in range(count):
            self._next()

    def catch_up(self) -> None:
        while self.reached < self.head:
            self._next()

    @property
    def reached(self) -> int:
        last = self.seen[-1] if self.seen else None
        return last.position.sequence if last is not None and last.position is not None else 0

    def _next(self) -> None:
        if self.reached >= self.head:
            return
        if self.head - self.reached > self.log_max:
            begin = self.reached
            self.seen.append(gap(begin, self.head))
            self.seen.append(snapshot(self.head))
        else:
            self.seen.append(message(self.reached + 1))


def is_right(seen: list[Push], head: int, log_max: int) -> bool:
    """Brute force, over every position: delivered exactly once in order, or in exactly one gap that had a cause and counts
    right; snapshots only after gaps; and the end is the head.
    """
    owners: dict[int, str] = {}
    reached, previous = 0, None
    for one in seen:
        assert one.position is not None
        at = one.position.sequence
        if isinstance(one, Gap):
            assert one.after is not None
            if one.after.sequence != reached or one.missed != at - reached or at - reached <= log_max:
                return False
            covered, owner = range(reached + 1, at + 1), "gap"
        elif one.is_snapshot:
            if not isinstance(previous, Gap) or previous.position != one.position or one.content != merged(0, at):
                return False
            covered, owner = range(0), "snapshot"
        else:
            if isinstance(previous, Gap) or one.content != content(at):
                return False
            covered, owner = range(at, at + 1), "message"
        for position in covered:
            if position in owners or position != reached + 1:
                return False
            owners[position] = owner
            reached = position
        previous = one
    return reached == head and not isinstance(previous, Gap)


def checker_says(seen: list[Push], head: int, log_max: int) -> Findings:
    """The same events under a checker."""
    trial = context(log_max)
    checker = Checker("w", SUBJECT, trial)
    checker.asked(0)
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE, 0)
    publish(trial.expected, head)
    for at_ms, one in enumerate(seen):
        if isinstance(one, Gap):
            checker.gap(at_ms, one)
        else:
            checker.message(at_ms, one)
    checker.end(len(seen), {SUBJECT: Position(EPOCH, head)} if head else {})
    return trial.findings
