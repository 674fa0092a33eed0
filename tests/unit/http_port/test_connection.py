"""Connections over real sockets: one that is being answered keeps its place and its time, silent ones do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from godwit.http_port.connection import BoundedConnection, attend
from godwit.http_port.connections import Connections

DEADLINE_S = 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening(connections: Connections, head_s: float, is_over: asyncio.Event) -> AsyncIterator[int]:
    """A port whose one resource answers when `is_over` is set."""

    async def answer(request: web.Request) -> web.Response:
        await is_over.wait()
        return web.Response(text="done")

    app = web.Application(middlewares=[attend])
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    made = runner.server
    assert made is not None
    server = await asyncio.get_running_loop().create_server(
        lambda: BoundedConnection(made, connections, head_s), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await runner.cleanup()


async def connect(port: int, request: bytes) -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    return reader, writer


async def test_only_silence_ends_a_connection() -> None:
    is_over = asyncio.Event()
    async with asyncio.timeout(DEADLINE_S), listening(Connections(10), 0.2, is_over) as port:
        busy, busy_writer = await connect(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        for request in (b"", b"GET / HTTP/1.1\r\nHost: a\r\n"):
            reader, writer = await connect(port, request)
            assert await reader.read() == b""
            writer.close()
        is_over.set()
        assert (await busy.readline()).startswith(b"HTTP/1.1 200")
        busy_writer.close()


async def test_who_is_being_answered_keeps_its_place() -> None:
    connections, is_over = Connections(3), asyncio.Event()
    async with asyncio.timeout(DEADLINE_S), listening(connections, 60, is_over) as port:
        busy, busy_writer = await connect(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        silent = [await connect(port, b"") for _ in range(10)]
        assert await silent[0][0].read() == b"" and len(connections) == 3
        is_over.set()
        assert (await busy.readline()).startswith(b"HTTP/1.1 200")
        for writer in (busy_writer, *(writer for _, writer in silent)):
            writer.close()
