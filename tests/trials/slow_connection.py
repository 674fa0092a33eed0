"""A connection with a tiny buffer that is read a little now and then, and cut off at any byte."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from random import Random

BUFFER_BYTES = 4_096
PAUSES_S = (0.02, 0.1, 0.2)
CUT_BYTES = (400_000, 4_000_000)


class SlowConnection:
    """`is_slow` is asked before each read: a reader that is not slow any more reads all there is, and is not cut off."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, random: Random, is_slow: Callable[[], bool]
    ) -> None:
        self._pause_s = random.choice(PAUSES_S)
        self._reader, self._writer, self._random, self._is_slow = reader, writer, random, is_slow
        self._held = bytearray()
        self._bytes_read = 0
        self._cut_at = random.randrange(20_000, random.choice(CUT_BYTES)) if is_slow() else None

    async def _fill(self) -> None:
        is_slow = self._is_slow()
        more = await self._reader.read(2_048 if is_slow else BUFFER_BYTES)
        if not more:
            raise ConnectionError
        self._held += more
        self._bytes_read += len(more)
        if is_slow:
            if self._cut_at is not None and self._bytes_read > self._cut_at:
                raise ConnectionError  # cut off in the midst of a frame
            if self._random.random() < 0.2:
                await asyncio.sleep(self._pause_s)  # it takes a little now and then

    async def readexactly(self, count: int, /) -> bytes:
        while len(self._held) < count:
            await self._fill()
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    async def line(self) -> bytes:
        while (end := self._held.find(b"\n")) < 0:
            await self._fill()
        return (await self.readexactly(end + 1)).rstrip(b"\r\n")

    def write(self, raw: bytes, /) -> None:
        self._writer.write(raw)

    def is_closing(self) -> bool:
        return self._writer.is_closing()

    def close(self) -> None:
        """At once, as where a network is lost."""
        self._writer.transport.abort()


async def open_slowly(address: tuple[str, int], random: Random, is_slow: Callable[[], bool]) -> SlowConnection:
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    held.setblocking(False)
    await asyncio.get_running_loop().sock_connect(held, address)
    reader, writer = await asyncio.open_connection(sock=held, limit=BUFFER_BYTES // 2)
    return SlowConnection(reader, writer, random, is_slow)
