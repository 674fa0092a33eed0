"""Combines calls that arrive while the writer is busy into one unit.

For one event loop. Each call returns its result, or raises, after the commit of its unit.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ..writer import GROUP_MAX, Writer

A = TypeVar("A")
T = TypeVar("T")


class Gathering(Generic[A, T]):
    """`work` does what several calls ask for: what each came to, in their order.

    It may do the first of them only: the others are in the next unit. Bulk units leave precedence to urgent ones.
    """

    def __init__(
        self,
        writer: Writer,
        work: Callable[[sqlite3.Connection, Sequence[A]], Sequence[T | Exception]],
        *,
        is_bulk: bool = False,
    ) -> None:
        self._writer, self._work, self._is_bulk = writer, work, is_bulk
        self._waiting: deque[tuple[A, asyncio.Future[T]]] = deque()
        self._has_unit = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, call: A) -> T:
        """The result of the call; raises StoreFailed if the store refused it."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, done))  # before the look at the flag: a unit that begins now takes it
        if not self._has_unit:
            self._start_unit()
        return await done

    async def _run_unit(self) -> None:
        taken: list[tuple[A, asyncio.Future[T]]] = []

        def unit(connection: sqlite3.Connection) -> Sequence[T | Exception]:
            self._has_unit = False  # later calls start another unit
            self._take(taken, GROUP_MAX)
            results = self._work(connection, [call for call, _ in taken])
            self._waiting.extendleft(reversed(taken[len(results) :]))
            del taken[len(results) :]
            return results

        results: Sequence[T | Exception]
        try:
            results = await self._writer.run(unit, bulk=self._is_bulk)
        except Exception as error:
            if not taken:  # it never ran: the store is closed
                self._has_unit = False
                self._take(taken, len(self._waiting))
            results = [error] * len(taken)
        for (_, done), result in zip(taken, results, strict=True):
            if done.done():
                continue  # its caller is gone
            done.set_exception(result) if isinstance(result, Exception) else done.set_result(result)
        if self._waiting and not self._has_unit:  # more than one unit takes
            self._start_unit()

    def _start_unit(self) -> None:
        self._has_unit = True
        task = asyncio.get_running_loop().create_task(self._run_unit())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self, taken: list[tuple[A, asyncio.Future[T]]], count_max: int) -> None:
        taken.extend(self._waiting.popleft() for _ in range(min(count_max, len(self._waiting))))
