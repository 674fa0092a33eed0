"""Looks up the names of hosts: for each tenant a few at once, with a time limit, and not in threads that others need.

A lookup cannot be interrupted. It keeps its place until its thread ends, so slow names of one tenant leave places to
others; the thread does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import Any
from weakref import WeakValueDictionary

LOOKUPS_MAX = 64
LOOKUPS_PER_TENANT_MAX = 8
Found = list[tuple[Any, ...]]
"""The rows of `socket.getaddrinfo`."""


class Names:
    """Create it in the event loop that uses it."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._all = asyncio.Semaphore(LOOKUPS_MAX)
        self._tenants: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def find(self, tenant: str, host: str, port: int, family: int) -> Found:
        """The addresses of a name. Raises OSError, also when there is no answer in time."""
        own = self._tenants.get(tenant)
        if own is None:
            own = self._tenants[tenant] = asyncio.Semaphore(LOOKUPS_PER_TENANT_MAX)
        try:
            async with asyncio.timeout(self._timeout_s):
                await own.acquire()
                try:
                    await self._all.acquire()
                except BaseException:
                    own.release()
                    raise
                found = self._begin(own, host, port, family)
                await asyncio.wait([found])
        except TimeoutError:
            raise OSError("the name was not found in time") from None
        return found.result()

    def _begin(self, own: asyncio.Semaphore, host: str, port: int, family: int) -> asyncio.Future[Found]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Found] = loop.create_future()

        def end(rows: Found | None, error: Exception | None) -> None:
            own.release()
            self._all.release()
            if error is None:
                found.set_result(rows or [])
            else:
                found.set_exception(error)
                found.exception()  # it may have no reader any more

        def ask() -> None:
            rows, failure = None, None
            try:
                rows = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
            except Exception as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end, rows, failure)

        try:
            threading.Thread(target=ask, name="name", daemon=True).start()
        except RuntimeError as error:  # the machine has no more threads
            end(None, OSError(str(error)))
        return found
