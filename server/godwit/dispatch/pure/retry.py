"""When a temporary failure is tried again: a schedule with full jitter.

Pure: chance comes in as a number. After the schedule's end an attempt follows every ten hours, until the notification expires.
"""

from __future__ import annotations

SCHEDULE_MS = (0, 5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000)
LAST_MS = 36_000_000
STEP_MS_MIN = 100
"""The least wait, so that jitter never turns a retry into a loop."""


def retry_at(now_ms: int, attempt: int, expires_ms: int, chance: float, after_ms: int = 0) -> int | None:
    """When attempt number `attempt` failed: the time of the next, or None where the notification expires before.

    `chance` is between 0 and 1; `after_ms` is what the other side asked for (Retry-After).
    """
    wait_ms = SCHEDULE_MS[attempt - 1] if attempt <= len(SCHEDULE_MS) else LAST_MS
    due_ms = now_ms + max(STEP_MS_MIN, int(wait_ms * chance), after_ms)
    return due_ms if due_ms < expires_ms else None
