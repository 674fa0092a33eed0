"""Hangups (SIGHUP) during the start: without a handler, one would end the process.

Records hangups until the server can reload; from then on the event loop handles them. It imports only `_signal`, which is
part of the interpreter, and no annotations of `typing`: each import before `hold` is time in which a hangup ends the process.
"""

import _signal


class Hangups:
    """Whether a hangup was received since `hold`."""

    def __init__(self) -> None:
        self.has_come = False

    def hold(self) -> None:
        """Record hangups from now on."""
        _signal.signal(_signal.SIGHUP, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.has_come = True


EARLY = Hangups()
"""The hangups of this process."""
