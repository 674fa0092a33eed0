"""A connection of the library that is one of a table, and is closed where no whole request head comes in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from .connections import Connections

LINGER_S = 1.0
"""Seconds for which an unwanted request body is read."""
_QUIET: dict[str, Any] = {"access_log": None}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class BoundedConnection(web.RequestHandler):
    """One connection, entered when it is made and left when it ends."""

    def __init__(self, server: web.Server, connections: Connections, head_s: float) -> None:
        """`head_s` is the time for a request's head, from the connection's begin and after each answer."""
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, keepalive_timeout=head_s, lingering_time=LINGER_S, **_QUIET)
        self.connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.connections.enter(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.connections.leave(self)
        super().connection_lost(exc)


@web.middleware
async def attend(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Says of a connection that its request is being answered. The first middleware of an application."""
    connection = request.protocol
    if not isinstance(connection, BoundedConnection):
        return await handler(request)
    connection.connections.begin(connection)
    try:
        return await handler(request)
    finally:
        connection.connections.wait_again(connection)
