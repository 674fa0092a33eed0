"""Conflated messages and snapshots against the ledger: what the messages of a range come to (protocol 8.2, 9.1).

A claim that reaches over positions nobody has filled yet waits; equal claims of many subscribers are judged once. Bounded: past
`waiting_max` a claim is counted as unjudged, never passed as right. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...model import Position
from .content import FIELDS, Identity, Style, read_fields
from .finding import Breach, Promise
from .ledger import Ledger, Reign


class Claim(NamedTuple):
    """That the messages after `after`, up to and with `at`, came to this content. A snapshot's `after` is 0."""

    subject: str
    epoch: int
    after: int
    at: int
    is_snapshot: bool
    digest: int


class Unknown(Exception):
    """A position of the range is not filled yet."""


class Merging:
    """Judges claims; remembers those that were found right, for a while, and those that must wait."""

    def __init__(self, ledger: Ledger, waiting_max: int = 20_000) -> None:
        self._ledger, self._waiting_max = ledger, waiting_max
        self._right: dict[Claim, None] = {}  # oldest first
        self._waiting: dict[Claim, tuple[bytes, str, int]] = {}
        self.judged = self.unjudged = 0

    def claim(self, claim: Claim, content: bytes, who: str, at_ms: int) -> Breach | None:
        """Judge it now if that can be, else keep it."""
        if claim in self._right:
            self.judged += 1
            return None
        try:
            breach = self._judge(claim, content)
        except Unknown:
            if len(self._waiting) < self._waiting_max:
                self._waiting.setdefault(claim, (content, who, at_ms))
            else:
                self.unjudged += 1
            return None
        if breach is None:
            self._remember(claim)
        return breach

    def review(self, is_end: bool = False) -> Iterator[tuple[Breach, Claim, str, int]]:
        """Judge again what had to wait; at the end, what still cannot be judged is counted."""
        for claim, (content, who, at_ms) in list(self._waiting.items()):
            try:
                breach = self._judge(claim, content)
            except Unknown:
                if is_end:
                    self.unjudged += 1
                continue
            del self._waiting[claim]
            if breach is not None:
                yield breach, claim, who, at_ms
            else:
                self._remember(claim)

    def _remember(self, claim: Claim) -> None:
        self.judged += 1
        self._right[claim] = None
        if len(self._right) > 4_000:
            del self._right[next(iter(self._right))]

    def _judge(self, claim: Claim, content: bytes) -> Breach | None:
        reign = self._ledger.reigns[claim.subject].get(claim.epoch)
        if reign is None:
            raise Unknown
        style = self._ledger.styles[claim.subject]
        what = "snapshot" if claim.is_snapshot else f"conflated message of {claim.at - claim.after}"
        if style is not Style.OBJECT:
            last = self._ledger.contents.make(_known(reign, claim.at), style)
            if content == last:
                return None
            return Breach(
                Promise.MERGE, f"{what} at {claim.epoch}.{claim.at} is not the last content: {content[:80]!r}"
            )
        expected, came = self._merge(reign, claim), read_fields(content)
        if came == expected:
            return None
        if came is None:
            return Breach(Promise.MERGE, f"{what} at {claim.epoch}.{claim.at} is no object: {content[:80]!r}")
        wrong = sorted(name for name in {*came, *expected} if came.get(name) != expected.get(name))
        told = ", ".join(f"{name} is {_short(came.get(name))} for {_short(expected.get(name))}" for name in wrong[:3])
        return Breach(Promise.MERGE, f"{what} at {claim.epoch}.{claim.at}: {told}")

    def _merge(self, reign: Reign, claim: Claim) -> dict[str, object]:
        """The union of the fields, walking back from the newest until every field there can be is found."""
        merged: dict[str, object] = {}
        wanted = len(FIELDS) + 2 + bool(self._ledger.contents.size)
        for sequence in range(claim.at, claim.after, -1):
            for name, value in self._ledger.contents.fields(_known(reign, sequence)).items():
                merged.setdefault(name, value)
            if len(merged) == wanted:
                break
        return merged


def _known(reign: Reign, sequence: int) -> Identity:
    identity = reign.identity(sequence)
    if identity is None:
        raise Unknown
    return identity


def _short(value: object) -> str:
    return repr(value) if len(repr(value)) < 40 else repr(value)[:37] + "…"


def claim_of(subject: str, after: Position | None, at: Position, is_snapshot: bool, content: bytes) -> Claim:
    """What a merged message claims."""
    start = after.sequence if after is not None and after.epoch == at.epoch and not is_snapshot else 0
    return Claim(subject, at.epoch, start, at.sequence, is_snapshot, hash(content))
