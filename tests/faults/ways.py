"""Ways to read a subscription until the test ends: straight through, coming back from a file, and too slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from godwit.client import Client, PositionFile, Settings
from godwit.client.codec.encodings import EncodingName
from tests.faults.ledger import Ledger, Reader

QUICK = Settings(reconnect_first_ms=4, reconnect_max_ms=40)
NARROW = Settings(reconnect_first_ms=4, reconnect_max_ms=40, items_max=8)

Way: TypeAlias = Callable[["Place"], Awaitable[None]]


@dataclass
class Place:
    """One reader of the scene: what it listens to, by which wire, and what it has been given."""

    reader: Reader
    url: str
    selector: str
    encoding: EncodingName
    joined: asyncio.Event


async def follow(place: Place, conflate_ms: int | None = None) -> None:
    """One client, one subscription, for as long as it lasts."""
    async with Client(place.url, encoding=place.encoding, settings=QUICK) as client:
        subscription = client.subscribe(place.selector, conflate_ms=conflate_ms)
        await subscription.joined()
        place.joined.set()
        async for item in subscription.items():
            place.reader.take(item)


def come_back(file: Path, each: int) -> Way:
    """Read some messages, save the position, end, and begin again with a client that knows only the file."""

    async def read(place: Place) -> None:
        while True:
            async with Client(
                place.url, encoding=place.encoding, settings=NARROW, positions=PositionFile(file)
            ) as client:
                subscription = client.subscribe(place.selector)
                await subscription.joined()
                place.joined.set()
                items = subscription.items()
                for _ in range(each):
                    place.reader.take(await anext(items))

    return read


def lag(ledger: Ledger, done: asyncio.Event) -> Way:
    """Read one item for every six messages published, until nothing more is published."""

    async def read(place: Place) -> None:
        async with Client(place.url, encoding=place.encoding, settings=NARROW) as client:
            subscription = client.subscribe(place.selector)
            await subscription.joined()
            place.joined.set()
            taken = 0
            async for item in subscription.items():
                place.reader.take(item)
                taken += 1
                while ledger.total < 6 * taken and not done.is_set():
                    await ledger.wait()

    return read


def conflated(window_ms: int) -> Way:
    return lambda place: follow(place, window_ms)
