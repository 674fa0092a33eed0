"""A client without any cleverness: JSON objects over a WebSocket, for tests of what exactly the node says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol


class RawClient:
    """Sends objects, receives objects, and knows how it ended."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self._received: list[dict[str, Any]] = []
        self.close: tuple[int, str] | None = None

    async def send(self, *objects: dict[str, Any]) -> None:
        await self.socket.send(json.dumps(objects[0] if len(objects) == 1 else objects))

    async def receive(self) -> dict[str, Any] | None:
        """The next object, or None when the connection has ended."""
        while not self._received:
            try:
                read = json.loads(await self.socket.recv())
            except ConnectionClosed as closed:
                self.close = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else None
                return None
            self._received += read if isinstance(read, list) else [read]
        return self._received.pop(0)

    async def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send a command and return the reply with its id, passing over what comes before."""
        await self.send(command)
        while (read := await self.receive()) is not None:
            if read.get("id") == command["id"]:
                return read
        raise ConnectionError(f"closed before an answer: {self.close}")

    async def rest(self) -> AsyncIterator[dict[str, Any]]:
        while (read := await self.receive()) is not None:
            yield read


@asynccontextmanager
async def raw_client(url: str) -> AsyncIterator[RawClient]:
    subprotocol = Subprotocol("godwit.v1.json")
    async with connect(
        f"{url}/v1/live", subprotocols=[subprotocol], compression=None, proxy=None, ping_interval=None
    ) as socket:
        yield RawClient(socket)
