"""Processes that this one starts for a while (a node to measure or to harm, a rival): they end when it ends, however it does.

Owns what happens in the child before its program begins, and that nothing of it is left when it has ended; who starts which program
is the caller's.
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
    """What to give a subprocess as `preexec_fn`, or to call in a child of the process `parent`: the kernel kills the child when the
    thread that started it ends, also when that was itself killed. Where the system cannot (it is not Linux), the child is on its own.
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
    """Until it has ended and all that it said is read: its pipes are closed then. Who waits for the end alone may leave them to
    a loop that is closed by the time they are.
    """
    await process.communicate()
    return await process.wait()
