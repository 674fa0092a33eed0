"""Clients that subscribe and never read do not affect others, and receive a gap when they read again."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, closing
from random import Random

import pytest

from godwit.client import Client
from godwit.client.codec.encodings import EncodingName
from godwit.client.codec.json import JsonEncoding
from godwit.client.items import Dropped
from godwit.model import Gap, Message
from tests.node_process import NodeProcess, running_node
from tests.raw_client import raw_client

DEADLINE_S = 300
READERS = 10
LOG_MESSAGES_MAX = 500
BATCH = 100
KILOBYTE = 1_024
GROWTH_MAX = 2_048 * KILOBYTE  # queues of what was not read would be 30 MB in the short form, 2 GB in the long one


class NonReader:
    """A socket with a small receive buffer that subscribes and then leaves everything lying."""

    def __init__(self, node: NodeProcess, subject: str) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * KILOBYTE)
        self._socket.settimeout(DEADLINE_S)
        self._socket.connect((node.host, node.port))
        self._bytes = b""
        request = (
            f"GET /v1/live HTTP/1.1\r\nHost: {node.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Protocol: godwit.v1.json\r\n\r\n"
        )
        self._socket.sendall(request.encode() + _masked(f'{{"id":1,"subscribe":"{subject}"}}'.encode()))
        while b"\r\n\r\n" not in self._bytes:
            self._bytes += self._socket.recv(KILOBYTE)
        self._bytes = self._bytes.partition(b"\r\n\r\n")[2]

    def read(self) -> bytes:
        """The payload of the next text frame."""
        while True:
            head = self._take(2)
            size = head[1] & 0x7F
            if size == 126:
                size = int.from_bytes(self._take(2))
            elif size == 127:
                size = int.from_bytes(self._take(8))
            payload = self._take(size)
            if head[0] & 0x0F == 1:
                return payload

    def close(self) -> None:
        self._socket.close()

    def _take(self, size: int) -> bytes:
        while len(self._bytes) < size:
            more = self._socket.recv(65_536)
            assert more, "the node closed a client that was only slow"
            self._bytes += more
        taken, self._bytes = self._bytes[:size], self._bytes[size:]
        return taken


def _masked(payload: bytes) -> bytes:
    """A text frame of a client, masked with zeros."""
    assert len(payload) < 126
    return bytes([0x81, 0x80 | len(payload)]) + bytes(4) + payload


class Flood:
    """So many messages, and readers that see every one of them; a batch is published when the one before has arrived."""

    def __init__(self, url: str, count: int) -> None:
        self._url, self._count = url, count
        self._taken = [0] * READERS
        self._moved = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            joined = [asyncio.Event() for _ in range(READERS)]
            for number, event in enumerate(joined):
                group.create_task(self._read(number, event))
            for event in joined:
                await event.wait()
            async with Client(self._url, encoding="binary") as client:
                for begin in range(0, self._count, BATCH):
                    contents = ([number, "x" * 200] for number in range(begin, begin + BATCH))
                    # without keys: the node would remember them, which is no cost of those who do not read
                    await asyncio.gather(*(client.publish("/flood", each, once=False) for each in contents))
                    while min(self._taken) < begin:
                        self._moved.clear()
                        await self._moved.wait()

    async def _read(self, number: int, joined: asyncio.Event) -> None:
        encoding: EncodingName = "binary" if number % 2 else "json"
        async with Client(self._url, encoding=encoding) as client:
            subscription = client.subscribe("/flood", snapshot=False)
            await subscription.joined()
            joined.set()
            for _ in range(self._count):
                await anext(subscription)
                self._taken[number] += 1
                self._moved.set()
            assert subscription.counts["gaps"] == subscription.counts["missing"] == 0


@pytest.mark.parametrize(("non_readers", "messages"), [(50, 3_000), pytest.param(500, 20_000, marks=pytest.mark.long)])
async def test_who_never_reads_costs_little_and_hears_of_the_gap_when_it_reads(
    driver: str, non_readers: int, messages: int, random: Random
) -> None:
    settings = {
        "node.driver": driver,
        "node.shards": 2,
        "limits.log_messages_max": LOG_MESSAGES_MAX,
        "limits.stream_window_bytes_max": 65_536,  # a window is a stream's, not a client's: kept out of the figure
        "limits.idle_ms_max": 600_000,
    }
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, AsyncExitStack() as stack:
        await Flood(node.url, messages).run()  # everything that a flood needs once is there now
        slow = [stack.enter_context(closing(NonReader(node, "/flood"))) for _ in range(non_readers)]
        async with raw_client(node.url) as client:  # all of them are served before memory is looked at
            await client.ask({"id": 1, "ping": True})
        before = node.memory_bytes()
        await Flood(node.url, messages).run()
        grown = node.memory_bytes() - before
        print(f"{grown // KILOBYTE} kB grown beside {non_readers} that never read {messages} messages")
        assert grown < GROWTH_MAX, f"{grown} bytes for {non_readers} that never read"
        for each in random.sample(slow, 10):
            _hears_of_its_gap(each, head=2 * messages)


def _hears_of_its_gap(slow: NonReader, head: int) -> None:
    """It reads what had been sent, then exactly one gap, the snapshot after it, and stands at the head."""
    encoding, stand, gaps = JsonEncoding(), None, []
    while stand is None or stand < head:
        for push in encoding.decode(slow.read()):
            if isinstance(push, Gap):
                assert push.position is not None and push.after is not None
                assert push.after.sequence == stand
                assert push.missed == push.position.sequence - push.after.sequence
                gaps.append(push)
                stand = push.position.sequence
            elif isinstance(push, Message) and push.position is not None:
                assert push.is_snapshot or push.position.sequence == (stand or 0) + 1
                stand = push.position.sequence
    assert len(gaps) == 1


async def test_who_does_not_read_is_told_how_many_standard_messages_were_lost(driver: str) -> None:
    settings = {"node.driver": driver, "limits.stream_window_bytes_max": 65_536, "limits.idle_ms_max": 600_000}
    count, encoding, received, lost = 3_000, JsonEncoding(), 0, 0
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, Client(node.url) as client:
        with closing(NonReader(node, "/standard")) as slow:
            slow.read()  # it is subscribed
            for begin in range(0, count, BATCH):
                contents = ([number, "x" * 200] for number in range(begin, begin + BATCH))
                await asyncio.gather(*(client.publish("/standard", each, guaranteed=False) for each in contents))
            while received + lost < count:
                for push in encoding.decode(slow.read()):
                    assert isinstance(push, Message | Dropped)
                    if isinstance(push, Dropped):
                        lost += push.count
                    else:
                        assert push.position is None
                        assert push.json()[0] == received + lost, "lost messages must be reported at their position"
                        received += 1
    assert lost > 0 and received > 0
    assert received + lost == count
