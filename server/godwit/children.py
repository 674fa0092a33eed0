"""Child processes for a limited time (a node to measure or to disturb, a rival): they end with this process in every case.

Owns the steps in the child before its program begins, and the cleanup after its end. The caller chooses the program.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # prctl(2)


def follow_parent(parent: int | None = None) -> Callable[[], None]:
    """Use it as a subprocess's `preexec_fn`, or call it in a child of the process `parent`. The kernel then kills the child
    when the thread that started it ends, even by a kill. On systems other than Linux it does nothing.
    """
    parent = os.getpid() if parent is None else parent
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def follow() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it ended before it could be followed
                os._exit(1)

    return follow


async def wait_for_end(process: asyncio.subprocess.Process) -> int:
    """Wait until the child has ended and all its output is read, so that its pipes are closed. Otherwise they may outlive
    the event loop.
    """
    await process.communicate()
    return await process.wait()
