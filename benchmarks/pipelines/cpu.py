"""Processor time of this process and all that it started, Java and Python workers too, from /proc.

A rate by the wall says how busy the machine was, too; rows for a second of processor time hardly do.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """What has been used up to now; a process that ended counts with the parent that waited for it."""
    children: dict[int, list[int]] = defaultdict(list)
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            children[int(fields[1])].append(int(entry.name))
            used[int(entry.name)] = sum(map(int, fields[11:15])) * _TICK_S
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total += used.get(process, 0.0)
        waiting += children[process]
    return total
