"""The one thread that writes: units of work gather into a group, and each group is one commit.

Owns the write connection. A unit runs in a savepoint of its own, so its error does not undo other units. Its caller gets
the result only after the commit. Urgent units (an API call) run before bulk ones (a page). While there are both, they
take turns: a bulk unit is a group of its own, so that an API call waits for one at most.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...errors import StoreFailed
from ...vault import Vault
from .schema import open_writer

GROUP_MAX = 256
BUSY_S = 0.05
T = TypeVar("T")
Unit = Callable[[sqlite3.Connection], T]


@dataclass(slots=True)
class _Work:
    unit: Unit[Any]
    done: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: Exception | None = None
    empties_log: bool = False


class Writer:
    """Open from construction to `close`, which commits waiting units."""

    def __init__(self, path: Path, vault: Vault) -> None:
        self._connection = open_writer(path, vault)
        self._urgent: deque[_Work] = deque()
        self._bulk: deque[_Work] = deque()
        self._is_turn_of_bulk = False
        self._changed = threading.Condition()
        self._is_closed = False
        self.commits = 0
        self.on_commit: Callable[[], None] | None = None
        """Called after a commit, in the event loop of the waiters."""
        self._thread = threading.Thread(target=self._work, name="godwit-dispatch-writer", daemon=True)
        self._thread.start()

    async def run(self, unit: Unit[T], *, bulk: bool = False) -> T:
        """Run a unit in the next group; returns after the commit. Raises StoreFailed if the store refused it."""
        loop = asyncio.get_running_loop()
        work = _Work(unit, loop.create_future(), loop)
        with self._changed:
            if self._is_closed:
                raise StoreFailed("the store is closed")
            (self._bulk if bulk else self._urgent).append(work)
            self._changed.notify()
        result: T = await work.done
        return result

    async def empty_log(self) -> None:
        """Returns when the write-ahead log is empty, so that it contains no deleted data."""
        while not await self._ask_to_empty():  # noqa: ASYNC110 - SQLite has no event for the end of a read
            await asyncio.sleep(BUSY_S)

    async def _ask_to_empty(self) -> bool:
        loop = asyncio.get_running_loop()
        work = _Work(_do_nothing, loop.create_future(), loop, empties_log=True)
        with self._changed:
            if self._is_closed:
                raise StoreFailed("the store is closed")
            self._urgent.append(work)
            self._changed.notify()
        is_empty: bool = await work.done
        return is_empty

    def close(self) -> None:
        """Returns when all units are committed and the file is closed."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._connection.close()

    def _work(self) -> None:
        while group := self._take_group():
            self._commit(group)
            self._empty_log([work for work in group if work.empties_log and work.error is None])
            for loop in {work.loop for work in group}:
                alike = [work for work in group if work.loop is loop]
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_settle, alike, self.on_commit)

    def _empty_log(self, asking: list[_Work]) -> None:
        """Empty the log outside of a transaction; busy at once while a reader uses the log, because writes of others wait here."""
        if not asking:
            return
        try:
            waits_ms = self._connection.execute("PRAGMA busy_timeout").fetchone()[0]
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {waits_ms}")
        except sqlite3.Error as error:
            for work in asking:
                work.error = StoreFailed(f"{type(error).__name__}: {error}")
            return
        for work in asking:
            work.result = not busy

    def _take_group(self) -> list[_Work]:
        with self._changed:
            while not (self._urgent or self._bulk or self._is_closed):
                self._changed.wait()
            if self._bulk and (self._is_turn_of_bulk or not self._urgent):
                self._is_turn_of_bulk = False
                return [self._bulk.popleft()]
            self._is_turn_of_bulk = bool(self._bulk)
            return [self._urgent.popleft() for _ in range(min(GROUP_MAX, len(self._urgent)))]

    def _commit(self, group: list[_Work]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for work in group:
                self._run(work)
            self._connection.execute("COMMIT")
            self.commits += 1
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            for work in group:
                work.error = work.error or StoreFailed(f"{type(error).__name__}: {error}")

    def _run(self, work: _Work) -> None:
        self._connection.execute("SAVEPOINT unit")
        try:
            work.result = work.unit(self._connection)
        except sqlite3.OperationalError:
            raise  # the disk or the file: the whole group failed
        except Exception as error:
            work.error = error
            self._connection.execute("ROLLBACK TO unit")
        self._connection.execute("RELEASE unit")


def _settle(group: list[_Work], on_commit: Callable[[], None] | None) -> None:
    if on_commit is not None:
        on_commit()
    for work in group:
        if work.done.done():
            continue
        if work.error is not None:
            work.done.set_exception(work.error)
        else:
            work.done.set_result(work.result)


def _do_nothing(connection: sqlite3.Connection) -> None:
    return None
