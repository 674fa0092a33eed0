"""Checks whether the server is alive: after silence a ping is due, and without an answer the connection is closed."""

from __future__ import annotations

from enum import Enum


class Health(Enum):
    FINE = "fine"
    PING_DUE = "ping due"
    DEAD = "dead"


class Liveness:
    """The caller passes all times; this class reads no clock."""

    def __init__(self, ping_interval_ms: int, answer_timeout_ms: int) -> None:
        self.ping_interval_ms = ping_interval_ms
        self._answer_timeout_ms = answer_timeout_ms
        self._received_at = 0
        self._pinged_at: int | None = None
        self.is_held = False

    @property
    def shortest_ms(self) -> int:
        """The shortest timeout in use, in milliseconds."""
        return min(self.ping_interval_ms, self._answer_timeout_ms)

    def received(self, now: int) -> None:
        self._received_at = now
        self._pinged_at = None

    def hold(self, now: int, is_held: bool) -> None:
        """Stop or resume reading on this side. Silence while nothing is read does not count."""
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
