"""Hangups (SIGHUP) during the start: without a handler, one would end the process.

Records hangups until the node can reload; from then on the event loop handles them. It imports little, so that it is
active early.
"""

from __future__ import annotations

import signal
from types import FrameType


class Hangups:
    """Whether a hangup was received since `hold`."""

    def __init__(self) -> None:
        self.has_come = False

    def hold(self) -> None:
        """Record hangups from now on."""
        signal.signal(signal.SIGHUP, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.has_come = True


EARLY = Hangups()
"""The hangups of this process."""
