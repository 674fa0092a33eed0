"""Renders Liquid in a child process that is killed when it takes too long or too much memory.

Owns the child. It processes one request at a time, so a killed child fails only that request; the next one gets a new
child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...children import follow_parent
from ..codes import DispatchCode
from ..errors import RenderInterrupted, RequestRefused

RENDER_S = 0.25
"""CPU time of the child for each text. CPU time, so that a busy machine does not fail a good template."""
START_S = 20.0
SLICE_S = 0.1
"""CPU time after which the child ends a page of receivers early."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LINE_BYTES_MAX = 16 * 1024 * 1024


class Source(NamedTuple):
    """One template text. `escapes`: values are escaped for HTML."""

    text: str
    escapes: bool = False


class RenderFailed(RequestRefused):
    """A template that could not be rendered."""

    def __init__(self, detail: str) -> None:
        super().__init__(DispatchCode.RENDER_FAILED, detail)


class RendererMissing(RenderInterrupted):
    """The process that renders cannot be started; the template may be valid."""


class Renderer:
    """Starts its child at the first use. For one event loop."""

    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def render(self, sources: Sequence[Source], data: Mapping[str, Any]) -> list[str]:
        """Render texts. Raises RenderFailed, or RenderInterrupted if another try may succeed."""
        results = await self._ask("render", sources, data)
        return [_take(result, "text") for result in results]

    async def render_receivers(
        self,
        sources: Mapping[str, Sequence[Source]],
        data: Mapping[str, Any],
        receivers: Sequence[tuple[str, Mapping[str, Any]]],
    ) -> list[list[str] | str]:
        """Render the texts of the first receivers, each given as locale and names; a string in the result is an error. At
        least one, and as many as fit into a slice of time. Raises RenderInterrupted.
        """
        packed = {locale: [source._asdict() for source in parts] for locale, parts in sources.items()}
        request = {"kind": "receivers", "sources": packed, "data": data, "receivers": receivers}
        results = await self._send(request, SLICE_S + RENDER_S)
        return [result["error"] if "error" in result else result["texts"] for result in results]

    async def list_variables(self, sources: Sequence[Source]) -> list[str]:
        """The names that the sources need; raises RenderFailed if one is not valid Liquid."""
        results = await self._ask("analyze", sources, {})
        return sorted({name for result in results for name in _take(result, "variables")})

    async def compile_mjml(self, text: str) -> str:
        """The HTML of an MJML document; raises RenderFailed if the text is not MJML or includes another file."""
        [result] = await self._ask("mjml", [Source(text)], {})
        return str(_take(result, "text"))

    async def close(self) -> None:
        """Ends the child."""
        async with self._turn:
            await self._kill()

    async def _ask(self, kind: str, sources: Sequence[Source], data: Mapping[str, Any]) -> list[dict[str, Any]]:
        request = {"kind": kind, "data": data, "sources": [source._asdict() for source in sources]}
        return await self._send(request, RENDER_S * max(1, len(sources)))

    async def _send(self, request: dict[str, Any], timeout_s: float) -> list[dict[str, Any]]:
        async with self._turn:
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
            raise RendererMissing(f"no process to render in: {error}") from error
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


def _take(result: dict[str, Any], field: str) -> Any:
    if "error" in result:
        raise RenderFailed(result["error"])
    return result[field]
