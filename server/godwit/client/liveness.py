"""Whether the server is there: anything received says so; after silence a ping is due, then it is dead."""

from __future__ import annotations

from enum import Enum


class Health(Enum):
    FINE = "fine"
    PING_DUE = "ping due"
    DEAD = "dead"


class Liveness:
    """Times are given; nothing here looks at a clock."""

    def __init__(self, ping_interval_ms: int, answer_timeout_ms: int) -> None:
        self.ping_interval_ms = ping_interval_ms
        self._answer_timeout_ms = answer_timeout_ms
        self._received_at = 0
        self._pinged_at: int | None = None
        self.is_held = False

    @property
    def shortest_ms(self) -> int:
        """The shortest time that is watched here."""
        return min(self.ping_interval_ms, self._answer_timeout_ms)

    def received(self, now: int) -> None:
        self._received_at = now
        self._pinged_at = None

    def hold(self, now: int, is_held: bool) -> None:
        """By this side's own wish nothing is read from now on, or something again: silence in between says nothing."""
        self.is_held = is_held
        self.received(now)

    def pinged(self, now: int) -> None:
        self._pinged_at = now

    def judge(self, now: int) -> Health:
        if self.is_held:
            return Health.FINE
        if self._pinged_at is not None:
            return Health.DEAD if now - self._pinged_at >= self._answer_timeout_ms else Health.FINE
        return Health.PING_DUE if now - self._received_at >= self.ping_interval_ms else Health.FINE
