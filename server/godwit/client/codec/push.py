"""What the server sends without a command, in addition to messages, gaps and interest, which are in godwit.model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...model import Gap, Interest, Message
from ..items import Dropped
from .reply import Refusal, Reply


@dataclass(frozen=True, slots=True)
class Marked:
    """Everything of a pattern subscription up to this resume token has been sent."""

    resume_token: str
    pattern: str
    node: str | None = None  # which gave it; the session knows


@dataclass(frozen=True, slots=True)
class Epochs:
    """The order of a subject's epochs: a message of an earlier epoch than the client's is a duplicate."""

    subject: str
    order: tuple[int, ...]
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The server ended a subscription because rights changed."""

    selector: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Notice:
    """An announcement: token_expiring (in_ms) or draining (reconnect_after_ms)."""

    name: str
    in_ms: int | None = None
    reconnect_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InterestState:
    """The state of a watch begins here, or is complete."""

    selector: str
    is_complete: bool


Received: TypeAlias = (
    Message | Marked | Epochs | Reply | Refusal | Gap | Dropped | Interest | InterestState | Ended | Notice
)
"""Everything that one frame can hold."""
