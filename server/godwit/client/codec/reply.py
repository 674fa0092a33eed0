"""The answers of the server to a command: a reply, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Ack, Outcome, Position


@dataclass(frozen=True, slots=True)
class Reply:
    """A command was carried out; each kind of reply fills its own fields."""

    id: int | None
    ok: str  # connected, subscribed, unsubscribed, published, pong, watching, unwatched
    position: Position | None = None
    outcome: Outcome | None = None
    count: int | None = None  # None: not known before the messages arrive
    is_duplicate: bool = False
    ack: Ack | None = None
    session: str | None = None
    node: str | None = None
    ping_interval_ms: int | None = None
    has_publisher: bool = True  # false: the server has no room for this client's numbers


@dataclass(frozen=True, slots=True)
class Refusal:
    """A command was refused, with a code of protocol/codes.toml."""

    id: int | None
    code: int
    name: str
    reason: str
    retry: bool
