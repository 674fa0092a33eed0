"""What the server says, as values: answers to commands, and what it tells by itself.

Messages, gaps, drops and interest are told in the words of `items`; the rest is here.
"""

from dataclasses import dataclass
from typing import TypeAlias

from godwit.client.items import Dropped, Gap, Interest, Message
from godwit.client.positions import Position


@dataclass(frozen=True, slots=True)
class Answer:
    """A command was carried out; each kind of answer fills the fields it has."""

    id: int | None
    ok: str  # connected, subscribed, unsubscribed, published, pong, watching
    at: Position | None = None
    outcome: str | None = None
    count: int = 0
    repeat: bool = False
    ack: str | None = None
    session: str | None = None
    node: str | None = None
    ping_interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A command was refused."""

    id: int | None
    code: int
    name: str
    reason: str
    retry: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A wildcard subscription has been sent everything up to here."""

    text: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something is about to happen: token_expiring (in_ms), draining (reconnect_after_ms)."""

    name: str
    in_ms: int | None = None
    reconnect_after_ms: int | None = None


Push: TypeAlias = Message | Mark | Answer | Refusal | Gap | Dropped | Interest | Notice
