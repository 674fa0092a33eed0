"""The child process that renders, killed when it takes too long or too much memory; tenants take turns at it.

It processes one request at a time, so a killed child fails only that request; the next one gets a new child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from ...children import follow_parent
from ..errors import RenderInterrupted

START_S = 20.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LINE_BYTES_MAX = 16 * 1024 * 1024


class RendererMissing(RenderInterrupted):
    """The process that renders cannot be started; the template may be valid."""


class Turns:
    """A lock for one event loop that names get in turn: behind any number of requests of one name, another waits for one."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """Holds the lock."""
        if self._is_taken:
            await self._wait(name)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, name: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was this one's turn already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the lock, which stays taken, to the next name; it waits behind all others from then on."""
        while self._waiting:
            name = next(iter(self._waiting))
            queue = self._waiting.pop(name)
            turn = queue.popleft()
            if queue:
                self._waiting[name] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False


class RenderProcess:
    """Starts its child at the first request. For one event loop."""

    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._turns = Turns()

    async def close(self) -> None:
        """Ends the child."""
        async with self._turns.take(""):
            await self._kill()

    async def send(self, tenant: str, request: dict[str, Any], timeout_s: float) -> list[dict[str, Any]]:
        """The results of a request; raises RenderInterrupted if another try may succeed."""
        async with self._turns.take(tenant):
            child = await self._start()
            try:
                return await self._exchange(child, request, timeout_s)
            except (
                TimeoutError,
                asyncio.IncompleteReadError,
                asyncio.LimitOverrunError,
                ConnectionError,
                ValueError,
            ) as error:
                await self._kill()
                raise RenderInterrupted("the template takes too long or too much memory") from error
            except BaseException:
                await self._kill()
                raise

    async def _exchange(
        self, child: asyncio.subprocess.Process, request: dict[str, Any], timeout_s: float
    ) -> list[dict[str, Any]]:
        """Send a request and read its answer. `timeout_s` limits the child's CPU time; the wall clock's limit is twenty
        times as long, or `START_S` if that is more.
        """
        assert child.stdin is not None and child.stdout is not None
        began_s = _read_cpu_s(child.pid)
        async with asyncio.timeout(max(timeout_s, min(20 * timeout_s, START_S))):
            child.stdin.write(msgspec.json.encode(request) + b"\n")
            await child.stdin.drain()
            reading = asyncio.ensure_future(child.stdout.readuntil(b"\n"))
            try:
                while not (await asyncio.wait([reading], timeout=timeout_s))[0]:
                    if _read_cpu_s(child.pid) - began_s >= timeout_s:
                        raise TimeoutError
            finally:
                reading.cancel()
            line = await reading
        results: list[dict[str, Any]] = msgspec.json.decode(line)["results"]
        return results

    async def _start(self) -> asyncio.subprocess.Process:
        if self._child is not None and self._child.returncode is None:
            return self._child
        try:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "godwit.dispatch.content.child",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=LINE_BYTES_MAX,
                env={},
                preexec_fn=follow_parent(),
            )
        except OSError as error:
            raise RendererMissing(f"the process that renders templates cannot start: {error}") from error
        try:
            await self._exchange(self._child, {"kind": "render", "data": {}, "sources": []}, START_S)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
            await self._kill()
            raise RendererMissing("templates need the extra: pip install 'godwit-server[dispatch]'") from error
        return self._child

    async def _kill(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.communicate()


def _read_cpu_s(pid: int) -> float:
    """The CPU time that a process has used; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
