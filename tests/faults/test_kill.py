"""A node with a data directory that is killed at random moments under load, and started again with its journal.

No message that was acknowledged from the disk is lost, none arrives twice, no position is used twice, and a reader that resumes
receives exactly the rest, or a gap.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from godwit.client import AnswerLost, Client, Gap, GapReason, Item, Message
from godwit.model import Ack
from tests.faults.cutting_proxy import CuttingProxy
from tests.faults.kept import read_all
from tests.faults.nursery import kill, open_nursery
from tests.faults.ways import QUICK

DEADLINE_S = 120
LONG_DEADLINE_S = 1_800
SUBJECTS = ("/kill/a", "/kill/b", "/kill/c")
WORKERS = 6


class Scene:
    """What was acknowledged, by what, and where."""

    def __init__(self) -> None:
        self.positions: dict[tuple[str, str], int] = {}  # (subject, position) → number
        self.numbers: dict[int, tuple[str, str]] = {}
        self.next = 0
        self.grown = asyncio.Event()

    def acknowledge(self, subject: str, number: int, position: str) -> None:
        place = (subject, position)
        assert self.positions.setdefault(place, number) == number, f"{place} was given twice"
        assert self.numbers.setdefault(number, place) == place, f"{number} has two positions"
        self.grown.set()

    async def grow(self, count: int) -> None:
        """Until so many more are acknowledged."""
        end = len(self.numbers) + count
        while len(self.numbers) < end:
            self.grown.clear()
            await self.grown.wait()


def _settings(directory: Path) -> dict[str, object]:
    return {
        "node.data_directory": directory,
        "node.shards": 2,
        "journal.segment_bytes_max": 262_144,
        "journal.sync_interval_ms": 20,
        "limits.log_messages_max": 1_000_000,
        "limits.log_age_ms_max": 3_600_000,
        "monitoring.push": "false",
    }


async def test_nothing_acknowledged_from_the_disk_is_lost_or_repeated_when_a_node_is_killed(
    tmp_path: Path, random: Random
) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await _kill_and_check(tmp_path, random, kills=10)


@pytest.mark.long
async def test_the_same_after_two_hundred_kills(tmp_path: Path, random: Random) -> None:
    async with asyncio.timeout(LONG_DEADLINE_S):
        await _kill_and_check(tmp_path, random, kills=200)


async def _kill_and_check(directory: Path, random: Random, kills: int) -> None:
    scene = Scene()
    settings = _settings(directory)
    async with open_nursery() as nursery:
        node = await nursery.start(settings)
        async with (
            CuttingProxy(random, (node.host, node.port), 0) as proxy,
            Client(proxy.url, settings=QUICK) as reader,
            Client(proxy.url, encoding="binary", settings=QUICK) as client,
        ):
            subscription = reader.subscribe(SUBJECTS[0])
            await subscription.joined()
            heard: list[Item] = []
            reading = asyncio.create_task(_listen(subscription.items(), heard))
            working = [asyncio.create_task(_publish(client, scene)) for _ in range(WORKERS)]
            for _ in range(kills):
                await scene.grow(random.randrange(1, 120))
                kill(node)
                node = await nursery.start(settings)
                proxy.redirect((node.host, node.port))
            await scene.grow(50)
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        kept = {subject: await read_all(node, subject) for subject in SUBJECTS}
        kill(node)
    _check_kept(scene, kept)
    _check_heard(scene, heard, dict(kept[SUBJECTS[0]]))


async def _publish(client: Client, scene: Scene) -> None:
    while True:
        number = scene.next = scene.next + 1
        subject = SUBJECTS[number % len(SUBJECTS)]
        try:
            published = await client.publish(subject, number, ack=Ack.DISK)
        except AnswerLost:
            continue
        assert published.ack is None and published.position is not None
        scene.acknowledge(subject, number, str(published.position))


async def _listen(items: AsyncIterator[Item], heard: list[Item]) -> None:
    async for item in items:
        heard.append(item)


def _check_kept(scene: Scene, kept: dict[str, list[tuple[str, int]]]) -> None:
    for subject, messages in kept.items():
        positions, numbers = Counter(at for at, _ in messages), Counter(number for _, number in messages)
        assert max(positions.values()) == 1 and max(numbers.values()) == 1, "a message is there twice"
        there = dict(messages)
        for (of, position), number in scene.positions.items():
            if of == subject:
                assert there.get(position) == number, f"{number}, acknowledged at {subject} {position}, is lost"


def _check_heard(scene: Scene, heard: list[Item], kept: dict[str, int]) -> None:
    """The reader got every message once, unless a gap said that it cannot be known."""
    numbers = Counter(item.json() for item in heard if isinstance(item, Message) and not item.is_snapshot)
    assert not numbers or max(numbers.values()) == 1, "a message came twice"
    gaps = [item for item in heard if isinstance(item, Gap)]
    assert all(gap.reason is GapReason.EPOCH for gap in gaps)
    if all(gap.missed == 0 for gap in gaps):
        got = [item.json() for item in heard if isinstance(item, Message)]
        in_order = list(kept.values())
        assert got == in_order[: len(got)], "every gap reported 0 missed messages"
