"""The expected history: all publishes, their outcomes, and the message at each position. All subscribers are compared with
it.

A publish is sent, then acknowledged at a position, or refused, or never answered. One without an answer may exist or not,
but at most once in a run and at one position only. The first report of a position fills it, by the publisher's
acknowledgement or a subscriber; later reports must agree. About 50 bytes for each publish; contents are not stored. Pure.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from enum import IntEnum

from ...model import Position
from .content import Contents, Identity, Style, read_identity
from .finding import Guarantee, Violation

NUMBER_BITS = 40
ACKNOWLEDGED = "was acknowledged"


class State(IntEnum):
    """The state of a publish."""

    UNSENT = 0
    UNCERTAIN = 1  # sent, not answered
    ACKNOWLEDGED = 2
    REFUSED = 3


class Run:
    """The positions of one subject in one epoch; index 0 is sequence 1. An unknown position is 0."""

    __slots__ = ("acknowledged", "hashes", "identities")

    def __init__(self) -> None:
        self.identities = array("Q")
        self.hashes = array("q")
        self.acknowledged = 0  # the highest sequence acknowledged to a publisher

    @property
    def head(self) -> int:
        """The highest known sequence."""
        return len(self.identities)

    def identity(self, sequence: int) -> Identity | None:
        packed = self.identities[sequence - 1] if 1 <= sequence <= len(self.identities) else 0
        return Identity((packed >> NUMBER_BITS) - 1, packed & ((1 << NUMBER_BITS) - 1)) if packed else None

    def fill(self, sequence: int, identity: Identity, digest: int) -> None:
        missing = sequence - len(self.identities)
        if missing > 0:
            self.identities.extend([0] * missing)
            self.hashes.extend([0] * missing)
        self.identities[sequence - 1] = (identity.publisher + 1) << NUMBER_BITS | identity.number
        self.hashes[sequence - 1] = digest


class Sender:
    """The publishes of one publisher, in columns; index 0 is number 1."""

    __slots__ = ("epochs", "sent_ms", "sequences", "states", "subjects")

    def __init__(self) -> None:
        self.states = bytearray()
        self.subjects = array("H")
        self.sent_ms = array("Q")
        self.epochs = array("Q")  # of the last position seen
        self.sequences = array("Q")


class ExpectedHistory:
    """See the module. `styles` has every subject of the run with the form of its contents."""

    def __init__(self, contents: Contents, styles: dict[str, Style]) -> None:
        self.contents, self.styles = contents, styles
        self.runs: dict[str, dict[int, Run]] = {subject: {} for subject in styles}  # epochs as they were first seen
        self.senders: dict[int, Sender] = {}
        self._numbers = {subject: number for number, subject in enumerate(styles)}
        self._names = list(styles)
        self._ended: dict[str, set[int]] = {subject: set() for subject in styles}
        self._follows: dict[str, dict[int, Position]] = {subject: {} for subject in styles}
        self.sent_count = self.acknowledged_count = self.refused_count = self.repeat_count = 0

    # What publishers say

    def send(self, identity: Identity, subject: str, at_ms: int) -> bytes:
        """Record that a publish is about to be sent; returns its content. Numbers of a publisher are consecutive."""
        sender = self.senders.setdefault(identity.publisher, Sender())
        assert identity.number == len(sender.states) + 1, "numbers are used in order"
        sender.states.append(State.UNCERTAIN)
        sender.subjects.append(self._numbers[subject])
        sender.sent_ms.append(at_ms)
        sender.epochs.append(0)
        sender.sequences.append(0)
        self.sent_count += 1
        return self.contents.make(identity, self.styles[subject])

    def acknowledge(self, identity: Identity, at: Position, is_duplicate: bool = False) -> Violation | None:
        """The broker acknowledged this publish at a position."""
        sender, index = self.senders[identity.publisher], identity.number - 1
        subject = self._names[sender.subjects[index]]
        sender.states[index] = State.ACKNOWLEDGED
        self.acknowledged_count += 1
        self.repeat_count += is_duplicate
        digest = hash(self.contents.make(identity, self.styles[subject]))
        violation = self._place(subject, at, identity, digest, ACKNOWLEDGED)
        run = self.runs[subject][at.epoch]
        run.acknowledged = max(run.acknowledged, at.sequence)
        return violation

    def refuse(self, identity: Identity) -> None:
        """The broker refused the publish: no subscriber may receive it."""
        self.senders[identity.publisher].states[identity.number - 1] = State.REFUSED
        self.refused_count += 1

    # What subscribers say

    def observe(self, subject: str, at: Position, content: bytes) -> Violation | None:
        """A subscriber received a single message, as it was published."""
        run = self.runs[subject].get(at.epoch)
        if run is not None and at.sequence <= len(run.hashes) and run.identities[at.sequence - 1]:
            if run.hashes[at.sequence - 1] == hash(content):
                return None
            return Violation(Guarantee.CONTENT, f"{at} is {run.identity(at.sequence)}, but other bytes were received")
        from_content = self._recognize(subject, content)
        if isinstance(from_content, Violation):
            return from_content
        return self._place(subject, at, from_content, hash(content), "was delivered")

    def _recognize(self, subject: str, content: bytes) -> Identity | Violation:
        identity = read_identity(content)
        state = State.UNSENT if identity is None else self.state(identity)
        if identity is None or state is State.UNSENT or self.subject_of(identity) != subject:
            return Violation(Guarantee.CONTENT, f"{content[:60]!r} was never published on {subject}")
        if content != self.contents.make(identity, self.styles[subject]):
            return Violation(Guarantee.CONTENT, f"{identity} was received with other bytes: {content[:60]!r}")
        if state is State.REFUSED:
            return Violation(Guarantee.CONTENT, f"{identity} was refused, but was delivered")
        return identity

    def _place(self, subject: str, at: Position, identity: Identity, digest: int, how: str) -> Violation | None:
        run = self.runs[subject].setdefault(at.epoch, Run())
        other = run.identity(at.sequence)
        if other is not None:
            if other != identity:
                return Violation(Guarantee.ONCE, f"{at} is both {other} and {identity}")
            return None
        sender, index = self.senders[identity.publisher], identity.number - 1
        if sender.sequences[index] and sender.epochs[index] == at.epoch:
            return Violation(
                Guarantee.ONCE, f"{identity} is at {at.epoch}.{sender.sequences[index]}, and {how} at {at} again"
            )
        if (
            sender.states[index] == State.ACKNOWLEDGED
            and how != ACKNOWLEDGED
            and self._is_later(subject, at, sender.epochs[index])
        ):
            before = f"{sender.epochs[index]}.{sender.sequences[index]}"
            return Violation(
                Guarantee.ONCE, f"{identity} was acknowledged at {before}, and {how} at {at} of a later run"
            )
        sender.epochs[index], sender.sequences[index] = at.epoch, at.sequence
        run.fill(at.sequence, identity, digest)
        return None

    def _is_later(self, subject: str, at: Position, epoch: int) -> bool:
        order = list(self.runs[subject])
        return epoch in order and order.index(at.epoch) > order.index(epoch)

    def follow(self, subject: str, epoch: int, after: Position) -> None:
        """Record which run a run follows, as its first message or the gap at its begin reports."""
        if subject in self._follows:
            self._follows[subject].setdefault(epoch, after)

    # What is known

    def followed(self, subject: str, epoch: int) -> Position | None:
        """The last position before a run; None while it is unknown."""
        return self._follows.get(subject, {}).get(epoch)

    def held(self, subject: str, epoch: int) -> int | None:
        """The sequence of a run after which later runs continue; None while it is unknown."""
        return next((at.sequence for at in self._follows.get(subject, {}).values() if at.epoch == epoch), None)

    def distance(self, subject: str, after: Position, at: Position) -> int | None:
        """The number of messages from one position to another, across the runs that a journal connects; None if unknown."""
        count, runs = 0, self._follows.get(subject, {})
        for _ in range(len(runs) + 1):
            if at.epoch == after.epoch:
                return count + max(
                    0, at.sequence - after.sequence
                )  # a client that received more than the disk kept has all of it
            count += at.sequence
            if at.epoch not in runs:
                return None
            at = runs[at.epoch]
        return None

    def newest(self, subject: str) -> Position | None:
        """The highest known position, in the latest run."""
        for epoch, run in reversed(self.runs.get(subject, {}).items()):
            return Position(epoch, run.head)
        return None

    def identity_after(self, subject: str, at: Position) -> Identity | None:
        """The identity at the next position, in its run or as the first of the next one."""
        within = self.identity_at(subject, Position(at.epoch, at.sequence + 1))
        later = [epoch for epoch, follows in self._follows.get(subject, {}).items() if follows == at]
        return within or (self.identity_at(subject, Position(later[0], 1)) if later else None)

    def restart(self) -> None:
        """The broker lost its memory: the current runs have ended, and subscribers need not reach their ends."""
        for subject, runs in self.runs.items():
            self._ended[subject].update(runs)

    def has_ended(self, subject: str, epoch: int) -> bool:
        """Whether a restart ended this run."""
        return epoch in self._ended.get(subject, ())

    def state(self, identity: Identity) -> State:
        sender = self.senders.get(identity.publisher)
        if sender is None or not 1 <= identity.number <= len(sender.states):
            return State.UNSENT
        return State(sender.states[identity.number - 1])

    def subject_of(self, identity: Identity) -> str:
        return self._names[self.senders[identity.publisher].subjects[identity.number - 1]]

    def sent_ms(self, identity: Identity) -> int:
        return self.senders[identity.publisher].sent_ms[identity.number - 1]

    def heads(self) -> dict[str, Position]:
        """For each subject, the highest acknowledged position in its latest run."""
        heads = {}
        for subject, runs in self.runs.items():
            if runs:
                epoch, run = next(reversed(runs.items()))
                if run.acknowledged and epoch not in self._ended[subject]:
                    heads[subject] = Position(epoch, run.acknowledged)
        return heads

    def head(self, subject: str, epoch: int) -> int:
        """The highest known sequence."""
        run = self.runs.get(subject, {}).get(epoch)
        return 0 if run is None else run.head

    def identity_at(self, subject: str, at: Position) -> Identity | None:
        run = self.runs.get(subject, {}).get(at.epoch)
        return None if run is None else run.identity(at.sequence)

    def tell(self, subject: str, at: Position) -> str:
        """The message at a position, as text."""
        identity = self.identity_at(subject, at)
        if identity is None:
            return f"{at}: no publish is known"
        state = self.state(identity).name.lower()
        return f"{at}: {identity}, sent at {self.sent_ms(identity) / 1000:.3f} s, {state}"

    @property
    def uncertain_count(self) -> int:
        return sum(sender.states.count(State.UNCERTAIN) for sender in self.senders.values())

    # At the end

    def audit(self) -> Iterator[tuple[str, Violation]]:
        """Final checks: positions without a message, and publishes that are not in the order in which they were sent."""
        uncertain = self._count_uncertain()
        for subject, runs in self.runs.items():
            for epoch, run in runs.items():
                empty, may_be = run.identities.count(0), uncertain.get(subject, 0)
                if empty > may_be:
                    sentence = f"no client received a message for {empty} positions of epoch {epoch}; only {may_be} publishes are uncertain"
                    yield subject, Violation(Guarantee.NO_LOSS, sentence)
                for violation in self._disorder(epoch, run):
                    yield subject, violation

    def _count_uncertain(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for sender in self.senders.values():
            for state, number in zip(sender.states, sender.subjects, strict=True):
                if state == State.UNCERTAIN:
                    counts[self._names[number]] = counts.get(self._names[number], 0) + 1
        return counts

    def _disorder(self, epoch: int, run: Run) -> Iterator[Violation]:
        last: dict[int, tuple[int, int]] = {}
        for sequence in range(1, run.head + 1):
            identity = run.identity(sequence)
            if identity is None:
                continue
            number, before = last.get(identity.publisher, (0, 0))
            if identity.number < number:
                yield Violation(
                    Guarantee.ORDER,
                    f"publisher {identity.publisher} sent its number {identity.number} before {number}, but they are "
                    f"{epoch}.{sequence} and {epoch}.{before}",
                )
            last[identity.publisher] = (identity.number, sequence)
