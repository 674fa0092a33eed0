"""A task of the node that is restarted whenever it ends; each end is logged and counted. Owns the waits between two starts,
which double up to a bound. Only `stop`, which cancels `task`, ends it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from ..logs import read_logger

WAIT_MIN_S, WAIT_MAX_S = 0.1, 10.0
WELL_S = 30.0
"""After running this many seconds, work that ends is restarted after the shortest wait."""


class WatchedTask:
    """Runs `work` again and again until `stop`."""

    def __init__(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        self.name = name
        self.restarts = 0
        self.reason = ""
        """Why it does not run now; empty: it runs."""
        self._work = work
        self._is_stopping = False
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended."""
        self._is_stopping = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        wait_s = WAIT_MIN_S
        while not self._is_stopping:
            began = time.monotonic()
            try:
                await self._work()
                why = "it ended"
            except asyncio.CancelledError:
                if self._is_stopping:
                    raise
                why = "it was cancelled"  # by something that it awaited
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            self.restarts += 1
            self.reason = why
            wait_s = WAIT_MIN_S if time.monotonic() - began > WELL_S else min(2 * wait_s, WAIT_MAX_S)
            read_logger().error("task_restarted", task=self.name, reason=why, after_ms=int(wait_s * 1000))
            await asyncio.sleep(wait_s)
            self.reason = ""
