"""Restless clients, in the node's own environment: they subscribe repeatedly to the same subjects, from random positions.

    python restless.py SEED ws://HOST:PORT/v1/live ...

Each connection asks for many subscriptions, with and without ending the one before. It resumes from its own positions and
resume tokens, old ones too, and where there are several nodes those that another one gave. It ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import Awaitable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

SELECTORS = ("/restless/1", "/restless/2", "/restless/*", "/restless/**")
CLIENTS, SUBSCRIPTIONS, BURST = 6, 250, 10
PAUSES_S = (0.0, 0.0, 0.001, 0.01, 0.1)


class Client:
    """What one client knows of where it stood."""

    def __init__(self, urls: list[str], lots: random.Random) -> None:
        self.urls, self.lots = urls, lots
        self.places: dict[str, str] = {}

    async def read(self, socket: ClientConnection) -> None:
        async for text in socket:
            row = json.loads(text)
            for each in row if isinstance(row, list) else [row]:
                if "message" in each and "at" in each:
                    self.places[each["message"]] = each["at"]
                if "resume_token" in each:
                    self.places.setdefault("oldest", each["resume_token"])
                    self.places["resume_token"] = each["resume_token"]

    def draw(self) -> dict[str, Any]:
        """A subscription."""
        selector = self.lots.choice(SELECTORS)
        command: dict[str, Any] = {"id": 1, "subscribe": selector, "on_gap": self.lots.choice(("snapshot", "oldest"))}
        way = self.lots.choice(("after", "last", "resume_token", "oldest", "live", "plain"))
        if way == "after" and selector in self.places:
            command["after"] = self.places[selector]
        elif way in ("resume_token", "oldest") and way in self.places:
            command["since"] = self.places[way]
        elif way == "last":
            command["last"] = self.lots.randint(1, 200)
        elif way == "live":
            command["snapshot"] = False
        if self.lots.random() < 0.2:
            command["conflate_ms"] = 100
        return command

    async def run(self) -> None:
        left = SUBSCRIPTIONS
        while left > 0:
            async with connect(self.lots.choice(self.urls), max_size=None) as socket:
                reading = asyncio.create_task(self.read(socket))
                for _ in range(self.lots.randint(5, 60)):
                    command, left = self.draw(), left - 1
                    await socket.send(json.dumps(command))
                    if self.lots.random() < 0.3:
                        await socket.send(json.dumps({"id": 2, "unsubscribe": command["subscribe"]}))
                    if self.lots.random() < 0.7:
                        await asyncio.sleep(self.lots.choice(PAUSES_S))
                reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reading


async def publish(url: str) -> None:
    """Until it is cancelled."""
    number = 0
    async with connect(url) as socket:
        reading = asyncio.create_task(drain(socket))
        while not reading.done():
            number += 1
            command = {"publish": f"/restless/{number % 4}", "content": {"n": number}, "guaranteed": number % 7 > 0}
            await socket.send(json.dumps(command))
            if number % BURST == 0:
                await asyncio.sleep(0.005)


async def drain(socket: ClientConnection) -> None:
    async for _ in socket:
        pass


async def main(seed: int, *urls: str) -> None:
    publishing = [asyncio.create_task(publish(url)) for url in urls]
    clients: list[Awaitable[None]] = [Client([*urls], random.Random(seed + number)).run() for number in range(CLIENTS)]
    await asyncio.gather(*clients)
    for each in publishing:
        each.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
