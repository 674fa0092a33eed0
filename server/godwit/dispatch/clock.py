"""The two clocks of dispatch. The wall clock orders what is due; the monotonic clock includes suspended time and is used for leases."""

from __future__ import annotations

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """Wall clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def mono_ms() -> int:
    """Milliseconds since an arbitrary start; includes suspended time if the system supports it."""
    return time.clock_gettime_ns(_BOOT) // 1_000_000
