"""Conflated messages and snapshots against the expected history: the merged content of a range of messages (protocol 8.2,
9.1).

A claim over positions that are not known yet waits; equal claims of many subscribers are judged once. Beyond
`waiting_max` a claim is counted as not judged. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...model import Position
from .content import FIELDS, Identity, Style, read_fields
from .expected_history import ExpectedHistory
from .finding import Guarantee, Violation


class Claim(NamedTuple):
    """The claim that the messages after `after`, up to and including `at`, merge to this content. A snapshot's `after` is 0,
    and includes what a journal recovered from earlier runs. `after_epoch` is set for a conflated message whose first part
    is of an earlier run.
    """

    subject: str
    epoch: int
    after: int
    at: int
    is_snapshot: bool
    digest: int
    after_epoch: int | None = None


class Unknown(Exception):
    """A position of the range is not known yet."""


class Merging:
    """Judges claims; caches correct ones, and keeps those that must wait."""

    def __init__(self, expected: ExpectedHistory, waiting_max: int = 20_000, keeps_journal: bool = False) -> None:
        self._expected, self._waiting_max, self._keeps_journal = expected, waiting_max, keeps_journal
        self._right: dict[Claim, None] = {}  # oldest first
        self._waiting: dict[Claim, tuple[bytes, str, int]] = {}
        self.judged = self.unjudged = 0

    def claim(self, claim: Claim, content: bytes, who: str, at_ms: int) -> Violation | None:
        """Judge a claim now if possible, else keep it."""
        if claim in self._right:
            self.judged += 1
            return None
        try:
            violation = self._judge(claim, content)
        except Unknown:
            if len(self._waiting) < self._waiting_max:
                self._waiting.setdefault(claim, (content, who, at_ms))
            else:
                self.unjudged += 1
            return None
        if violation is None:
            self._remember(claim)
        return violation

    def review(self, is_end: bool = False) -> Iterator[tuple[Violation, Claim, str, int]]:
        """Judge waiting claims again; at the end those that cannot be judged are counted."""
        for claim, (content, who, at_ms) in list(self._waiting.items()):
            try:
                violation = self._judge(claim, content)
            except Unknown:
                if is_end:
                    self.unjudged += 1
                continue
            del self._waiting[claim]
            if violation is not None:
                yield violation, claim, who, at_ms
            else:
                self._remember(claim)

    def _remember(self, claim: Claim) -> None:
        self.judged += 1
        self._right[claim] = None
        if len(self._right) > 4_000:
            del self._right[next(iter(self._right))]

    def _judge(self, claim: Claim, content: bytes) -> Violation | None:
        style = self._expected.styles[claim.subject]
        what = "snapshot" if claim.is_snapshot else f"conflated message of {claim.at - claim.after}"
        if style is not Style.OBJECT:
            newest = next(self._newest_first(claim), None)
            if newest is None:
                raise Unknown
            last = self._expected.contents.make(newest, style)
            if content == last:
                return None
            return Violation(
                Guarantee.MERGE, f"{what} at {claim.epoch}.{claim.at} is not the last content: {content[:80]!r}"
            )
        wanted, came = self._merge(claim), read_fields(content)
        if came == wanted:
            return None
        if came is None:
            return Violation(
                Guarantee.MERGE, f"{what} at {claim.epoch}.{claim.at} is not a valid object: {content[:80]!r}"
            )
        wrong = sorted(name for name in {*came, *wanted} if came.get(name) != wanted.get(name))
        differences = ", ".join(
            f"{name} is {_short(came.get(name))} for {_short(wanted.get(name))}" for name in wrong[:3]
        )
        return Violation(Guarantee.MERGE, f"{what} at {claim.epoch}.{claim.at}: {differences}")

    def _merge(self, claim: Claim) -> dict[str, object]:
        """The union of the members, going back from the newest message until every possible member is found."""
        merged: dict[str, object] = {}
        count = len(FIELDS) + 2 + bool(self._expected.contents.size)
        for identity in self._newest_first(claim):
            for name, value in self._expected.contents.fields(identity).items():
                merged.setdefault(name, value)
            if len(merged) == count:
                break
        return merged

    def _newest_first(self, claim: Claim) -> Iterator[Identity]:
        """The messages of a claim, newest first, across the runs that a journal connects."""
        epoch, sequence = claim.epoch, claim.at
        end = claim.epoch if claim.after_epoch is None else claim.after_epoch
        while True:
            for place in range(sequence, claim.after if epoch == end and not claim.is_snapshot else 0, -1):
                identity = self._expected.identity_at(claim.subject, Position(epoch, place))
                if identity is None:
                    raise Unknown
                yield identity
            if (
                not self._keeps_journal
                or (epoch == end and not claim.is_snapshot)
                or self._is_first(claim.subject, epoch)
            ):
                return
            before = self._expected.followed(claim.subject, epoch)
            if before is None:
                raise Unknown
            epoch, sequence = before.epoch, before.sequence

    def _is_first(self, subject: str, epoch: int) -> bool:
        """Whether no earlier run of the subject is known."""
        return not any(
            self._expected.has_ended(subject, other) for other in self._expected.runs[subject] if other < epoch
        )


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) < 40 else repr(value)[:37] + "…"


def claim_of(subject: str, after: Position | None, at: Position, is_snapshot: bool, content: bytes) -> Claim:
    """The claim that a merged message makes."""
    if after is None or is_snapshot:
        return Claim(subject, at.epoch, 0, at.sequence, is_snapshot, hash(content))
    other = after.epoch if after.epoch != at.epoch else None
    return Claim(subject, at.epoch, after.sequence, at.sequence, is_snapshot, hash(content), other)
