"""Restless devices and readers, in the node's own environment: MQTT sessions whose subscriptions overlap, are asked for again
at another QoS and are shared, readers of the binary encoding that conflate, and an operator who purges messages that are about to be sent.

    python -m tests.pipelines.node.restless_devices HOST:PORT of clients, of MQTT, of the admin, its token, SEED

It ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import urllib.parse
import urllib.request
from collections.abc import Awaitable
from typing import Any

from godwit.client import Client, ResumePoint
from tests.mqtt.packets import DISCONNECT, V3, V5, ack, connect, publish, subscribe, unsubscribe

SUBJECTS = tuple(f"/restless/{number}" for number in range(4))
FILTERS = (
    "restless/1",
    "restless/+",
    "restless/#",
    "$share/a/restless/+",
    "$share/a/restless/1",
    "$share/b/restless/#",
)
SELECTORS = ("/restless/1", "/restless/*", "/restless/**")
DEVICES, CHANGES, READERS, READINGS = 8, 150, 4, 40
PAUSES_S = (0.0, 0.0, 0.001, 0.02, 0.1)
LEAVES_OUT = 0.03
"""The part of acknowledgements that are never given: what they were for is under way until the device comes back."""


class Device:
    def __init__(self, address: str, number: int, lots: random.Random) -> None:
        self.host, self.port = address.rsplit(":", 1)
        self.name, self.version, self.lots = f"device-{number}", (V3, V5)[number % 2], lots

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the connection ends."""
        while True:
            first, length, shift = (await reader.readexactly(1))[0], 0, 0
            while (byte := (await reader.readexactly(1))[0]) > 127:
                length, shift = length | (byte & 127) << shift, shift + 7
            body = await reader.readexactly(length | byte << shift)
            kind, qos = first >> 4, first >> 1 & 3
            if kind == 3 and qos and self.lots.random() > LEAVES_OUT:
                name = int.from_bytes(body[:2])
                writer.write(ack(4 if qos == 1 else 5, int.from_bytes(body[2 + name : 4 + name])))
            elif kind in (5, 6):
                writer.write(ack(kind + 1 if kind == 6 else 6, int.from_bytes(body[:2])))

    def draw(self, number: int) -> bytes:
        """A subscription more, or one less, or a message of its own."""
        draw, name = self.lots.random(), self.lots.choice(FILTERS)
        if draw < 0.6:
            own = 4 if self.version == V5 and not name.startswith("$share") and draw < 0.1 else 0
            return subscribe((name, self.lots.randrange(3) | own), packet_id=number, version=self.version)
        if draw < 0.85:
            return unsubscribe(name, packet_id=number, version=self.version)
        topic, qos = self.lots.choice(SUBJECTS)[1:], self.lots.randrange(3)
        return publish(topic, b"mine", qos, number, self.version, retain=draw < 0.9)

    async def run(self) -> None:
        left = CHANGES
        while left > 0:
            reader, writer = await asyncio.open_connection(self.host, int(self.port))
            keep = (
                b"\x11\0\0\0\x64" + (b"\x21\0" + bytes([self.lots.choice((1, 4, 50))])) if self.version == V5 else b""
            )
            writer.write(connect(self.name, self.version, clean=self.lots.random() < 0.2, properties=keep))
            answering = asyncio.create_task(self.answer(reader, writer))
            for number in range(1, self.lots.randint(4, 30)):
                left -= 1
                writer.write(self.draw(number))
                await asyncio.sleep(self.lots.choice(PAUSES_S))
            if self.lots.random() < 0.5:
                writer.write(DISCONNECT)
            writer.close()
            answering.cancel()
            # A session of which too much went while it was away is over, and the node says so by ending the connection.
            with contextlib.suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
                await answering


class Reader:
    def __init__(self, address: str, lots: random.Random) -> None:
        self.address, self.lots = f"ws://{address}", lots
        self.stands: dict[str, ResumePoint] = {}

    async def read(self, client: Client) -> None:
        selector, lots = self.lots.choice(SELECTORS), self.lots
        options: dict[str, Any] = {
            "conflate_ms": lots.choice((0, 100, 500)),
            "on_gap": lots.choice(("oldest", "snapshot")),
        }
        if selector in self.stands and lots.random() < 0.5:
            options["after"] = self.stands[selector]
        subscription, left = client.subscribe(selector, **options), lots.randint(1, 300)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                async for _ in subscription.items():
                    self.stands[selector], left = subscription.resume_point, left - 1
                    if left == 0:
                        break
        await subscription.close()

    async def run(self) -> None:
        left = READINGS
        while left > 0:
            async with Client(self.address, protocol="binary") as client:
                for _ in range(self.lots.randint(1, 6)):
                    left -= 1
                    await self.read(client)


async def publish_all(address: str) -> None:
    """Until it is cancelled."""
    number = 0
    async with Client(f"ws://{address}") as client:
        while True:
            number += 1
            await client.publish(SUBJECTS[number % 4], {"n": number})


async def take_back(address: str, token: str, lots: random.Random) -> None:
    """What a subject keeps, now and then, until it is cancelled."""
    while True:
        await asyncio.sleep(lots.random() * 3)
        subject = urllib.parse.quote(lots.choice(SUBJECTS))
        request = urllib.request.Request(
            f"http://{address}/v1/purge?subject={subject}", method="POST", headers={"Authorization": f"Bearer {token}"}
        )
        (await asyncio.to_thread(urllib.request.urlopen, request, timeout=30)).close()


async def main(clients: str, mqtt: str, admin: str, token: str, seed: int) -> None:
    lots = [random.Random(seed * 100 + number) for number in range(DEVICES + READERS + 1)]
    others = [asyncio.create_task(publish_all(clients)), asyncio.create_task(take_back(admin, token, lots.pop()))]
    devices: list[Awaitable[None]] = [Device(mqtt, number, lots.pop()).run() for number in range(DEVICES)]
    await asyncio.gather(*devices, *(Reader(clients, lots.pop()).run() for _ in range(READERS)))
    for other in others:
        other.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await other


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])))
