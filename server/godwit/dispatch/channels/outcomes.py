"""From the class of a result to the outcome of the attempt, the same for every channel that tries again.

Pure. A temporary failure and a doubt are tried again until the notification expires; the others end the delivery.
"""

from __future__ import annotations

from ..model import Outcome, Result, Shipment, State
from ..pure.retry import retry_at

RETRY_AFTER_MS_MAX = 86_400_000


def make_outcome(
    shipment: Shipment, result: Result, detail: str, now_ms: int, chance: float, after_ms: int = 0
) -> Outcome:
    """The outcome of the attempt, with the time of the next where there is one."""
    key, attempt = shipment.key, shipment.attempt
    if result is Result.OK:
        return Outcome(key, attempt, State.SENT, ref=detail)
    if result in (Result.ADDRESS, Result.CONTENT):
        return Outcome(key, attempt, State.FAILED, reason=str(result), ref=detail, value=shipment.target.value)
    due_ms = retry_at(now_ms, attempt, shipment.expires_ms, chance, min(after_ms, RETRY_AFTER_MS_MAX))
    if due_ms is not None:
        return Outcome(key, attempt, State.DEFERRED, reason=str(result), ref=detail, retry_at_ms=due_ms)
    if result is Result.DOUBT:
        return Outcome(key, attempt, State.UNKNOWN, reason=str(result), ref=detail)
    return Outcome(key, attempt, State.FAILED, reason="exhausted", ref=detail)
