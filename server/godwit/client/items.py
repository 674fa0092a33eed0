"""What a subscription yields in addition to messages and gaps, which are in godwit.model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..model import Gap, Message, Outcome, Position


@dataclass(frozen=True, slots=True)
class Dropped:
    """At-most-once messages that the server could not send in time, or published while the subscription was paused. They are lost.
    `count` is None if the number is not known; after a pause it is possible that none was lost.
    """

    selector: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """The subscription started (with its outcome), or stopped because the connection was lost."""

    selector: str
    state: Literal["subscribed", "disconnected"]
    outcome: Outcome | None = None
    position: Position | None = None  # where the join ends, on a single subject
    count: int | None = 0  # messages of the join, on a single subject; None: the server cannot know beforehand
    reason: str = ""


Item: TypeAlias = Message | Gap | Dropped | Status
