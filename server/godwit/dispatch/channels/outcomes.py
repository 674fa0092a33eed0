"""Converts the class of a result to the outcome of the attempt, for all channels that retry.

Pure. Temporary failures, unknown results and throttled attempts are retried until the notification expires; the others
end the delivery.
"""

from __future__ import annotations

from ..model import Outcome, Result, Shipment, State
from ..pure.retry import retry_at

RETRY_AFTER_MS_MAX = 86_400_000
THROTTLE_MS = 5_000
"""How long to send nothing to a host that asked to wait without naming a time."""
THROTTLE_MS_MAX = 300_000
"""The longest pause of a host; then one delivery tries again, even if the host asked for a longer pause."""


def make_outcome(
    shipment: Shipment, result: Result, detail: str, now_ms: int, chance: float, after_ms: int = 0
) -> Outcome:
    """The outcome of the attempt, with the time of the next, if there is one."""
    key, attempt, detail = shipment.key, shipment.attempt, keep_utf8(detail)
    if result is Result.OK:
        return Outcome(key, attempt, State.SENT, ref=detail)
    if result in (Result.ADDRESS, Result.CONTENT):
        return Outcome(key, attempt, State.FAILED, reason=str(result), ref=detail, value=shipment.target.value)
    if result is Result.THROTTLED:
        return make_waiting(shipment, result, detail, now_ms, chance, after_ms)
    due_ms = retry_at(now_ms, attempt, shipment.expires_ms, chance, min(after_ms, RETRY_AFTER_MS_MAX))
    if due_ms is not None:
        return Outcome(key, attempt, State.DEFERRED, reason=str(result), ref=detail, retry_at_ms=due_ms)
    if result is Result.DOUBT:
        return Outcome(key, attempt, State.UNKNOWN, reason=str(result), ref=detail)
    reason = str(result) if result is Result.ACCOUNT else "exhausted"
    return Outcome(key, attempt, State.FAILED, reason=reason, ref=detail)


def keep_utf8(text: str) -> str:
    """Another side's text with `?` for each byte that was not UTF-8: neither the store nor JSON takes a lone surrogate."""
    return text.encode("utf-8", "replace").decode()


def make_waiting(
    shipment: Shipment, result: Result, detail: str, now_ms: int, chance: float, after_ms: int = 0
) -> Outcome:
    """A throttled send does not count as an attempt: it is retried without a step of the schedule, until it expires."""
    key, attempt, reason, detail = shipment.key, shipment.attempt, str(result), keep_utf8(detail)
    wait_ms = min(after_ms or THROTTLE_MS, RETRY_AFTER_MS_MAX)
    due_ms = now_ms + wait_ms + int(min(wait_ms, THROTTLE_MS) * chance)
    throttle_ms = min(wait_ms, THROTTLE_MS_MAX)
    if due_ms >= shipment.expires_ms:
        state = (
            State.FAILED if result is Result.ACCOUNT else State.EXPIRED
        )  # a dead letter: replayed once it is corrected
        return Outcome(key, attempt, state, reason=reason, ref=detail, throttle_ms=throttle_ms)
    return Outcome(key, attempt, State.DEFERRED, reason, detail, due_ms, throttle_ms=throttle_ms)
