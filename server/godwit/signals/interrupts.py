"""Interrupts (SIGINT, ^C) that Python ignores: they are raised again until the program handles one.

Python ignores exceptions in destructors, and in functions that run when a process forks, such as one of `logging`. If the
exception was the KeyboardInterrupt of a signal, the command would continue as if ^C had not been pressed.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading


class Interrupts:
    """Raises ignored interrupts again in the process that called `keep`."""

    def __init__(self) -> None:
        self._process = 0

    def keep(self) -> None:
        """Raise interrupts again from now on, if Python ignores them."""
        self._process = os.getpid()
        self._report = sys.unraisablehook
        sys.unraisablehook = self._note

    def _note(self, ignored: sys.UnraisableHookArgs) -> None:
        if ignored.exc_type is not KeyboardInterrupt:
            self._report(ignored)
        elif os.getpid() == self._process:  # in a forked child there is nothing to end: it becomes another program
            is_over = _thread.allocate_lock()
            with is_over:  # an interrupt during this function would be ignored as well
                _thread.start_new_thread(self._interrupt_again, (is_over,))

    def _interrupt_again(self, is_over: _thread.LockType) -> None:
        with is_over:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # the thread that may be waiting


EARLY = Interrupts()
"""The interrupts of this process."""
