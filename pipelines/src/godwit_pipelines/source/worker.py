"""Prepares the Python process in which Spark runs a task, and which it uses again for the next one.

Spark's daemon collects all garbage there after each task. What is loaded once and stays, some 50,000 objects of pyspark, Arrow and
numpy, took 15 ms of processor time to look through each time, twice for each task that a micro-batch of a live loop has.
"""

from __future__ import annotations

import functools
import gc


@functools.cache
def settle() -> None:
    """Leave what is loaded by now out of all later collections; only the first task of a process does anything."""
    gc.freeze()
