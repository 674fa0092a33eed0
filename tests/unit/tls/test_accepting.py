"""A server that is closed while it accepts."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from godwit.tls.accepting import stop_accepting


class Counting(asyncio.Protocol):
    def __init__(self, made: list[asyncio.BaseTransport]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport)


@pytest.mark.parametrize("turns", range(5))
async def test_a_connection_that_is_accepted_while_the_server_closes_is_made_or_reset(turns: int) -> None:
    loop, errors, made = asyncio.get_running_loop(), list[dict[str, Any]](), list[asyncio.BaseTransport]()
    loop.set_debug(True)  # reports what asyncio otherwise drops
    loop.set_exception_handler(lambda _, context: errors.append(context))
    server = await loop.create_server(lambda: Counting(made), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop_accepting(server)
        assert not errors and len(made) <= 1
        for transport in made:
            transport.close()
        await asyncio.sleep(0)
        client.settimeout(10)
        try:
            assert client.recv(1) == b""
        except ConnectionResetError:
            assert not made
