"""Keeps two kinds of Java's output off the terminal: lines that it prints at every start, and everything after a person stopped the
command.

Owns the error stream of the Java process, which inherits it when the session is built. All other output passes.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.accumulators import AccumulatorTCPServer

_ALWAYS_SAID = (
    b"Using incubator modules",
    b"Setting default log level",
    b"To adjust logging level",
    b"Setting Spark log level",
    b"Warning: Java versions > Java 11 can only operate in restricted mode",  # of the sketches' library, which needs no other
)

_TRACE = b"Traceback (most recent call last):"
_DAEMON = b"pyspark/daemon.py"
_HUNG_UP = (b"EOFError", b"BrokenPipeError", b"ConnectionResetError")
"""The exit code of a worker process whose connection Spark closed, because another task failed or Spark stops."""

_hushed = threading.Event()


def hush() -> None:
    """From now on drop all output: after an interrupt Java reports every unfinished part as a failure."""
    _hushed.set()
    logging.disable()  # so does the bridge to Java, by Python's own log


@contextmanager
def quiet_start() -> Iterator[None]:
    """While the block runs, new processes write their errors through a filter for as long as they live. After an interrupt in the block all
    of it is dropped.
    """
    kept = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_sieve, args=(reading, kept), daemon=True).start()
    logging.disable()
    # it has a trace to tell whenever Java ends, and nothing that the end of what Java worked at does not tell
    AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # pyspark offers no other way
    try:
        yield
    except KeyboardInterrupt:
        hush()
        raise
    finally:
        os.dup2(kept, 2)
        if not _hushed.is_set():
            logging.disable(logging.NOTSET)


def _sieve(reading: int, kept: int) -> None:
    with os.fdopen(reading, "rb") as said:
        for line in sift(said):
            if not _hushed.is_set():
                os.write(kept, line)


def sift(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines but those that are always said, and the traces of workers whose connection Spark closed: why, the command says."""
    trace: list[bytes] = []
    for line in lines:
        if trace or line.startswith(_TRACE):
            trace.append(line)
            if len(trace) > 1 and not line.startswith(b" "):  # its last line
                yield from () if _is_hung_up(trace) else trace
                trace = []
        elif not any(known in line for known in _ALWAYS_SAID):
            yield line
    yield from trace


def _is_hung_up(trace: list[bytes]) -> bool:
    return trace[-1].startswith(_HUNG_UP) and any(_DAEMON in line for line in trace)
