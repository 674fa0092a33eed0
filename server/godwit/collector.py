"""The interpreter's collector of cyclic garbage, in a process that serves for a long time.

With the interpreter's own settings it looks at every loaded module again and again: 12 % of the CPU time of dispatch under load, and
pauses of 50 ms in which nothing else of Python runs.
"""

from __future__ import annotations

import gc

THRESHOLD = 10_000
"""New objects between two collections of the youngest; the interpreter's own value is 700."""


def spare_start() -> None:
    """Call once everything is started: no later collection looks at what there is now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD, *gc.get_threshold()[1:])
