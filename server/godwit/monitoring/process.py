"""The resources used by this process: CPU time and resident memory. Read once a second, by a thread of low priority."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Any

NICENESS = 10
"""The nice value of this thread; with it the thread still gets about a tenth of a contended processor."""


def stand_back() -> None:
    """Lower the priority of this thread, if the system supports it, because nothing waits for its work."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + NICENESS, 19))


class ProcessMeter:
    """Reads this process."""

    def __init__(self) -> None:
        self._process: Any = None

    def read(self) -> dict[str, float]:
        """cpu_seconds and memory_bytes of the whole process with all threads."""
        if self._process is None:
            import psutil  # when the first figure is wanted: starting is quick without it

            self._process = psutil.Process()
        return {"cpu_seconds": time.process_time(), "memory_bytes": float(self._process.memory_info().rss)}
