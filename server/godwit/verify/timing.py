"""The time of a run: milliseconds since its start, by a monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]


def start_clock() -> Clock:
    """A clock that says 0 now."""
    began = time.monotonic_ns()
    return lambda: (time.monotonic_ns() - began) // 1_000_000
