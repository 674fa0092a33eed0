"""Clients with tiny buffers that read a little now and then, are cut off and resume: over a WebSocket, an event stream, or long polls. What
they receive is compared with what was published."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.trials import binary
from tests.trials.slow import History, View
from tests.trials.slow_connection import SlowConnection, open_slowly


@dataclass
class SlowReader:
    """One connection at a time. `options`: of the subscription; `kind`: websocket, binary, sse, many (one stream of an array) or poll."""

    address: tuple[str, int]
    kind: str
    selector: str
    options: dict[str, Any]
    history: History
    random: Random
    epoch = "0"

    def __post_init__(self) -> None:
        is_merged = "conflate_ms" in self.options or self.selector.startswith("/slow/")
        self.view = View(f"{self.kind} {self.selector} {self.options}", self.history, not is_merged)
        self.is_slow = True
        self.token: str | None = None
        self.event_id: str | None = None

    @property
    def is_pattern(self) -> bool:
        return self.selector.endswith("**")

    @property
    def name(self) -> str:
        return self.view.name

    def count_behind(self) -> int:
        return self.view.count_behind()

    def check(self) -> list[str]:
        """What it received and should not have received."""
        return self.view.faults

    async def run(self) -> None:
        while True:
            with contextlib.suppress(ConnectionError, OSError, asyncio.IncompleteReadError):
                await self._live()
            await asyncio.sleep(0.02)

    async def _live(self) -> None:
        stream = await open_slowly(self.address, self.random, lambda: self.is_slow)
        try:
            if self.kind in {"websocket", "binary"}:
                await self._read_websocket(stream)
            elif self.kind == "poll":
                await self._read_polls(stream)
            else:
                await self._read_events(stream)
        finally:
            stream.close()

    def _places(self) -> dict[str, Any]:
        if self.is_pattern:
            return {"since": self.token} if self.token is not None else {}
        stand = self.view.stands.get(self.selector)
        return {"after": f"{self.epoch}.{stand}"} if stand is not None else {}

    def _take(self, said: dict[str, Any]) -> None:
        if "resume_token" in said:
            self.token = said["resume_token"]
        if "message" in said:
            self.epoch = said["at"].partition(".")[0]
        self.view.take(said)

    async def _read_websocket(self, stream: SlowConnection) -> None:
        encoding = b"binary" if self.kind == "binary" else b"json"
        stream.write(
            b"GET /v1/live HTTP/1.1\r\nHost: trial\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Sec-WebSocket-Protocol: godwit.v1." + encoding + b"\r\n\r\n"
        )
        if self.is_pattern:
            self.view.resume()
        options = {**self.options, **self._places()}
        if self.kind == "binary":
            raw, first = binary.subscribe(self.selector, options), 0x82
        else:
            raw, first = json.dumps({"id": 1, "subscribe": self.selector, **options}).encode(), 0x81
        size = bytes([0x80 | len(raw)]) if len(raw) < 126 else bytes([0xFE]) + len(raw).to_bytes(2)
        stream.write(bytes([first]) + size + bytes(4) + raw)
        while await stream.line():
            pass
        frames = binary.Frames()
        while True:
            head = await stream.readexactly(2)
            length = head[1] & 127
            if length > 125:
                length = int.from_bytes(await stream.readexactly(2 if length == 126 else 8))
            payload = await stream.readexactly(length)
            opcode = head[0] & 15
            if opcode == 9:
                stream.write(bytes([0x8A, 0x80 | len(payload)]) + bytes(4) + payload)
            elif opcode == 2:
                self._take(frames.read(payload))
            elif opcode == 1:
                said = json.loads(payload)
                for one in said if isinstance(said, list) else [said]:
                    self._take(one)

    async def _read_polls(self, stream: SlowConnection) -> None:
        """One request after the other, from where the last answer said to go on."""
        selector = self.selector.replace("/", "%2F")
        while True:
            where = (
                "" if self.event_id is None else f"&{'last_event_id' if self.is_pattern else 'after'}={self.event_id}"
            )
            if self.is_pattern:
                self.view.resume()
            asked = f"subject={selector}{where}&wait=5&limit={self.random.choice((1, 7, 30))}"
            stream.write(f"GET /v1/messages?{asked} HTTP/1.1\r\nHost: trial\r\n\r\n".encode())
            status = await stream.line()
            assert b" 200 " in status, (status, asked)
            headers = {}
            while line := await stream.line():
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            answer = json.loads(await stream.readexactly(int(headers["content-length"])))
            for one in answer:
                self._take(one)
            self.event_id = headers["godwit-position"]

    async def _read_events(self, stream: SlowConnection) -> None:
        if self.is_pattern:
            self.view.resume()
        last = f"Last-Event-ID: {self.event_id}\r\n".encode() if self.event_id is not None else b""
        options = "".join(f"&{key}={json.dumps(value)}" for key, value in self.options.items())
        if self.kind == "sse":
            selector = self.selector.replace("/", "%2F")
            stream.write(
                f"GET /v1/stream?subject={selector}{options} HTTP/1.1\r\nHost: trial\r\n".encode() + last + b"\r\n"
            )
        else:
            body = json.dumps([{"id": 1, "subscribe": self.selector, **self.options}]).encode()
            head = f"POST /v1/stream HTTP/1.1\r\nHost: trial\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            stream.write(head.encode() + last + b"\r\n" + body)
        status = await stream.line()
        assert b" 200 " in status, status
        is_chunked = False
        while line := await stream.line():
            is_chunked |= line.lower() == b"transfer-encoding: chunked"
        data, event_id = bytearray(), None
        async for line in _event_lines(stream, is_chunked):
            if line.startswith(b"data:"):
                data += line[5:].strip()
            elif line.startswith(b"id:"):
                event_id = line[3:].strip().decode()
            elif not line:
                if data:
                    self._take(json.loads(bytes(data)))
                if event_id is not None:
                    self.event_id, event_id = event_id, None
                data.clear()


async def _event_lines(stream: SlowConnection, is_chunked: bool) -> AsyncIterator[bytes]:
    held = bytearray()
    while True:
        if is_chunked:
            size = int(await stream.line(), 16)
            held += await stream.readexactly(size)
            await stream.readexactly(2)
        else:
            held += await stream.line() + b"\n"
        while (end := held.find(b"\n")) >= 0:
            yield bytes(held[:end]).rstrip(b"\r")
            del held[: end + 1]
