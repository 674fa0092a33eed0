"""The events that an audit receives: connections, accepted messages, evictions, statistics, and counts of lost events.

Pure values. Times are Unix milliseconds. Invariant: no event contains a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """`what`: connected, renewed, refused, subscribed, unsubscribed, disconnected, or revoked. Fields that do not apply are empty.

    For a renewal and a revocation `reason` is the token's id."""

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
    """An accepted message. `position` is None for an at-most-once message. `identity` is empty for an anonymous client and the node.

    `content` is None unless `audit.with_content` is set. Times are Unix milliseconds.
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
    """Messages and bytes that logs and snapshots evicted since the last event, by reason, and what they hold now."""

    time_ms: int
    gone: Mapping[str, int]
    held: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StatisticsEvent:
    """The node's metrics, as in /v1/stats."""

    time_ms: int
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LostEvent:
    """Events of one kind (access, message) that were dropped because this audit was too slow; the oldest are dropped first."""

    kind: str
    count: int


Event: TypeAlias = AccessEvent | MessageEvent | CacheEvent | StatisticsEvent | LostEvent
