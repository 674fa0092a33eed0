"""Imports: NDJSON of any length, line by line; each rejected line is reported with its number and code.

A part of at most `PART_LINES` lines and about `PART_BYTES` bytes is one unit of the store. An interrupted import
continues with `?after_line=`, or starts again: lines that were imported change nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Generic, TypeVar

from aiohttp import web

from ..codes import DISPATCH_CODES, DispatchCode
from ..errors import RequestRefused
from .bodies import read_body
from .requests import read_parts

PART_LINES = 1_000
PART_BYTES = 1_000_000
"""Accepts wait while one part is stored; a line may have 64 KiB."""
LINE_BYTES_MAX = 65_536
REJECTED_SHOWN_MAX = 1_000
T = TypeVar("T")


class Import(Generic[T]):
    """One import. `store` writes a part of (line number, row); it may call `reject` for rows."""

    def __init__(self, kind: type[T], store: Callable[[list[tuple[int, T]]], Awaitable[None]]) -> None:
        self._kind, self._store = kind, store
        self._part: list[tuple[int, T]] = []
        self._rejected: list[dict[str, Any]] = []
        self._rejected_count = 0
        self._lines = self._bytes = self._stored = 0

    async def run(self, request: web.Request, after_line: int) -> dict[str, Any]:
        """Read the whole body; returns the result. Raises RequestRefused, with the line after which to continue."""
        self._stored = after_line
        try:
            return await self._run(request, after_line)
        except RequestRefused as refused:
            why = refused.detail or DISPATCH_CODES[refused.code].sentence.rstrip(".")
            detail = f"{why}; continue with after_line={self._stored}"
            raise RequestRefused(refused.code, detail, pointer=refused.pointer) from refused

    async def _run(self, request: web.Request, after_line: int) -> dict[str, Any]:
        async for line in read_lines(request):
            self._lines += 1
            if self._lines > after_line and line.strip():
                self._take(line)
            if len(self._part) >= PART_LINES or self._bytes >= PART_BYTES:
                await self._flush()
        await self._flush()
        return {"lines": self._lines, "rejected_count": self._rejected_count, "rejected": self._rejected}

    def reject(self, line: int, code: DispatchCode, detail: str = "", pointer: str = "") -> None:
        """Report a line that was not imported."""
        self._rejected_count += 1
        if len(self._rejected) < REJECTED_SHOWN_MAX:
            row: dict[str, Any] = {"line": line, "code": int(code), "detail": detail or DISPATCH_CODES[code].sentence}
            self._rejected.append({**row, "pointer": pointer} if pointer else row)

    def _take(self, line: bytes) -> None:
        try:
            if len(line) > LINE_BYTES_MAX:
                raise RequestRefused(DispatchCode.REQUEST_TOO_BIG, f"the line is longer than {LINE_BYTES_MAX:,} bytes")
            self._part.append((self._lines, read_body(line, self._kind)[0]))
            self._bytes += len(line)
        except RequestRefused as refused:
            self.reject(self._lines, refused.code, refused.detail, refused.pointer)

    async def _flush(self) -> None:
        if self._part:
            part, self._part, self._bytes = self._part, [], 0
            await self._store(part)
            self._stored = self._lines


async def read_lines(request: web.Request) -> AsyncIterator[bytes]:
    """The lines of a body. Of a line that is too long, only enough to show that it is."""
    line = bytearray()
    async for part in read_parts(request):
        pieces = part.split(b"\n")
        for number, piece in enumerate(pieces):
            if len(line) <= LINE_BYTES_MAX:
                line += piece[: LINE_BYTES_MAX + 1]
            if number < len(pieces) - 1:
                yield bytes(line)
                line.clear()
    if line:
        yield bytes(line)
