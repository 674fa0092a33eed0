"""The values that travel through Godwit in Python: positions, messages, gaps, and the words for their kinds.

Pure and small: no I/O, no clock. What is a legal subject is subject.py's; what the wires look like is the wires'.
Invariant: a value made here is frozen, and a position says everything about its place: (epoch, sequence).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NewType

from .errors import PositionInvalid

_POSITION = re.compile(r"(0|[1-9][0-9]{0,19})\.(0|[1-9][0-9]{0,19})", re.ASCII)
NUMBER_MAX = 2**64 - 1

ResumeToken = NewType("ResumeToken", str)
"""Where one pattern subscription stands: the text RUN.ARRIVAL.TIME, opaque to everybody but the node that wrote it."""


class Kind(StrEnum):
    """What a message's content is; content itself is always bytes."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"


class Ack(StrEnum):
    """The level a publisher waits for before it is told its message's position."""

    CACHED = "cached"
    REPLICATED = "replicated"
    DISK = "disk"


class Outcome(StrEnum):
    """How a subscription began: what comes before its first live message."""

    SNAPSHOT = "snapshot"
    RECOVERED = "recovered"
    HISTORY = "history"
    LIVE = "live"
    RESYNC = "resync"


class GapReason(StrEnum):
    """Why messages between two positions cannot be given."""

    EXPIRED = "expired"
    OVERRUN = "overrun"
    EPOCH = "epoch"
    AHEAD = "ahead"
    UNKNOWN = "unknown"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Position:
    """A message's place in its subject. Sequences begin at 1; `7.0` is the position of an empty subject.

    Only positions of one epoch can be compared: another epoch is another run, even a smaller one.
    """

    epoch: int
    sequence: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Reads `EPOCH.SEQUENCE`; raises PositionInvalid."""
        found = _POSITION.fullmatch(text)
        if found is None:
            raise PositionInvalid(text)
        epoch, sequence = int(found[1]), int(found[2])
        if epoch > NUMBER_MAX or sequence > NUMBER_MAX:
            raise PositionInvalid(text)
        return cls(epoch, sequence)

    def is_at_or_before(self, other: Position) -> bool:
        """Whether `other`, of the same epoch, already covers this position."""
        return self.epoch == other.epoch and self.sequence <= other.sequence

    def __str__(self) -> str:
        return f"{self.epoch}.{self.sequence}"


@dataclass(frozen=True, slots=True)
class Message:
    """One message as a subscriber gets it.

    `position` is None for a standard message (not guaranteed). `after` is where a subscriber must stand to have missed
    nothing: the position before, unless several messages became one (`conflated`) or numbering skips. The content
    replaces the subject's state, unless it `is_patch`: then its members go into it, and null removes one. `is_removal`:
    the snapshot was removed.
    """

    subject: str
    content: bytes
    kind: Kind = Kind.JSON
    position: Position | None = None
    after: Position | None = None
    time_ms: int = 0
    reply_to: str | None = None
    pattern: str | None = None
    conflated: int = 0
    is_snapshot: bool = False
    is_patch: bool = False
    is_removal: bool = False

    def json(self) -> Any:
        """The content read as JSON; raises ValueError where it is none."""
        return json.loads(self.content)

    def text(self) -> str:
        """The content read as UTF-8; raises UnicodeDecodeError where it is none."""
        return self.content.decode()


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages of one subject (or, after a forgotten resume token, of a pattern) that cannot be given.

    The subscriber stands at `position` now; a snapshot follows unless `missed` is 0. `missed` None: not known.
    """

    subject: str
    position: Position | None
    after: Position | None = None
    reason: GapReason = GapReason.UNKNOWN
    missed: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A publish that was accepted: its position; `is_duplicate` where its idempotency key was known already.

    `ack` is the level reached, where that is not the one asked for.
    """

    position: Position | None
    is_duplicate: bool = False
    ack: Ack | None = None


@dataclass(frozen=True, slots=True)
class Interest:
    """Whether anybody listens to a subject or pattern, in the whole cluster."""

    subject: str
    has_subscribers: bool
