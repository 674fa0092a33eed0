"""Reads in parallel to the writer: threads with connections of their own. A read transaction ends with its call."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ...vault import Vault
from .schema import open_reader

THREADS = 2
T = TypeVar("T")


class Reader:
    """Open from construction to `close`. It sees everything that a returned write committed. A thread opens its connection with
    its first read, and again with the next if that failed.
    """

    def __init__(self, path: Path, vault: Vault) -> None:
        self._path, self._vault = path, vault
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="godwit-dispatch-reader")

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run `read` on one of the reader threads, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, read)

    def close(self) -> None:
        """Returns when no read is running."""
        self._threads.shutdown(wait=True)
        for connection in self._opened:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = open_reader(self._path, self._vault)
        self._local.connection = connection
        self._opened.append(connection)
        return connection

    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        connection = getattr(self._local, "connection", None) or self._open()
        connection.execute("BEGIN")  # one view of the data for all statements of a read
        try:
            return read(connection)
        finally:
            connection.execute("ROLLBACK")
