"""Readers with tiny buffers that take a little now and then, are cut off and resume: a WebSocket or a stream of events each, read a
little at a time, and held to what was published. Nothing here is the node's own code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from dataclasses import dataclass, field
from random import Random
from typing import Any

BUFFER_BYTES = 4_096


class History:
    """What was published: contents by subject and sequence, as the publisher was told."""

    def __init__(self) -> None:
        self.contents: dict[str, dict[int, int]] = {}
        self.heads: dict[str, int] = {}
        self.moved = asyncio.Event()

    def write(self, subject: str, at: str, number: int) -> None:
        sequence = _sequence(at)
        self.contents.setdefault(subject, {})[sequence] = number
        self.heads[subject] = max(sequence, self.heads.get(subject, 0))


@dataclass
class View:
    """What one subscription has been given. `whole`: each message, or a gap that counts what is missing."""

    name: str
    history: History
    whole: bool
    stands: dict[str, int] = field(default_factory=dict)
    frames: int = 0
    unsure: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def take(self, said: dict[str, Any]) -> None:
        self.history.moved.set()
        if "message" in said:
            self.frames += 1
            self._take_message(said["message"], said)
        elif "gap" in said and said.get("at"):
            self._take_gap(said["gap"], said)
        elif "gap" in said:
            self.faults.append(f"{self.name}: a gap of the whole pattern: {said}")

    def resume(self) -> None:
        """The next connection begins: a resume token may be older than what was received."""
        self.unsure = set(self.stands)

    def _take_message(self, subject: str, said: dict[str, Any]) -> None:
        at, stand = _sequence(said["at"]), self.stands.get(subject, 0)
        number = self.history.contents.get(subject, {}).get(at)
        if number is not None and said["content"]["n"] != number:
            self.faults.append(f"{self.name}: {subject} {at} is {number}, not {said['content']['n']}")
        is_unsure = subject in self.unsure
        if is_unsure and at <= stand:
            return  # a client drops by its position what comes again
        self.unsure.discard(subject)
        if not said.get("snapshot"):
            after = _sequence(said["after"]) if "after" in said else at - 1
            may_reach_back = is_unsure and not self.whole
            if (self.whole and stand and after != stand) or at <= stand or (after < stand and not may_reach_back):
                self.faults.append(f"{self.name}: {subject} at {stand} was sent {after} to {at}")
        self.stands[subject] = max(stand, at)

    def _take_gap(self, subject: str, said: dict[str, Any]) -> None:
        at, stand = _sequence(said["at"]), self.stands.get(subject, 0)
        after = _sequence(said["after"]) if "after" in said else 0
        is_unsure = subject in self.unsure
        if is_unsure and at <= stand:
            return
        self.unsure.discard(subject)
        is_wrong = after > stand or (after < stand and "after" in said and not is_unsure)
        if said["reason"] != "overrun" or at <= stand or said["missed"] not in {at - after, None} or is_wrong:
            self.faults.append(f"{self.name}: {subject} at {stand} was told {said}")
        self.stands[subject] = max(stand, at)

    def count_behind(self) -> int:
        """Messages between where it stands and the heads."""
        heads = self.history.heads
        return sum(max(head - self.stands.get(subject, 0), 0) for subject, head in heads.items() if self._has(subject))

    def _has(self, subject: str) -> bool:
        selector = self.name.split()[1]
        return subject == selector or (selector.endswith("**") and subject.startswith(selector[:-2]))


def _sequence(at: str) -> int:
    return int(at.partition(".")[2])


@dataclass
class SlowReader:
    """One connection at a time. `options`: of the subscription; `kind`: websocket, sse or many (one stream of an array)."""

    address: tuple[str, int]
    kind: str
    selector: str
    options: dict[str, Any]
    history: History
    random: Random

    def __post_init__(self) -> None:
        is_merged = "conflate_ms" in self.options or self.selector.startswith("/slow/")
        self.view = View(f"{self.kind} {self.selector} {self.options}", self.history, not is_merged)
        self.is_slow = True
        self.token: str | None = None
        self.event_id: str | None = None
        self.bytes_read = 0

    async def run(self) -> None:
        while True:
            with contextlib.suppress(ConnectionError, OSError, asyncio.IncompleteReadError):
                await self._live()
            await asyncio.sleep(0.02)

    async def _live(self) -> None:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        held.setblocking(False)
        await asyncio.get_running_loop().sock_connect(held, self.address)
        reader, writer = await asyncio.open_connection(sock=held, limit=BUFFER_BYTES // 2)
        self._reader, self._held = reader, bytearray()
        self._cut_at = self.bytes_read + self.random.randrange(20_000, 400_000) if self.is_slow else None
        try:
            if self.kind == "websocket":
                await self._read_websocket(writer)
            else:
                await self._read_events(writer)
        finally:
            writer.transport.abort()

    async def _fill(self) -> None:
        """Takes a little more, now and then slowly."""
        more = await self._reader.read(2_048 if self.is_slow else BUFFER_BYTES)
        if not more:
            raise ConnectionError
        self._held += more
        self.bytes_read += len(more)
        if self.is_slow:
            if self._cut_at is not None and self.bytes_read > self._cut_at:
                raise ConnectionError  # cut off in the midst of a frame
            if self.random.random() < 0.2:
                await asyncio.sleep(0.02)  # it takes a little now and then

    async def _bytes(self, count: int) -> bytes:
        while len(self._held) < count:
            await self._fill()
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    async def _line(self) -> bytes:
        while (end := self._held.find(b"\n")) < 0:
            await self._fill()
        return (await self._bytes(end + 1)).rstrip(b"\r\n")

    def _places(self) -> dict[str, Any]:
        stands = {subject: f"{self.epoch}.{sequence}" for subject, sequence in self.view.stands.items()}
        if self.selector.endswith("**"):
            return {"since": self.token} if self.token is not None else {}
        return {"after": stands[self.selector]} if self.selector in stands else {}

    epoch = "0"

    def _take(self, said: dict[str, Any]) -> None:
        if "resume_token" in said:
            self.token = said["resume_token"]
        if "message" in said:
            self.epoch = said["at"].partition(".")[0]
        self.view.take(said)

    async def _read_websocket(self, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"GET /v1/live HTTP/1.1\r\nHost: trial\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Sec-WebSocket-Protocol: godwit.v1.json\r\n\r\n"
        )
        if self.selector.endswith("**"):
            self.view.resume()
        command = {"id": 1, "subscribe": self.selector, **self.options, **self._places()}
        raw = json.dumps(command).encode()
        size = bytes([0x80 | len(raw)]) if len(raw) < 126 else bytes([0xFE]) + len(raw).to_bytes(2)
        writer.write(b"\x81" + size + bytes(4) + raw)
        while await self._line():
            pass
        while True:
            head = await self._bytes(2)
            size = head[1] & 127
            if size > 125:
                size = int.from_bytes(await self._bytes(2 if size == 126 else 8))
            payload = await self._bytes(size)
            if head[0] & 15 == 9:
                writer.write(bytes([0x8A, 0x80 | len(payload)]) + bytes(4) + payload)
            elif head[0] & 15 == 1:
                said = json.loads(payload)
                for one in said if isinstance(said, list) else [said]:
                    self._take(one)

    async def _read_events(self, writer: asyncio.StreamWriter) -> None:
        if self.selector.endswith("**"):
            self.view.resume()
        last = f"Last-Event-ID: {self.event_id}\r\n".encode() if self.event_id is not None else b""
        options = "".join(f"&{key}={json.dumps(value)}" for key, value in self.options.items())
        if self.kind == "sse":
            selector = self.selector.replace("/", "%2F")
            writer.write(
                f"GET /v1/stream?subject={selector}{options} HTTP/1.1\r\nHost: trial\r\n".encode() + last + b"\r\n"
            )
        else:
            body = json.dumps([{"id": 1, "subscribe": self.selector, **self.options}]).encode()
            head = f"POST /v1/stream HTTP/1.1\r\nHost: trial\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + last + b"\r\n" + body)
        status = await self._line()
        assert b" 200 " in status, status
        is_chunked = False
        while line := await self._line():
            is_chunked |= line.lower() == b"transfer-encoding: chunked"
        data, event_id = bytearray(), None
        async for line in self._event_lines(is_chunked):
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

    async def _event_lines(self, is_chunked: bool) -> Any:
        held = bytearray()
        while True:
            if is_chunked:
                size = int(await self._line(), 16)
                held += await self._bytes(size)
                await self._bytes(2)
            else:
                held += await self._line() + b"\n"
            while (end := held.find(b"\n")) >= 0:
                yield bytes(held[:end]).rstrip(b"\r")
                del held[: end + 1]
