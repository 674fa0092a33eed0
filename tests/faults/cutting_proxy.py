"""A TCP proxy that breaks connections at random: each gets a budget of bytes, drawn from a seeded generator.

When the budget is spent the rest of the chunk is not forwarded and both sides are reset, so that cuts fall inside
frames, inside the handshake, and between a command and its answer. `calm` ends the cutting, `cut` begins it; `redirect`
moves the target.
"""

from __future__ import annotations

import asyncio
import struct
from random import Random
from socket import SO_LINGER, SOL_SOCKET

CHUNK_BYTES = 16_384


class _Budget:
    def __init__(self, bytes: int) -> None:
        self.bytes = bytes


class CuttingProxy:
    """Forwards 127.0.0.1:port to its target; counts the connections that it broke."""

    def __init__(self, random: Random, target: tuple[str, int], mean_bytes: float) -> None:
        self._random, self._target, self._mean_bytes = random, target, mean_bytes
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._ways: set[asyncio.Task[None]] = set()
        self._none_open = asyncio.Event()
        self._is_calm = mean_bytes <= 0
        self._is_ending = False
        self.cuts = 0

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        self._is_ending = True
        for way in self._ways:
            way.cancel()
        while self._writers:
            self._none_open.clear()
            await self._none_open.wait()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def open(self) -> int:
        """Connections that stand, or are being made."""
        return (len(self._writers) + 1) // 2

    def cut(self) -> None:
        """Break connections again, those that are open too."""
        self._is_calm = False

    def calm(self) -> None:
        """Break nothing any more, neither what is open nor what will be."""
        self._is_calm = True

    def redirect(self, target: tuple[str, int]) -> None:
        self._target = target

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            self._end(writer)
            return
        self._writers.add(there_writer)
        if self._is_ending:  # it was being connected while all others were broken
            self._end(writer, there_writer)
            return
        budget = _Budget(int(self._random.expovariate(1 / self._mean_bytes)) if self._mean_bytes > 0 else 0)
        ends = asyncio.Barrier(2)
        ways = [
            asyncio.create_task(self._forward(reader, there_writer, budget, ends)),
            asyncio.create_task(self._forward(there_reader, writer, budget, ends)),
        ]
        self._ways.update(ways)
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        self._ways.difference_update(ways)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        self._end(writer, there_writer)

    def _end(self, *writers: asyncio.StreamWriter) -> None:
        for each in writers:
            self._writers.discard(each)
            _reset(each)
        self._none_open.set()

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: _Budget, ends: asyncio.Barrier
    ) -> None:
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                if not self._is_calm:
                    if len(chunk) > budget.bytes:
                        writer.write(chunk[: budget.bytes])
                        self.cuts += 1
                        return
                    budget.bytes -= len(chunk)
                writer.write(chunk)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
                await ends.wait()  # until the other way ends, or the two are broken
        except OSError:
            return


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST, as a broken path looks."""
    socket = writer.get_extra_info("socket")
    if socket is not None and socket.fileno() >= 0:
        socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
