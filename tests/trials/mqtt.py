"""MQTT clients with sessions that outlive connections and nodes: their half of QoS 1 and 2, as the standards say it, and a ledger of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from tests.mqtt.packets import V5, ack, connect, publish, subscribe

PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, PINGRESP = 3, 4, 5, 6, 7, 9, 13
RETRY_S = 0.02
"""Between two attempts to reach a node that is being started."""


@dataclass
class Sent:
    """A publish that has not been settled."""

    topic: str
    payload: bytes
    is_received: bool = False


@dataclass
class Device:
    """One client. `slowness_s`: it settles each message after up to so long."""

    name: str
    address: tuple[str, int]
    version: int
    random: Random
    qos: int
    filters: tuple[str, ...] = ()
    slowness_s: float = 0.0
    receive_max: int = 20
    got: list[tuple[str, bytes]] = field(default_factory=list)
    settled: list[tuple[str, bytes]] = field(default_factory=list)
    connections: int = 0
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sent: dict[int, Sent] = {}
        self._held: set[int] = set()
        self.is_known = False
        self._last_id = 0
        self._writer: Writable | None = None
        self.moved = asyncio.Event()
        self._later: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Connects whenever it is not connected, until it is cancelled."""
        while True:
            try:
                await self._live(await self._open())
            except (ConnectionError, asyncio.IncompleteReadError, OSError):
                pass
            finally:
                for task in self._later:
                    task.cancel()
                self._later.clear()
                if self._writer is not None:
                    self._writer.close()
                self._writer = None
            await asyncio.sleep(RETRY_S)

    async def _open(self) -> Readable:
        reader, self._writer = await asyncio.open_connection(*self.address)
        return reader

    async def publish(self, topic: str, payload: bytes) -> None:
        """Publishes as soon as the window allows; it is settled later, whatever happens meanwhile."""
        while len(self.sent) >= self.receive_max:
            await self.move()
        self._last_id = self._last_id % 50 + 1  # identifiers come again soon
        while self._last_id in self.sent:
            self._last_id = self._last_id % 50 + 1
        self.sent[self._last_id] = Sent(topic, payload)
        self._send(publish(topic, payload, self.qos, self._last_id, self.version))

    async def move(self) -> None:
        """Until something has been received or settled."""
        self.moved.clear()
        await self.moved.wait()

    async def settle(self) -> None:
        while self.sent:
            await self.move()

    def _send(self, raw: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(raw)

    async def _live(self, reader: Readable) -> None:
        properties = b""
        if self.version == V5:
            properties = b"\x11" + (10_000).to_bytes(4) + b"\x21" + self.receive_max.to_bytes(2)
        writer, self._writer = self._writer, None
        assert writer is not None
        writer.write(connect(self.name, self.version, clean=not self.qos, properties=properties))
        first, body = await _read(reader)
        assert first >> 4 == 2 and body[1] == 0, body.hex(" ")
        self._writer = writer
        self.connections += 1
        if not body[0]:
            if self.is_known:
                self.faults.append(f"{self.name}: its session was lost")
            self._held.clear()
            for sent in self.sent.values():
                sent.is_received = False
        for packet_id, sent in self.sent.items():
            again = publish(sent.topic, sent.payload, self.qos, packet_id, self.version, dup=True)
            self._send(ack(PUBREL, packet_id) if sent.is_received else again)
        if self.filters and not body[0]:
            self._send(subscribe(*((one, self.qos) for one in self.filters), version=self.version))
        while True:
            self._take(*await _read(reader))
            self.moved.set()

    def _take(self, first: int, body: bytes) -> None:
        kind = first >> 4
        if kind == PUBLISH:
            self._take_publish(first, body)
        elif kind == SUBACK:
            assert body[-1] == self.qos, body.hex(" ")
            self.is_known = True
        elif kind in {PUBACK, PUBREC, PUBREL, PUBCOMP}:
            assert len(body) == 2 or body[2] in {0, 0x92}, body.hex(" ")
            self._take_answer(kind, int.from_bytes(body[:2]))

    def _take_answer(self, kind: int, packet_id: int) -> None:
        if kind == PUBREL:
            self._held.discard(packet_id)
            self._answer(ack(PUBCOMP, packet_id))
        elif kind == PUBREC:
            self.is_known = True
            if packet_id in self.sent:
                self.sent[packet_id].is_received = True
            self._send(ack(PUBREL, packet_id))
        elif packet_id in self.sent:
            sent = self.sent.pop(packet_id)
            self.settled.append((sent.topic, sent.payload))

    def _take_publish(self, first: int, body: bytes) -> None:
        qos, size = first >> 1 & 3, int.from_bytes(body[:2])
        topic, rest = body[2 : 2 + size].decode(), body[2 + size :]
        assert qos <= self.qos, (topic, qos)
        if not qos:
            self._take_at_most_once(first, topic, rest[1 + rest[0] :] if self.version == V5 else rest)
            return
        packet_id, rest = int.from_bytes(rest[:2]), rest[2:]
        payload = rest[1 + rest[0] :] if self.version == V5 else rest
        if qos == 2 and packet_id in self._held:
            if not first & 8:
                self.faults.append(f"{self.name}: identifier {packet_id} was given to another message: {payload!r}")
        else:
            self._note(first, topic, payload)
        if qos == 2:
            self._held.add(packet_id)
        self._answer(ack(PUBACK if qos == 1 else PUBREC, packet_id))

    def _note(self, first: int, topic: str, payload: bytes) -> None:
        """A message at QoS 1 or 2 that is not a repeat within its exchange."""
        self.got.append((topic, payload))

    def _take_at_most_once(self, first: int, topic: str, payload: bytes) -> None:
        """A message at QoS 0."""
        self.faults.append(f"{self.name}: {topic} came at QoS 0")

    def _answer(self, raw: bytes) -> None:
        if self.slowness_s and self.random.random() < 0.7:
            self._later.add(asyncio.create_task(self._answer_later(raw, self.random.random() * self.slowness_s)))
        else:
            self._send(raw)

    async def _answer_later(self, raw: bytes, delay_s: float) -> None:
        await asyncio.sleep(delay_s)  # a slow member takes its time
        self._send(raw)


class Writable(Protocol):
    """A connection that is written to."""

    def write(self, data: bytes, /) -> None: ...
    def is_closing(self) -> bool: ...
    def close(self) -> None: ...


class Readable(Protocol):
    """A connection that is read."""

    async def readexactly(self, n: int, /) -> bytes: ...


async def _read(reader: Readable) -> tuple[int, bytes]:
    first = (await reader.readexactly(1))[0]
    size = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return first, await reader.readexactly(size)
