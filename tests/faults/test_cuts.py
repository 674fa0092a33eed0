"""Clients that are cut at random under load miss nothing and repeat nothing.

Publishers and all kinds of subscribers work through a proxy that breaks connections inside frames, handshakes and
acknowledgements. At the end the ledger of acknowledged publishes is compared with what each subscriber was given.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from godwit.client import Client
from godwit.client.codec.encodings import EncodingName
from godwit.subject import matches
from tests.faults.cutting_proxy import CuttingProxy
from tests.faults.ledger import Ledger, Reader
from tests.faults.ways import QUICK, Place, Way, come_back, conflated, follow, lag
from tests.node_process import running_node

SUBJECTS = [f"/load/{number}" for number in range(8)]
MEAN_BYTES = 60_000  # of a connection's life
PADDINGS = [*[0] * 300, *[3_000] * 10, 30_000]  # most messages are small; a few fill many packets
LOG_MESSAGES_MAX = 300
AHEAD_MAX = 200  # publishers wait for the readers, so that no log moves past one that is not slow on purpose
DEADLINE_S = 120


class Scene:
    """Everybody who takes part, and the ledger between them."""

    def __init__(self, url: str, tmp_path: Path) -> None:
        self.url = url
        self.ledger = Ledger()
        self.done = asyncio.Event()
        self.places: dict[asyncio.Task[None], Place] = {}
        self._ways: list[tuple[str, str, EncodingName, Way]] = [
            ("subject json", SUBJECTS[0], "json", follow),
            ("subject binary", SUBJECTS[0], "binary", follow),
            ("pattern json", "/load/*", "json", follow),
            ("pattern binary", "/**", "binary", follow),
            ("conflated subject", SUBJECTS[1], "json", conflated(100)),
            ("conflated pattern", "/load/**", "binary", conflated(100)),
            ("saved subject", SUBJECTS[2], "binary", come_back(tmp_path / "subject.json", 40)),
            ("saved pattern", "/load/*", "json", come_back(tmp_path / "pattern.json", 300)),
            ("slow pattern", "/load/*", "binary", lag(self.ledger, self.done)),
        ]

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Start every reader; returns when all their joins are complete."""
        for name, selector, encoding, way in self._ways:
            reader = Reader(name, self.ledger, name.startswith("conflated"))
            place = Place(reader, self.url, selector, encoding, asyncio.Event())
            self.places[group.create_task(_run(way, place))] = place
        for place in self.places.values():
            await place.joined.wait()

    async def publish(self, client: Client, name: str, random: Random, proxy: CuttingProxy, cuts: int) -> None:
        count = 0
        while proxy.cuts < cuts:
            await self._let_readers_keep_up()
            subject, content = random.choice(SUBJECTS), [name, count, "x" * random.choice(PADDINGS)]
            await self.ledger.write(subject, content, await client.publish(subject, content))
            count += 1

    async def end(self) -> None:
        """Nothing more is published: wait until everybody has come to the end, then stop them."""
        self.done.set()
        await self.ledger.notify()
        for place in self.places.values():
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await place.reader.reach(self._heads(place))
            except TimeoutError:
                pytest.fail(f"{place.reader.name} stays at {place.reader.stands}, wanted {self._heads(place)}")
        for task in self.places:
            task.cancel()

    def check(self) -> None:
        self.ledger.check()
        for place in self.places.values():
            place.reader.check(self._heads(place))
            if not place.reader.name.startswith("slow"):
                gaps = place.reader.gaps
                assert not gaps, f"{place.reader.name} received {len(gaps)} gaps without a cause: {gaps[:3]}"

    def _heads(self, place: Place) -> dict[str, int]:
        return {subject: head for subject, head in self.ledger.heads().items() if matches(place.selector, subject)}

    async def _let_readers_keep_up(self) -> None:
        for place in self.places.values():
            # The conflated too: while one is away, a log may move past where it stood, which is a gap that the test made itself.
            if not place.reader.name.startswith("slow"):
                while sum(self._heads(place).values()) - place.reader.progress > AHEAD_MAX:
                    place.reader.moved.clear()
                    await place.reader.moved.wait()


async def _run(way: Way, place: Place) -> None:
    await way(place)


async def be_cut(port: int, random: Random, cuts: int, tmp_path: Path) -> str:
    """Play the whole scene; returns a line that describes what happened."""
    async with CuttingProxy(random, ("127.0.0.1", port), MEAN_BYTES) as proxy:
        scene = Scene(proxy.url, tmp_path)
        async with asyncio.TaskGroup() as group:
            await scene.begin(group)
            async with (
                Client(proxy.url, settings=QUICK) as one,
                Client(proxy.url, encoding="binary", settings=QUICK) as other,
                asyncio.TaskGroup() as publishers,
            ):
                for number in range(6):
                    client, lots = (one, other)[number % 2], Random(random.random())
                    publishers.create_task(scene.publish(client, f"publisher {number}", lots, proxy, cuts))
            proxy.calm()
            await scene.end()
        scene.check()
        slow = next(place.reader for place in scene.places.values() if place.reader.name.startswith("slow"))
        ledger = scene.ledger
        return (
            f"{proxy.cuts} cuts, {ledger.total} messages, {ledger.repeats} publishes repeated; "
            f"the slow client received {len(slow.gaps)} gaps, {slow.missed} messages"
        )


@pytest.mark.parametrize("cuts", [100, pytest.param(1_000, marks=pytest.mark.long)])
async def test_cut_at_random_nothing_is_missed_and_nothing_repeated(
    driver: str, cuts: int, random: Random, tmp_path: Path
) -> None:
    settings = {"node.driver": driver, "node.shards": 3, "limits.log_messages_max": LOG_MESSAGES_MAX}
    async with asyncio.timeout(DEADLINE_S + cuts), running_node(settings) as node:
        print(await be_cut(node.port, random, cuts, tmp_path))
        assert node.process.returncode is None
