"""What an audit is told: who came and what became of them, messages that were accepted, what the caches let go, the node's figures.

Pure values. Times are Unix milliseconds. Invariant: no event holds a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """`what`: connected, refused, subscribed, unsubscribed, disconnected, or revoked. What does not apply is empty."""

    what: str
    time_ms: int
    connection: int = 0
    identity: str = ""
    client: str = ""
    address: str = ""
    protocol: str = ""
    selector: str = ""
    code: int = 0
    reason: str = ""
    tenant: str = ""
    authority: str = ""
    """Who vouches for the identity: jwt:ISSUER, certificate, authorizer, basic or anonymous."""


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A message that was accepted. `position` None: a standard message. `identity` empty: an anonymous client, or the node.

    `content` is there only with `audit.with_content`.
    """

    subject: str
    position: str | None
    time_ms: int
    kind: str
    identity: str
    content_bytes: int
    content: bytes | None = field(default=None, repr=False)
    tenant: str = ""
    authority: str = ""


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """What the logs and snapshots let go since the last one, by reason, and what they hold now."""

    time_ms: int
    gone: Mapping[str, int]
    held: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StatisticsEvent:
    """The engine's figures, as in /v1/stats."""

    time_ms: int
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LostEvent:
    """So many events of a kind (access, message) never reached this audit: it was too slow, and the oldest went."""

    kind: str
    count: int


Event: TypeAlias = AccessEvent | MessageEvent | CacheEvent | StatisticsEvent | LostEvent
