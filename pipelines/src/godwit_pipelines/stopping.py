"""Handles ^C and SIGTERM, from the command's first moment to its last.

Owns the signals and their meaning: a continuous job ends after its current batch, everything else is interrupted at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_heard = False
"""Somebody asked before anything listened: Python lets an interrupt fall that comes while it forks."""


def hear() -> None:
    """From now on both signals interrupt: SIGTERM has the meaning of ^C."""
    sys.unraisablehook = _say_fallen
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def _say_fallen(raised: sys.UnraisableHookArgs) -> None:
    """An interrupt that Python lets fall is minded later: nothing is said of it."""
    if not isinstance(raised.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(raised)


def _interrupt(*_: object) -> None:
    global _heard
    _heard = True
    raise KeyboardInterrupt


def end_children(of: int | None = None) -> None:
    """End every process that this one started, and first those that they started. Needs Linux to find them."""
    for tasks in Path(f"/proc/{of or os.getpid()}/task").glob("*/children"):
        children = ""
        with contextlib.suppress(OSError):  # it has ended
            children = tasks.read_text()
        for child in map(int, children.split()):
            end_children(child)
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)


_ENDING = b"godwit-pipelines: ends after the batch at work; ^C again ends it at once\n"


class Stopping:
    """Whether a signal asked this process to stop. Spark takes SIGINT for itself while it starts, so listening begins after that."""

    def __init__(self, ending: bytes = _ENDING) -> None:
        """`ending` is the line to print if the current work is finished first."""
        self.asked = self.interrupted = False
        self._ending = ending

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """While Spark starts. ^C also ends Java, so a Java process that has ended is not an error. A Java process without a
        connection does not notice that its parent has ended, and is ended here.
        """
        try:
            yield
        except KeyboardInterrupt:
            end_children()
            raise
        except Exception:
            if not _heard:
                raise
            end_children()
            raise KeyboardInterrupt from None

    def listen(self, *, goes_on: bool) -> None:
        """Listen for the signals. A job that is not continuous is interrupted at once, without an error of Spark."""
        for number in _NUMBERS:
            signal.signal(number, self._ask if goes_on else self._interrupt)
        if _heard:
            self._interrupt()

    def _ask(self, *_: object) -> None:
        if self.asked:
            self._interrupt()  # who asks twice does not wait for the batch either
        self.asked = True
        os.write(2, self._ending)  # a thread that was writing when the signal came holds the buffer

    def _interrupt(self, *_: object) -> None:
        from .quiet import hush

        for number in _NUMBERS:
            signal.signal(number, signal.SIG_DFL)  # who asks twice does not wait for Spark to end
        hush()
        self.interrupted = True
        raise KeyboardInterrupt

    def has_ended_java(self, spark: Any) -> bool:
        """Whether the signal ended Java as well, as systemd and `timeout` can do. The next run then repeats the current batch."""
        if not self.asked:
            return False
        try:
            return bool(spark.sparkContext._jsc.sc().isStopped())
        except Exception:  # there is no answer
            return True

    def end(self, spark: Any) -> None:
        """Stop Spark. The signal may have ended Java as well; then there is nothing left to stop."""
        if not self.interrupted and not self.asked:
            spark.stop()
            return
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
            spark.stop()

    def is_asked(self) -> bool:
        return self.asked

    def wait(self, seconds: float) -> bool:
        """Wait this long, or until a stop is requested; returns whether it was."""
        deadline = time.monotonic() + seconds
        while not self.asked and time.monotonic() < deadline:
            time.sleep(min(0.2, seconds))
        return self.asked
