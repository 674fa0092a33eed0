"""SIGTERM and SIGINT before the event loop handles them: each ends the process with code 0.

It covers the time in which the program and users' extensions are loaded: this can hang, and no client is served yet. It
imports nothing of the node, so that it is active early. Native code that never returns to Python is not covered.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


class Terminations:
    """Ends the process during its start; the handlers of the event loop replace it."""

    def __init__(self, end: Callable[[int], None] = os._exit) -> None:
        self._end = end
        self.tell: Callable[[signal.Signals], None] = lambda _: None
        """Called before the end, on a thread of its own: what the signal interrupted may hold a lock."""

    def hold(self, *numbers: signal.Signals) -> None:
        """From now on each of these signals ends the process."""
        for number in numbers:
            signal.signal(number, self._leave)

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=self._say_and_end, args=(signal.Signals(number),), daemon=True).start()

    def _say_and_end(self, number: signal.Signals) -> None:
        with suppress(Exception):
            self.tell(number)
        self._end(0)


EARLY = Terminations()
"""The signals of this process."""
