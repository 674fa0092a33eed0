"""The two times dispatch works by. The wall clock orders what is due; the other runs on while the machine sleeps, for leases."""

from __future__ import annotations

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """Wall clock, Unix milliseconds."""
    return time.time_ns() // 1_000_000


def mono_ms() -> int:
    """Milliseconds since some start; includes suspend where the system can tell."""
    return time.clock_gettime_ns(_BOOT) // 1_000_000
