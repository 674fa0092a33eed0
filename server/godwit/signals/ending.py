"""The end of a node's process: users' code may delay it for a short time, but cannot prevent it.

Owns the exit after the node has stopped. The process waits at most EXIT_S for remaining threads of extensions and exit
handlers; other objects are not finalized. Users' code cannot change the exit code.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

EXIT_S = 5.0
THREADS_MAX = 10
"""How many remaining threads the log names."""


class Ending:
    """The end of one process: call `prepare` before any extension is loaded, `leave` at the end."""

    def __init__(
        self, tell: Callable[[str], None], end: Callable[[int], None] = os._exit, limit_s: float = EXIT_S
    ) -> None:
        self._tell = tell
        """Called with the names of the threads that are left, when the time limit has passed."""
        self._end = end
        self._limit_s = limit_s
        self._code: int | None = None

    def prepare(self) -> None:
        """Register the exit handler. Handlers run in reverse order, so the first one registered runs last."""
        atexit.register(self.end)

    def leave(self, code: int) -> NoReturn:
        """End the process with this code."""
        self._code = code
        threading.Thread(target=self._end_late, daemon=True).start()
        raise SystemExit(code)

    def end(self) -> None:
        """End the process at once if the node has stopped."""
        if self._code is None:
            return
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # its reader has gone
                stream.flush()
        self._end(self._code)

    def _end_late(self) -> None:
        threading.Event().wait(self._limit_s)
        left = [
            thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()
        ]
        with suppress(Exception):
            self._tell(", ".join(sorted(thread.name for thread in left)[:THREADS_MAX]))
        self._end(self._code or 0)
