"""A circuit breaker for a provider: after failures in a row it is not used for a while, then for one delivery, then for more and more.

Pure: the caller gives the time. A refusal of one e-mail is no failure of the provider; a lost connection, a failed login or a relay that
is leaving is one.
"""

from __future__ import annotations

from ..model import ProviderState

FAILURES_MAX = 10
REST_MS = 15_000
REST_MS_MAX = 300_000


class Breaker:
    """The state of one provider. `sends_max` is what it takes at once when nothing is wrong."""

    def __init__(self, sends_max: int) -> None:
        self._sends_max = self._allowed = sends_max
        self._failures = 0
        self._in_flight = 0
        self._until_ms = 0
        self._rest_ms = REST_MS
        self.reason = ""
        """Why it rests; empty: it does not."""
        self.is_refused = False
        """Whether it rests because it refuses our login."""

    def rests_until(self, now_ms: int) -> int:
        """When it may be used again; 0: now."""
        return self._until_ms if self._until_ms > now_ms else 0

    def has_room(self, now_ms: int) -> bool:
        """Whether another delivery may begin: none while the breaker is open, then one, and twice as many after each success."""
        return not self.rests_until(now_ms) and self._in_flight < self._allowed

    def describe(self, now_ms: int) -> ProviderState:
        """The state that operators see."""
        return ProviderState(self.reason, max(0, self._until_ms - now_ms), self._in_flight, self._allowed)

    @property
    def is_probing(self) -> bool:
        """Whether it rested, and has not yet shown that it works."""
        return bool(self.reason)

    def begin(self) -> None:
        """A delivery uses it, until `end`."""
        self._in_flight += 1

    def end(self) -> None:
        """A delivery uses it no longer."""
        self._in_flight -= 1

    def note_success(self, now_ms: int) -> None:
        """It took, or refused, an e-mail: it works. One that began before it rested says nothing."""
        if self.rests_until(now_ms):
            return
        self._failures = 0
        self._allowed = min(self._sends_max, 2 * self._allowed)
        if self._allowed == self._sends_max:
            self.reason, self._rest_ms, self.is_refused = "", REST_MS, False

    def note_failure(self, reason: str, now_ms: int, *, is_final: bool = False) -> bool:
        """It failed; whether it rests from now on. `is_final`: another try would fail, too, such as a wrong password."""
        self._failures += 1
        if self.rests_until(now_ms) or not (is_final or self.reason or self._failures >= FAILURES_MAX):
            return False
        self._until_ms = now_ms + self._rest_ms
        self._rest_ms = min(REST_MS_MAX, 2 * self._rest_ms)
        self._failures, self._allowed, self.reason, self.is_refused = 0, 1, reason, is_final
        return True
