"""A hostile peer: bytes to a node, and all that it answers until it closes or a time that no answer takes."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

DEADLINE_S = 30
UPGRADE = (
    b"GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def frame(payload: bytes | dict[str, Any] | list[Any], first: int = 0x81) -> bytes:
    """A client's frame; an object is a command."""
    payload = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    length = len(payload)
    if length < 126:
        head = bytes([first, 0x80 | length])
    elif length < 65_536:
        head = bytes([first, 0xFE]) + struct.pack(">H", length)
    else:
        head = bytes([first, 0xFF]) + struct.pack(">Q", length)
    return head + bytes(4) + payload  # a mask of zeros masks nothing


def request(method: str, target: str, *fields: str, body: bytes = b"") -> bytes:
    """An HTTP request with a length, unless its fields say how long it is."""
    says_length = any(field.lower().startswith(("content-length", "transfer-encoding")) for field in fields)
    length = [] if says_length or method in ("GET", "HEAD") else [f"Content-Length: {len(body)}"]
    return "\r\n".join([f"{method} {target} HTTP/1.1", "Host: h", *fields, *length, "", ""]).encode("latin-1") + body


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def open(cls, host: str, port: int) -> AsyncIterator[Peer]:
        peer = cls(*await asyncio.open_connection(host, port, limit=2**24))
        try:
            yield peer
        finally:
            peer.writer.transport.abort()
            await asyncio.sleep(0)  # one turn of the loop, in which it is let go

    @classmethod
    @asynccontextmanager
    async def live(cls, host: str, port: int, *fields: str) -> AsyncIterator[Peer]:
        """One that speaks WebSocket."""
        async with cls.open(host, port) as peer:
            peer.writer.write(UPGRADE + "".join(f"{field}\r\n" for field in fields).encode() + b"\r\n")
            assert (await peer.head()).startswith(b"HTTP/1.1 101 ")
            yield peer

    @asynccontextmanager
    async def dripping(self) -> AsyncIterator[None]:
        """Says one byte more ten times a second."""

        async def drip() -> None:
            while True:
                await asyncio.sleep(0.1)  # the pace of who drips, and nothing that is waited for
                self.writer.write(b"x")

        task = asyncio.create_task(drip())
        try:
            yield
        finally:
            task.cancel()

    async def head(self) -> bytes:
        """The head of the next answer; what there is of it where the connection ends."""
        try:
            return await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as read:
            return read.partial
        except ConnectionResetError:
            return b""

    async def answer(self) -> tuple[int, bytes]:
        """Status and body of the next answer; 0 where there is none."""
        head, body = await self.head(), b""
        if not head.startswith(b"HTTP/1.1 "):
            return 0, body
        for line in head.decode("latin-1").split("\r\n"):
            if line.lower().startswith("content-length:"):
                body = await self.reader.readexactly(int(line.split(":")[1]))
        return int(head.split(b" ")[1]), body

    async def status(self) -> int:
        """The status of the next answer, whose body is passed over; 0 where there is none."""
        return (await self.answer())[0]

    async def say(self, *what: bytes | dict[str, Any]) -> None:
        """Sends bytes as they are and objects as commands."""
        for one in what:
            self.writer.write(frame(one) if isinstance(one, dict) else one)
        await self.writer.drain()

    async def frame(self) -> tuple[int, bytes]:
        """Opcode and payload of the next frame."""
        first, length = await self.reader.readexactly(2)
        if length == 126:
            length = int.from_bytes(await self.reader.readexactly(2))
        elif length == 127:
            length = int.from_bytes(await self.reader.readexactly(8))
        return first & 15, await self.reader.readexactly(length)

    async def hear(self) -> dict[str, Any]:
        """The next object; {"close": code} at the end, 1006 where nothing was said."""
        while True:
            try:
                opcode, payload = await self.frame()
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return {"close": 1006}
            if opcode == 8:
                return {"close": int.from_bytes(payload[:2])}
            if opcode == 1:
                heard: dict[str, Any] = json.loads(payload)
                return heard

    async def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """The answer to a command, or how the connection ended."""
        await self.say(command)
        while "close" not in (heard := await self.hear()) and heard.get("id") != command["id"]:
            pass
        return heard

    async def end(self) -> int:
        """The code it is closed with."""
        while "close" not in (heard := await self.hear()):
            pass
        return int(heard["close"])

    async def rest(self) -> bytes:
        """All that comes until the connection ends."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""
