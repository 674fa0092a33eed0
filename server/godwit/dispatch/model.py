"""What the parts of dispatch share: states of deliveries, jobs, pages, shipments and outcomes.

Pure. A delivery is (notification, receiver, channel, address). Numbers, not names, identify rows inside dispatch. Invariant: the rank
of a delivery's state never decreases, so late and duplicate feedback changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple


class State(IntEnum):
    """The state of a delivery, as stored. `RANKS` in pure/rank.py orders them."""

    QUEUED = 1
    DEFERRED = 2
    SENDING = 3
    SENT = 4
    DELIVERED = 5
    FAILED = 6
    UNKNOWN = 7
    EXPIRED = 8
    CANCELLED = 9

    @property
    def label(self) -> str:
        """Its name in the API."""
        return self.name.lower()


class Result(StrEnum):
    """What became of one attempt."""

    OK = "ok"
    TEMPORARY = "temporary"
    DOUBT = "doubt"
    ADDRESS = "address"
    CONTENT = "content"


class DeliveryKey(NamedTuple):
    """One delivery: notification, receiver, channel, address (0 for an inbox)."""

    nid: int
    rid: int
    channel: str
    aid: int


class WakeUp(NamedTuple):
    """A hint that a tenant has work on a channel. Losing or repeating one is harmless."""

    tenant: str
    channel: str


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed cursor over the receivers of one notification on one channel. `fence` says which claim it is."""

    nid: int
    channel: str
    tenant: str
    cursor: int
    fence: int
    lease_end_ms: int
    expires_ms: int


@dataclass(frozen=True, slots=True)
class Target:
    """One address of a receiver. An inbox has the address 0."""

    rid: int
    aid: int
    receiver: str = ""
    value: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Page:
    """Receivers after a job's cursor. `cursor` is the last one read; `is_last`: none follow."""

    targets: tuple[Target, ...]
    cursor: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Shipment:
    """One delivery to send. `attempt` is the number of attempts that began, this one included once it has."""

    key: DeliveryKey
    tenant: str
    target: Target
    attempt: int
    expires_ms: int
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to. `retry_at_ms` is when a temporary failure is tried again, None: never."""

    key: DeliveryKey
    attempt: int
    state: State
    reason: str = ""
    ref: str = ""
    retry_at_ms: int | None = None
    value: str = field(default="", repr=False)
    """The address that was tried: another may stand there when the outcome is stored."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far an inbox is: positions are EPOCH.SEQ, and counts cost one row."""

    epoch: int
    seq: int
    unread: int
    unseen: int

    @property
    def position(self) -> str:
        """The position, as clients write it."""
        return f"{self.epoch}.{self.seq}"


@dataclass(frozen=True, slots=True)
class InboxItem:
    """One item or change of an inbox, as it is published and fetched."""

    tenant: str
    receiver: str
    seq: int
    head: Head
    notification: str
    flags: int
    at_ms: int
    content: bytes
    """JSON, as the application sent it."""


class Flag(IntEnum):
    """What a receiver did with an item. Flags may be cleared; only delivery states are ranked."""

    SEEN = 1
    READ = 2
    ARCHIVED = 4
    CONFIRMED = 8
    RECALLED = 16
