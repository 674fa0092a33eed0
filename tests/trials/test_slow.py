"""Slow readers of every kind of subscription, with tiny buffers, on two shards: each advances, and receives what was published.

`TEST_TRIAL_S=60` makes it longer or shorter; `TEST_SEED=7` repeats its choices.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.faults.nursery import kill, open_nursery
from tests.mqtt.packets import V3, V5
from tests.raw_client import raw_client
from tests.trials.slow import History
from tests.trials.slow_client import SlowReader
from tests.trials.slow_device import GAPS, SlowDevice

TRIAL_S = min(float(os.environ.get("TEST_TRIAL_S", "60")), 600)
SETTLE_S = 60.0
"""What they are behind must become less within this time, however long all of it takes."""
SUBJECTS = 40
CONTENT = "x" * 3_000
"""Whole, conflated as asked for, and conflated by the node where they are slow."""
SELECTORS: list[tuple[str, dict[str, Any]]] = [
    ("/fast/0", {}),
    ("/fast/**", {}),
    ("/fast/0", {"conflate_ms": 100}),
    ("/fast/**", {"conflate_ms": 200}),
    ("/slow/0", {}),
    ("/slow/**", {}),
]
KINDS = ("websocket", "binary", "sse", "many", "poll")
TOPICS = ("fast/0", "fast/#", "slow/0", "slow/#")
Readers = list[SlowReader | SlowDevice]


class Publisher:
    """Numbers on all subjects in turn, as JSON of 3 kB."""

    def __init__(self, url: str, history: History) -> None:
        self.url, self.history, self.count, self.is_done = url, history, 0, False

    async def run(self) -> None:
        async with raw_client(self.url) as client:
            while not self.is_done:
                self.count += 1
                where = self.count // 2 % SUBJECTS if self.count % 3 else 0
                subject = f"/{'slow' if self.count % 2 else 'fast'}/{where}"
                command = {"id": self.count, "publish": subject, "content": {"n": self.count, "x": CONTENT}}
                answer = await client.ask(command)
                self.history.write(subject, answer["at"], self.count)
                await asyncio.sleep(0.004)  # some 200 a second: more than a slow reader takes


def find_behind(readers: Readers) -> dict[str, int]:
    counts = {f"{one.name} {place}": one.count_behind() for place, one in enumerate(readers)}
    return {name: count for name, count in counts.items() if count}


def open_readers(client: tuple[str, int], mqtt: tuple[str, int], history: History, random: Random) -> Readers:
    readers: Readers = [
        SlowReader(client, kind, selector, options, history, Random(random.random()))
        for selector, options in SELECTORS
        for kind in KINDS
        for _ in range(2)
        if kind != "poll" or not options  # a poll is not conflated
    ]
    for qos in (0, 1, 2):
        for topic in TOPICS:
            version = random.choice((V3, V5))
            name, filters = f"mqtt-{qos}-{version}-{topic[:5]}{len(readers)}", (GAPS, topic)
            one = Random(random.random())
            readers.append(SlowDevice(name, mqtt, version, one, qos, filters, history=history))
    return readers


async def settle(readers: Readers, history: History) -> None:
    """Until every reader is at the end of what it listens to."""
    least, loop = sys.maxsize, asyncio.get_running_loop()
    behind: dict[str, int] = {}
    try:
        async with asyncio.timeout(SETTLE_S) as limit:
            while behind := find_behind(readers):
                if sum(behind.values()) < least:
                    least = sum(behind.values())
                    limit.reschedule(loop.time() + SETTLE_S)
                history.moved.clear()
                await history.moved.wait()
    except TimeoutError:
        raise AssertionError(f"these stopped before the end, so many messages behind: {behind}") from None


@pytest.mark.long
async def test_slow_consumers_of_every_kind_advance_and_get_what_was_published(tmp_path: Path, random: Random) -> None:
    config = tmp_path / "node.toml"
    config.write_text('[patterns."/slow/**"]\nconflate_when_slow = true\n')
    settings = {
        "node.shards": 2,
        "limits.log_messages_max": 40,
        "limits.log_age_ms_max": 3_600_000,  # longer than the trial: what is missing was overrun, and did not expire
        "monitoring.push": "false",
    }
    async with open_nursery() as nursery, asyncio.TaskGroup() as group:
        node = await nursery.start(settings, ("--config", str(config)))
        history, mqtt = History(), node.mqtt
        readers = open_readers((node.host, node.port), mqtt, history, random)
        tasks = [group.create_task(one.run()) for one in readers]
        publisher = Publisher(f"ws://{node.host}:{node.port}", history)
        busy = group.create_task(publisher.run())
        await asyncio.sleep(TRIAL_S)
        publisher.is_done = True
        await busy  # what the node has is what the history has
        for reader in readers:
            reader.is_slow = False
        try:
            await settle(readers, history)
        finally:
            for task in tasks:
                task.cancel()
            kill(node)
    faults = [fault for reader in readers for fault in reader.check()]
    assert not faults, "\n".join(faults[:20])
