"""What this process uses of its machine: time of a processor, resident memory. Asked once a second, by a thread that stands back."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Any

NICENESS = 10
"""How much later than the shards' threads this one gets a processor they both want: a tenth of it stays its own."""


def stand_back() -> None:
    """This thread lets the others of the process go first, where the system knows of such: nobody waits for what it does."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + NICENESS, 19))


class ProcessMeter:
    """Reads this process."""

    def __init__(self) -> None:
        self._process: Any = None

    def read(self) -> dict[str, float]:
        """cpu_seconds and memory_bytes of the whole process, all threads."""
        if self._process is None:
            import psutil  # when the first figure is wanted: starting is quick without it

            self._process = psutil.Process()
        return {"cpu_seconds": time.process_time(), "memory_bytes": float(self._process.memory_info().rss)}
