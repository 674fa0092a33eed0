"""A subscriber by WebSocket, for brokers whose subscribers come back with the place they had: one connection after the other.

Owns the connection: that it is opened again, that one which answers no ping is given up, and that its checker hears when it went.
What is said on it is each broker's own.
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
    """Run it as a task; cancel it to end. A broker's own says where to, and what is said there."""

    subprotocols: tuple[Subprotocol, ...] = ()

    def __init__(self, setup: SubscriberSetup) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.checker, self.trace = setup.mine, setup.checker, setup.trace
        self.setup, self.numbered = setup, Numbered(setup)
        self._is_joined = False

    @property
    def path(self) -> str:
        """Where it connects this time, with its place if that goes into the path."""
        raise AssertionError(f"{type(self).__name__} connects to nothing")

    async def greet(self, socket: ClientConnection) -> None:
        """What it says first; where there is nothing to say it is subscribed by connecting."""
        self.joined()

    async def take(self, socket: ClientConnection, told: str | bytes) -> None:
        """One message of the socket."""
        raise AssertionError(f"{type(self).__name__} takes nothing: {len(told)} characters")

    def joined(self) -> None:
        """It is subscribed on this connection."""
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
