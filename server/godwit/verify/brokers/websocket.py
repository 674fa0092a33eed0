"""A subscriber over WebSocket, for brokers whose subscribers resume at their position: one connection after the other.

Owns the connection: it reconnects, closes a connection without answers to pings, and reports losses to its checker. A
subclass for each broker has the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from ..reading import Reading
from .broker import Numbered, SubscriberSetup

DEAD_S = 5.0
BACK_OFF_S = 0.2


class WebsocketSubscriber(Reading[asyncio.Event]):
    """Run it as a task; cancel it to end. A subclass has the address and the protocol."""

    subprotocols: tuple[Subprotocol, ...] = ()

    def __init__(self, setup: SubscriberSetup) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.checker, self.trace = setup.mine, setup.checker, setup.trace
        self.setup, self.numbered = setup, Numbered(setup)
        self._is_joined = False

    @property
    def path(self) -> str:
        """The path of the next connection, with the position if it belongs in the path."""
        raise AssertionError(f"{type(self).__name__} connects to nothing")

    async def greet(self, socket: ClientConnection) -> None:
        """The first message to send; without one, connecting subscribes."""
        self.joined()

    async def take(self, socket: ClientConnection, received: str | bytes) -> None:
        """Process one message of the socket."""
        raise AssertionError(f"{type(self).__name__} takes nothing: {len(received)} characters")

    def joined(self) -> None:
        """The subscription on this connection is confirmed."""
        self._is_joined = True
        self.numbered.joined()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError, TimeoutError, InvalidHandshake, EOFError):
                await self._live()
            await asyncio.sleep(BACK_OFF_S)

    async def _live(self) -> None:
        async with connect(
            f"ws://127.0.0.1:{self.setup.port}{self.path}",
            subprotocols=self.subprotocols or None,
            compression=None,
            proxy=None,
            max_size=None,
            ping_interval=DEAD_S / 2,
            ping_timeout=DEAD_S / 2,
            close_timeout=0.2,
        ) as socket:
            self._is_joined = False
            try:
                await self.greet(socket)
                while True:
                    await self._may_read.wait()
                    await self.take(socket, await socket.recv())
            except ConnectionClosed as closed:
                if self._is_joined:
                    self.numbered.lost(closed.rcvd.reason if closed.rcvd is not None else "broken")
