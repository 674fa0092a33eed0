"""Writes events to the journal table `feedback`: a cursor over all tenants' events, which advances after the rows are on the
disk.

A crash between the two writes some rows twice; their field `event` identifies them. Bounded: one batch is in memory at a
time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol

from ...logs import read_logger
from ...rows.feedback import FeedbackRow, JournalFailed
from ..errors import StoreFailed

BATCH_ROWS = 5_000
STOP_S = 5.0


class FeedbackStore(Protocol):
    """The methods of the store that this role needs."""

    async def read_written(self) -> int:
        """The number of the last event whose rows are in the journal."""

    async def set_written(self, last: int) -> None:
        """The rows of all events up to `last` are in the journal."""

    async def read_rows(self, after: int, limit: int) -> tuple[list[FeedbackRow], int]:
        """The rows of whole events after a number, and the number of the last event."""


class Journal(Protocol):
    """The methods of the journal that this role needs."""

    def write(self, rows: Sequence[FeedbackRow]) -> None:
        """Returns when the rows are on the disk; raises JournalFailed."""

    def close(self) -> None:
        """Ends the run."""


class FeedbackWriter:
    """Runs until it is cancelled; call `stir` when there are events. Owns the journal, and closes it."""

    def __init__(self, store: FeedbackStore, journal: Journal, sweep_s: float) -> None:
        self._store, self._journal, self._sweep_s = store, journal, sweep_s
        self._stirred = asyncio.Event()
        self._batch: asyncio.Task[int] | None = None

    def stir(self) -> None:
        """There may be something to write."""
        self._stirred.set()

    async def run(self) -> None:
        """Write new events. Raises JournalFailed while the disk refuses rows; the role is then restarted."""
        written = await self._store.read_written()
        while True:
            self._stirred.clear()
            self._batch = asyncio.create_task(self._write_batch(written))
            last = await asyncio.shield(self._batch)  # begun, it is finished: half of one would be written twice
            if last == written:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._sweep_s):
                        await self._stirred.wait()
            written = last

    async def stop(self) -> None:
        """Write events committed meanwhile and close the journal, after `run` was cancelled. After `STOP_S` no more batches
        begin; the next start writes the rest.
        """
        if self._batch is not None:
            await asyncio.gather(self._batch, return_exceptions=True)
        try:
            end, written = asyncio.get_running_loop().time() + STOP_S, await self._store.read_written()
            while (last := await self._write_batch(written)) != written:
                written = last
                if asyncio.get_running_loop().time() >= end:
                    break
        except (JournalFailed, StoreFailed) as error:  # they are written at the next start
            read_logger().error("dispatch_feedback_not_written", reason=str(error))
        finally:
            await asyncio.to_thread(self._journal.close)

    async def _write_batch(self, written: int) -> int:
        rows, last = await self._store.read_rows(written, BATCH_ROWS)
        if rows:
            await asyncio.to_thread(self._journal.write, rows)
        if last != written:
            await self._store.set_written(last)
        return last
