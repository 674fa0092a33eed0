"""The values of Godwit in Python: positions, messages, gaps, and the enumerations of their kinds.

Pure and small: no I/O, no clock. subject.py checks subjects; the encodings are elsewhere. Invariant: values are frozen,
and a position is exactly (epoch, sequence).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

from .errors import PositionInvalid

_POSITION = re.compile(r"(0|[1-9][0-9]{0,19})\.(0|[1-9][0-9]{0,19})", re.ASCII)
NUMBER_MAX = 2**64 - 1

ResumeToken = NewType("ResumeToken", str)
"""A resume token, the position of one pattern subscription: the text RUN.ARRIVAL.TIME, which only the node that wrote it interprets."""


class Kind(StrEnum):
    """The kind of a message's content: JSON, text or bytes."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"


class Ack(StrEnum):
    """The level that an acknowledgement waits for: in memory, or on disk."""

    CACHED = "cached"
    REPLICATED = "replicated"
    DISK = "disk"


class Outcome(StrEnum):
    """How a subscription began: what it receives before its first live message."""

    SNAPSHOT = "snapshot"
    RECOVERED = "recovered"
    HISTORY = "history"
    LIVE = "live"
    RESYNC = "resync"


class GapReason(StrEnum):
    """Why messages between two positions are not available."""

    EXPIRED = "expired"
    OVERRUN = "overrun"
    EPOCH = "epoch"
    AHEAD = "ahead"
    UNKNOWN = "unknown"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Position:
    """A message's position in its subject: epoch and sequence, from 1. `7.0` is the position of an empty subject.

    Only positions of one epoch can be compared.
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


Fields = Mapping[str, str | bytes | None]


def size_of_fields(fields: Fields) -> int:
    """The approximate bytes of fields in memory."""
    return sum(len(name) + len(value or "") for name, value in fields.items())


@dataclass(frozen=True, slots=True)
class Message:
    """A message as a subscriber receives it.

    `position` is None for a standard (at-most-once) message. `after` is the position that a subscriber must have
    reached to have missed nothing: the one before, unless several messages were merged (`conflated`) or numbers are
    skipped. The content replaces the subject's state. If `is_patch`, its members are merged into it, and null removes
    one. `is_removal`: the snapshot was removed.

    `fields` are merged into those of the subject's state; None removes one. A snapshot has the latest value of each.
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
    fields: Fields = field(default_factory=dict, hash=False)

    @property
    def size(self) -> int:
        """The approximate bytes of its content and fields in memory."""
        return len(self.content) + size_of_fields(self.fields) if self.fields else len(self.content)

    def json(self) -> Any:
        """The content parsed as JSON; raises ValueError if it is not JSON."""
        return json.loads(self.content)

    def text(self) -> str:
        """The content decoded as UTF-8; raises UnicodeDecodeError if it is not valid."""
        return self.content.decode()


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages of one subject (or, after an unknown resume token, of a pattern) that are no longer available.

    `position` is the subscriber's new position. A snapshot follows unless `missed` is 0. `missed` is None if the number
    is not known.
    """

    subject: str
    position: Position | None
    after: Position | None = None
    reason: GapReason = GapReason.UNKNOWN
    missed: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """An accepted publish: its position. `is_duplicate`: its idempotency key was known already.

    `ack` is the level reached, if it is not the requested one.
    """

    position: Position | None
    is_duplicate: bool = False
    ack: Ack | None = None


@dataclass(frozen=True, slots=True)
class Interest:
    """Whether a subject or pattern has subscribers."""

    subject: str
    has_subscribers: bool
