"""When a failing event webhook is retried, and when it is disabled. Pure."""

from __future__ import annotations

FIRST_MS = 5_000
LAST_MS = 21_600_000
GIVE_UP_MS = 5 * 86_400_000


def next_probe_ms(now_ms: int, failures: int, chance: float, after_ms: int = 0) -> int:
    """The time of the one probe after this many failures in a row: 5 s, doubling to 6 h, with jitter."""
    wait_ms = min(LAST_MS, FIRST_MS * 2 ** min(failures - 1, 20))
    return now_ms + max(int(wait_ms * (0.5 + chance / 2)), min(after_ms, LAST_MS))


def is_given_up(now_ms: int, failing_since_ms: int) -> bool:
    """Whether an endpoint has failed for so long that it must be disabled."""
    return now_ms - failing_since_ms >= GIVE_UP_MS
