"""Signals that ask a node to end (SIGTERM, SIGINT) before its event loop can hear them: each ends the process with 0.

Owns the time in which the program, or a user's extension in it, is loaded: this can hang, and no client is served yet. Imports
nothing of the node, so that it works early. Not covered: native code that never returns to Python.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


class Terminations:
    """What ends the process while it starts; the handlers of the event loop take its place."""

    def __init__(self, end: Callable[[int], None] = os._exit) -> None:
        self._end = end
        self.tell: Callable[[signal.Signals], None] = lambda _: None
        """Called before the end, on a thread of its own: what the signal interrupted may hold a lock."""

    def hold(self, *numbers: signal.Signals) -> None:
        """Each of these signals ends the process from now on."""
        for number in numbers:
            signal.signal(number, self._leave)

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        threading.Thread(target=self._say_and_end, args=(signal.Signals(number),), daemon=True).start()

    def _say_and_end(self, number: signal.Signals) -> None:
        with suppress(Exception):
            self.tell(number)
        self._end(0)


EARLY = Terminations()
"""Those of this process."""
