"""Stops and resumes reading of a subscriber, for the fault stall. Base class of every kind of subscriber."""

from __future__ import annotations

import asyncio
import threading
from typing import Generic, TypeVar

Gate = TypeVar("Gate", asyncio.Event, threading.Event)


class Reading(Generic[Gate]):
    """Before each read a subscriber waits for `_may_read`, an event of its own kind of thread."""

    def __init__(self, may_read: Gate) -> None:
        self._may_read: Gate = may_read
        self._may_read.set()

    def stall(self, is_stalled: bool) -> None:
        if is_stalled:
            self._may_read.clear()
        else:
            self._may_read.set()

    def go_at_full_speed(self) -> None:
        """Nothing more is published: a slow subscriber reads to the end at full speed."""
        self.stall(False)
