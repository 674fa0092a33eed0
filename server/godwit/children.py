"""Processes that this one starts for a while (a node to measure or to harm, a rival): they end when it ends, however it does.

Owns what happens in the child before its program begins; who starts which program is the caller's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1  # prctl(2)


def follow_parent() -> Callable[[], None]:
    """What to give a subprocess as `preexec_fn`: the kernel kills the child when the thread that starts it ends, also when
    that was itself killed. Where the system cannot (it is not Linux), the child is on its own.
    """
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def follow() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it ended before it could be followed
                os._exit(1)

    return follow
