"""What this process costs the machine: CPU time and memory, and each shard's thread by its name, where the system tells.

Owns reading the system's own account; rates are the reader's to make. A figure the system does not tell is left out.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_TASKS = Path("/proc/self/task")
_THREAD_PREFIX = "godwit-"


class ProcessAccount:
    """One process. The shards' threads are looked for once and again only when one is gone."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._threads: dict[int, Path] = {}

    def read_cpu_s(self) -> float:
        """Seconds of all cores since the process began."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def read_memory_bytes(self) -> int:
        """Resident memory."""
        return int(self._process.memory_info().rss)

    def read_shards_cpu_s(self) -> dict[int, float]:
        """Seconds of each shard's thread, by shard; empty where threads are not told by name."""
        if not self._threads:
            self._threads = _find_threads()
        try:
            return {shard: self._read_thread(path) for shard, path in self._threads.items()}
        except (OSError, ValueError, IndexError):
            self._threads = {}
            return {}

    def _read_thread(self, path: Path) -> float:
        fields = (path / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * self._tick_s


def _find_threads() -> dict[int, Path]:
    found = {}
    for task in _TASKS.iterdir() if _TASKS.is_dir() else ():
        try:
            name = (task / "comm").read_text().strip()
        except OSError:  # it ended meanwhile
            continue
        number = name.removeprefix(_THREAD_PREFIX)
        if name != number and number.isdigit():
            found[int(number)] = task
    return found
