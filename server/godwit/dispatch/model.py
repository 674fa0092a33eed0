"""Shared types of dispatch: states of deliveries, jobs, pages, shipments and outcomes.

Pure. A delivery is (notification, receiver, channel, address). Numbers, not names, identify rows inside dispatch. Invariant: the rank
of a delivery's state never decreases, so late and duplicate feedback changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Annotated, NamedTuple

import msgspec


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
    SUPPRESSED = 10
    COLLAPSED = 11

    @property
    def label(self) -> str:
        """Its name in the API."""
        return self.name.lower()


class Priority(IntEnum):
    """Which jobs and deliveries of a tenant are processed first."""

    HIGH = 0
    NORMAL = 1
    BULK = 2


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One channel of a policy, and the state that ends the policy there."""

    channel: str
    until: str = "sent"
    wait_s: int = 300


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a notification, in addition to its content."""

    category: str = ""
    critical: bool = False
    """Whether it is sent within quiet hours."""
    collapse_key: str = ""
    dedupe: bool = False
    """Whether each address value gets one message only, even if several receivers have it."""
    holds_doubt: bool = False
    """Whether a delivery with an unknown result is not sent again."""
    local: str = ""
    """Nothing is sent before this wall-clock time in each receiver's zone: ISO 8601, without an offset."""
    is_test: bool = False
    """Whether it comes from a test key: it reaches sandbox addresses only."""
    channel: str = ""
    """The only channel, if the notification is for one address."""
    steps: tuple[Step, ...] = ()
    """The channels to try in turn; empty: all at once."""
    metadata: dict[str, str] = {}
    locales: tuple[str, ...] = ()
    """Locales in which the content was rendered, besides the default."""
    is_personal: bool = False
    """Whether the content is rendered for each receiver."""
    copies: tuple[str, ...] = ()
    """Addresses that get a copy of a receiver's e-mail: each is a delivery, made when the first e-mail to the receiver is sent."""
    sender: str = ""
    """The From address that its e-mails ask for; empty: that of the tenant's provider."""


class Quotas(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tenant's quotas; 0: unlimited."""

    accepts_per_s: Annotated[int, msgspec.Meta(ge=0, le=2**31)] = 0
    deliveries_per_day: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    receivers: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    stored_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


class Person(NamedTuple):
    """A receiver, in the form for templates. `attributes` is JSON, as in the API."""

    rid: int
    name: str
    attributes: bytes


class Personal(NamedTuple):
    """The content that was rendered for one receiver, both JSON. `failure` is the error if there is none."""

    rid: int
    content: bytes = b""
    email: bytes = b""
    failure: str = ""


class Profile(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of a receiver that decide when and whether something is sent."""

    locale: str = ""
    zone: str = ""
    quiet: tuple[str, str] | None = None
    """Local times between which only the inbox is used: ("22:00", "07:00")."""
    opted_out: frozenset[str] = frozenset()
    """CATEGORY/CHANNEL pairs, each part `*` for all."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about one delivery before anything is sent. `due_ms` is set for DEFERRED."""

    state: State = State.QUEUED
    due_ms: int = 0
    reason: str = ""
    detail: str = ""
    """Details in addition to the reason."""


class Result(StrEnum):
    """The result of one attempt."""

    OK = "ok"
    TEMPORARY = "temporary"
    DOUBT = "doubt"
    ADDRESS = "address"
    CONTENT = "content"
    THROTTLED = "throttled"
    """The other side asked to wait: this applies to its whole host, and does not count as an attempt."""
    ACCOUNT = "account"
    """The provider refuses our login or our sender address: the delivery waits until an operator corrects it, or it expires."""


ADDRESS_PREFIX = "address:"
"""The name of a receiver that represents a bare address. It has no inbox; its epoch is the time from which it may be deleted."""


class DeliveryKey(NamedTuple):
    """One delivery: notification, receiver, channel, address (0 for an inbox; -1, -2, … for copies of an e-mail)."""

    nid: int
    rid: int
    channel: str
    aid: int


class WakeUp(NamedTuple):
    """A hint that a tenant has work on a channel. Hints may be lost or repeated."""

    tenant: str
    channel: str


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed cursor over the receivers of one notification on one channel. `fence` identifies the claim."""

    nid: int
    channel: str
    tenant: str
    cursor: int
    fence: int
    lease_end_ms: int
    expires_ms: int
    options: Options = NO_OPTIONS
    priority: Priority = Priority.NORMAL


class Target(msgspec.Struct, frozen=True, gc=False):
    """One address of a receiver. An inbox has the address 0. A page makes one for each receiver: a dataclass would take four
    times as long.
    """

    rid: int
    aid: int
    receiver: str = ""
    value: str = ""
    secret: str = ""
    format: str = ""
    """JSON: the form of a webhook's body, if it is not an event."""
    locale: str = ""
    """The locale of the content that the receiver gets; empty: the default."""
    is_personal: bool = False
    """Whether the receiver has content of its own."""
    copy_of: str = ""
    """Set for a copy of an e-mail: the address that the e-mail itself was sent to."""
    sender: str = ""
    """The From address that the notification asks for."""
    verdict: Verdict = Verdict()

    def __repr__(self) -> str:
        return f"Target(rid={self.rid}, aid={self.aid}, receiver={self.receiver!r}, value={self.value!r})"  # no secret


@dataclass(frozen=True, slots=True)
class Page:
    """Receivers after a job's cursor. `cursor` is the last one read; `is_last`: there are no more. `rids` are all receivers
    of the page, including those without an address of the job's channel.
    """

    targets: tuple[Target, ...]
    cursor: int
    is_last: bool
    rids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Shipment:
    """One delivery to send. `attempt` counts the attempts that began, including this one once it has begun."""

    key: DeliveryKey
    tenant: str
    target: Target
    attempt: int
    expires_ms: int
    is_doubtful: bool = False
    priority: Priority = Priority.NORMAL


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an attempt. `retry_at_ms` is the time of the next attempt after a temporary failure, None: never."""

    key: DeliveryKey
    attempt: int
    state: State
    reason: str = ""
    ref: str = ""
    retry_at_ms: int | None = None
    value: str = field(default="", repr=False)
    """The address that was used; the receiver may have another one when the outcome is stored."""
    spares_host: bool = False
    """Whether a throttled result says nothing about the host, so that other deliveries to it need not wait."""
    throttle_ms: int = 0
    """How long all deliveries to the same host wait. The refused send does not count as an attempt."""
    rendered: bool | None = None
    """Whether the receiver's own body rendered; None if there was nothing to render."""


class PutOff(NamedTuple):
    """A queued delivery whose host rests, and when it is due again."""

    key: DeliveryKey
    attempt: int
    due_ms: int


class ProviderState(NamedTuple):
    """How a provider is. `reason` is why it rests, or did until now; empty: it works. `at_once`: e-mails that it is given at once now."""

    reason: str
    rests_ms: int
    in_flight: int
    at_once: int


class Head(NamedTuple):
    """The state of an inbox: its position EPOCH.SEQ, and its counts."""

    epoch: int
    seq: int
    unread: int
    unseen: int

    @property
    def position(self) -> str:
        """The position, in the form EPOCH.SEQ."""
        return f"{self.epoch}.{self.seq}"


class InboxItem(NamedTuple):
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
    first: int
    """The SEQ of its arrival. Changes do not alter it, so it orders a list."""


class Flag(IntEnum):
    """What a receiver did with an item. Flags may be cleared; only delivery states are ranked."""

    SEEN = 1
    READ = 2
    ARCHIVED = 4
    CONFIRMED = 8
    RECALLED = 16
    """Recalled by the application, replaced by a newer item with the same collapse key, or removed as the oldest."""


_CLOSED = Flag.ARCHIVED | Flag.RECALLED
IS_UNREAD = [not flags & (Flag.READ | _CLOSED) for flags in range(sum(Flag) + 1)]
"""Whether an item with these flags counts as unread; of all combinations of flags, as this is looked up for every item."""
IS_UNSEEN = [not flags & (Flag.SEEN | Flag.READ | _CLOSED) for flags in range(sum(Flag) + 1)]
"""Whether an item with these flags counts as unseen."""
