"""When to retry after a temporary failure: a schedule with full jitter.

Pure: the caller passes the random number. After the schedule's end an attempt follows every ten hours, until the
notification expires.
"""

from __future__ import annotations

SCHEDULE_MS = (0, 5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000)
LAST_MS = 36_000_000
STEP_MS_MIN = 100
"""The shortest wait, so that jitter never causes a busy loop."""


def retry_at(now_ms: int, attempt: int, expires_ms: int, chance: float, after_ms: int = 0) -> int | None:
    """The time of the next attempt after attempt number `attempt` failed; None if the notification expires before. `chance`
    is between 0 and 1; `after_ms` is the wait that the other side asked for (Retry-After).
    """
    wait_ms = SCHEDULE_MS[attempt - 1] if attempt <= len(SCHEDULE_MS) else LAST_MS
    due_ms = now_ms + max(STEP_MS_MIN, int(wait_ms * chance), after_ms)
    return due_ms if due_ms < expires_ms else None
