"""Hangups (SIGHUP) that come while the program loads: without a handler one would end the process.

Owns what came before the node can reload; from then on the event loop hears them. Loads nothing, so that it is in force early.
"""

from __future__ import annotations

import signal
from types import FrameType


class Hangups:
    """Whether one has come since `hold`."""

    def __init__(self) -> None:
        self.has_come = False

    def hold(self) -> None:
        """Remembers hangups from now on."""
        signal.signal(signal.SIGHUP, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.has_come = True


EARLY = Hangups()
"""Those of this process."""
