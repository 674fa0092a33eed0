"""A peer for the client's shell: a real WebSocket server around the node of values, with valves a test can turn."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed


class Peer:
    """Answers as the protocol requires and records received commands; `say` sends to all connections, `cut` breaks them."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.connections: dict[ServerConnection, set[str]] = {}  # and what each is subscribed to
        self.log: dict[str, list[Any]] = {}
        self.keys: dict[str, int] = {}
        self.connected = asyncio.Event()
        self.is_mute = False  # takes everything, answers nothing
        self._server: Server | None = None

    async def __aenter__(self) -> Peer:
        self._server = await serve(self._converse, "127.0.0.1", 0, ping_interval=None, compression=None)
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def say(self, *objects: dict[str, Any] | str | bytes) -> None:
        for connection in list(self.connections):
            for each in objects:
                await connection.send(json.dumps(each) if isinstance(each, dict) else each)

    async def cut(self) -> None:
        for connection in list(self.connections):
            connection.transport.abort()
            await connection.wait_closed()

    async def close(self, code: int, reason: str = "") -> None:
        for connection in list(self.connections):
            await connection.close(code, reason)

    async def _converse(self, connection: ServerConnection) -> None:
        self.connections[connection] = set()
        try:
            while True:
                read = json.loads(await connection.recv())
                for command in read if isinstance(read, list) else [read]:
                    self.heard.append(command)
                    if not self.is_mute:
                        await self._take(connection, command)
        except ConnectionClosed:
            del self.connections[connection]

    async def _take(self, connection: ServerConnection, command: dict[str, Any]) -> None:
        answer = self._answer(command)
        await connection.send(json.dumps(answer))
        for message in self._after(command):
            await connection.send(json.dumps(message))
        if "subscribe" in command:
            self.connections[connection].add(command["subscribe"])
        elif "unsubscribe" in command:
            self.connections[connection].discard(command["unsubscribe"])
        elif "publish" in command and not answer["duplicate"]:
            message = {"message": command["publish"], "at": answer["at"], "content": command.get("content")}
            for other, subjects in list(self.connections.items()):
                if command["publish"] in subjects:
                    await other.send(json.dumps(message))

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        id = command.get("id")
        if "connect" in command:
            self.connected.set()
            return {"id": id, "ok": "connected", "session": "s", "node": "n", "time": 1, "ping_interval_ms": 25_000}
        if "subscribe" in command:
            head, after = len(self.log.get(command["subscribe"], [])), self._from(command)
            return {"id": id, "ok": "subscribed", "at": f"7.{head}", "outcome": "recovered", "count": head - after}
        if "publish" in command:
            key = str(command.get("key", command.get("number", len(self.keys))))
            is_duplicate = key in self.keys
            if not is_duplicate:
                messages = self.log.setdefault(command["publish"], [])
                messages.append(command.get("content"))
                self.keys[key] = len(messages)
            return {"id": id, "ok": "published", "at": f"7.{self.keys[key]}", "duplicate": is_duplicate}
        return {"id": id, "ok": "unsubscribed" if "unsubscribe" in command else "pong"}

    def _from(self, command: dict[str, Any]) -> int:
        after = command.get("after")
        return int(after.split(".")[1]) if isinstance(after, str) else 0

    def _after(self, command: dict[str, Any]) -> list[dict[str, Any]]:
        if "subscribe" not in command:
            return []
        subject, after = command["subscribe"], self._from(command)
        kept = self.log.get(subject, [])[after:]
        return [{"message": subject, "at": f"7.{after + n}", "content": each} for n, each in enumerate(kept, 1)]
