"""What this process uses of its machine: time of a processor, resident memory. Asked once a second."""

from __future__ import annotations

import time
from typing import Any


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
