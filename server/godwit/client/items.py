"""What a subscriber or a watcher is given.

A `Message` is what was published.  `Gap`, `Dropped` and `Status` say what the messages alone would hide: what was missed, what
was lost as standard messages, and whether the subscription is live.  Times are milliseconds since 1970 by the server's clock.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from godwit.client.positions import Position

Kind: TypeAlias = Literal["json", "text", "bytes"]


class Message(NamedTuple):
    """One message.  A named tuple, because it is made once per message received."""

    subject: str
    at: Position | None  # None: a standard message, which has no position
    time: int
    kind: Kind
    content: Any  # json: the value; text: str; bytes: bytes
    pattern: str | None = None  # the wildcard subscription it came by
    snapshot: bool = False  # the latest retained state, not news
    conflated: int = 1  # how many messages were merged into this one
    after: Position | None = None  # the position it follows, when that is not the one before
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Messages after `after` up to `at` cannot be had; what follows continues at `at`."""

    subject: str
    after: Position | None
    at: Position | None
    reason: str  # expired, overrun, epoch, ahead, unknown; hole: this client found it, the server did not say
    missed: int | None  # None: not known
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """Standard messages that the server could not send in time."""

    subject: str
    count: int
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A change of the subscription: `subscribed` (with its outcome) or `disconnected`."""

    selector: str
    state: Literal["subscribed", "disconnected"]
    outcome: str | None = None  # snapshot, recovered, history, live, resync
    at: Position | None = None
    count: int = 0  # how many messages the join brings, on a single subject
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Interest:
    """Somebody listens to `selector` (a subject, or a wildcard subscriber's pattern), or nobody does any more."""

    selector: str
    subscribers: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """The server's acknowledgement of one publish."""

    at: Position | None  # None: a standard message
    repeat: bool = False  # the key was known: this is the first message's position
    ack: str | None = None  # the level reached, when it is not the one asked for


Item: TypeAlias = Message | Gap | Dropped | Status
