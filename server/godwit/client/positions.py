"""Positions and marks: where somebody stands.

A position is (epoch, sequence), written `7.42`; a mark stays the server's opaque text.  A `Stand` is what is saved of one
subscription and started from later: a mark, positions by subject, or both.  Sequences are compared within one epoch only:
any other epoch is a new reign, even a smaller one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from godwit.client.errors import PositionInvalid

NUMBER_DIGITS_MAX = 20  # a u64 in decimal


class Position(NamedTuple):
    """A message's place in its subject: the reign that numbered it and its number, from 1."""

    epoch: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.sequence}"

    @classmethod
    def parse(cls, text: object) -> "Position":
        """Read `EPOCH.SEQUENCE`; raises PositionInvalid for anything else."""
        if isinstance(text, str):
            epoch, dot, sequence = text.partition(".")
            if dot and _is_number(epoch) and _is_number(sequence):
                return cls(int(epoch), int(sequence))
        raise PositionInvalid(text)

    def before(self) -> "Position":
        """The position that a message here follows when it names none."""
        return Position(self.epoch, max(self.sequence - 1, 0))

    def covers(self, other: "Position") -> bool:
        """Somebody standing here has seen `other`."""
        return self.epoch == other.epoch and self.sequence >= other.sequence


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a subscription stands: positions by subject, and for a pattern the mark up to which it has seen everything."""

    after: Mapping[str, Position] = field(default_factory=dict)
    since: str | None = None

    def __bool__(self) -> bool:
        return bool(self.after) or self.since is not None

    def to_json(self) -> dict[str, object]:
        """The saved form: `{"after": {"/a/b": "7.42"}, "since": MARK}`, each only when there is one."""
        saved: dict[str, object] = {}
        if self.after:
            saved["after"] = {subject: str(position) for subject, position in self.after.items()}
        if self.since is not None:
            saved["since"] = self.since
        return saved

    @classmethod
    def from_json(cls, saved: object) -> "Stand":
        """Read the saved form back; raises PositionInvalid when it is none."""
        if not isinstance(saved, Mapping):
            raise PositionInvalid(saved)
        after, since = saved.get("after", {}), saved.get("since")
        if not isinstance(after, Mapping) or not (since is None or isinstance(since, str)):
            raise PositionInvalid(saved)
        return cls({str(subject): Position.parse(text) for subject, text in after.items()}, since)
