"""Closes a listening server without losing what it has just accepted.

asyncio makes the transport of an accepted connection in the next turn of its loop. If the server is closed in between, the
transport cannot be made, and the connection stays open until its socket is collected.
"""

from __future__ import annotations

import asyncio

TURNS = 3
"""Of the loop, after which an accepted connection has its transport and its protocol knows it."""


async def stop_accepting(server: asyncio.Server) -> None:
    """Accept nothing more, and close the server. Connections stay open: each has its transport."""
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    server.close()
