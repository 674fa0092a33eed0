"""Keeps what Java says at every start, and nobody can help, off the terminal; everything else it says passes.

Owns the error stream of the Java process, which inherits it when the session is built.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ALWAYS_SAID = (
    b"Using incubator modules",
    b"Setting default log level",
    b"To adjust logging level",
    b"Setting Spark log level",
)


@contextmanager
def quiet_start() -> Iterator[None]:
    """While the block lasts, processes that are started write their errors through a sieve, for as long as they live."""
    kept = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_sieve, args=(reading, kept), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, 2)


def _sieve(reading: int, kept: int) -> None:
    with os.fdopen(reading, "rb") as said:
        for line in said:
            if not any(known in line for known in _ALWAYS_SAID):
                os.write(kept, line)
