"""A node that is killed every few seconds, with publishers that wait for the disk, MQTT sessions and groups with slow members at QoS 1
and 2, and subscribers that resume. An independent ledger knows what each should have: QoS 2 once and in order, QoS 1 at least once,
acknowledged messages for good, and what a resumed subscriber sees follows without a repeat or an unexplained gap.

`TEST_TRIAL_S=60` makes it longer or shorter; `TEST_SEED=7` repeats its choices.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import urlopen

import pytest

from tests.faults.nursery import Born, kill, open_nursery
from tests.mqtt.packets import V3, V5
from tests.trials.following import Follower, publish_to_disk
from tests.trials.mqtt import Device

TRIAL_S = float(os.environ.get("TEST_TRIAL_S", "300"))
KILL_EVERY_S = 5.0
SETTLE_S = 120.0
"""What is awaited must become less within this time, however long all of it takes."""
TOPICS = ("q/a", "q/b", "q/c")
PATTERNS = '[patterns."/q/**"]\nmqtt_ack = "disk"\nvisible = "journaled"\n[patterns."/v/**"]\nvisible = "journaled"\n'
Got = list[tuple[str, bytes]]


class Trial:
    """Everybody who takes part."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.client, self.mqtt = free_address(), free_address()
        self.publishers = [self.device(f"publisher-{number}", 1 + number % 2) for number in range(4)]
        self.sessions = [
            self.device(f"session-{n}", 1 + n % 2, filters=("q/#",) if n % 3 else TOPICS) for n in range(8)
        ]
        for session in self.sessions[4:]:
            session.slowness_s = 0.2
        self.groups = {
            qos: [self.device(f"member-{qos}-{n}", qos, filters=(f"$share/g{qos}/q/#",)) for n in range(3)]
            for qos in (1, 2)
        }
        for qos in (1, 2):
            self.groups[qos][0].slowness_s, self.groups[qos][0].receive_max = 1.0, 2
        url = f"ws://{self.client[0]}:{self.client[1]}"
        self.url = url
        self.followers = [Follower(url, selector) for selector in ("/v/a", "/v/b", "/v/**", "/v/**")]
        self.acknowledged: dict[str, list[int]] = {"/v/a": [], "/v/b": []}
        self.counts = Counter[str]()
        self.moved = asyncio.Event()
        for one in (*self.subscribers, *self.followers):
            one.moved = self.moved

    def device(self, name: str, qos: int, filters: tuple[str, ...] = ()) -> Device:
        version = V5 if self.random.random() < 0.5 else V3
        return Device(name, self.mqtt, version, Random(self.random.random()), qos, filters)

    @property
    def subscribers(self) -> list[Device]:
        return [*self.sessions, *self.groups[1], *self.groups[2]]

    async def publish(self, device: Device) -> None:
        """At most so many a second, so that the trial is about the node and not about this program."""
        while True:
            topic = self.random.choice(TOPICS)
            self.counts[device.name] += 1
            await device.publish(topic, f"{device.name}:{self.counts[device.name]}".encode())
            await asyncio.sleep(0.02)

    async def check_end(self) -> None:
        """Everything that was settled is kept and has arrived, or the failure says what has not."""
        kept = [(topic, payload) for topic in TOPICS for payload in kept_of(self.client, "/" + topic)]
        self._check_kept(kept)
        await self._await_all(kept)
        for session in self.sessions:
            self._check_session(session, kept)
            if session.qos == 2:
                self._check_once(session.name, session.got, kept)
        got = [one for member in self.groups[2] for one in member.got]
        self._check_once("the group at QoS 2", got, kept)
        faults = [fault for one in (*self.publishers, *self.subscribers, *self.followers) for fault in one.faults]
        assert not faults, faults[:20]

    def _check_kept(self, kept: Got) -> None:
        counts = Counter(kept)
        for publisher in self.publishers:
            mine = [one for one in kept if one[1].startswith(publisher.name.encode() + b":")]
            assert set(mine) == set(publisher.settled), _difference(
                publisher.name, Counter(publisher.settled), Counter(mine)
            )
            if publisher.qos == 2:
                repeats = [one for one in mine if counts[one] > 1]
                assert not repeats, f"{publisher.name}: {repeats[:10]} became two messages"

    async def _await_all(self, kept: Got) -> None:
        awaited = [Awaited(session.name, kept, [session]) for session in self.sessions]
        awaited += [Awaited(f"group {qos}", kept, members) for qos, members in self.groups.items()]
        least, loop = len(kept) * len(awaited) + 1, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SETTLE_S) as limit:
                while count := sum(one.update() for one in awaited) or self._count_unfollowed():
                    if count < least:
                        least = count
                        limit.reschedule(loop.time() + SETTLE_S)
                    self.moved.clear()
                    await self.moved.wait()
        except TimeoutError:
            missing = {one.name: (len(one.missing), list(one.missing)[:5]) for one in awaited if one.missing}
            raise AssertionError(
                f"not everything arrived: {missing}, {self._count_unfollowed()} of followers"
            ) from None

    def _count_unfollowed(self) -> int:
        return sum(len(follower.missing(self.acknowledged)) for follower in self.followers)

    def _check_session(self, session: Device, kept: Got) -> None:
        for topic in TOPICS:
            mine = [payload for of, payload in kept if of == topic]
            got = [payload for of, payload in session.got if of == topic]
            assert list(dict.fromkeys(got)) == list(dict.fromkeys(mine)), f"{session.name}: {topic} is out of order"

    def _check_once(self, name: str, got: Got, kept: Got) -> None:
        """What was published at QoS 2 came once; the QoS of a message is the lower one of its two hops."""
        once = tuple(one.name.encode() + b":" for one in self.publishers if one.qos == 2)
        expected, counted = (Counter(one for one in ones if one[1].startswith(once)) for ones in (kept, got))
        assert counted == expected, _difference(name, expected, counted)


class Awaited:
    """What a session, or the members of a group, have not got yet. Each look costs as much as came since the last one."""

    def __init__(self, name: str, kept: Got, members: list[Device]) -> None:
        self.name, self.missing, self.members = name, set(kept), members
        self._seen = [0 for _ in members]

    def update(self) -> int:
        for place, member in enumerate(self.members):
            self.missing.difference_update(member.got[self._seen[place] :])
            self._seen[place] = len(member.got)
        return len(self.missing)


def _difference(name: str, expected: Counter[Any], got: Counter[Any]) -> str:
    return f"{name}: lost {list(expected - got)[:10]}, too often {list(got - expected)[:10]}"


def free_address() -> tuple[str, int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        host, port = held.getsockname()
        return str(host), int(port)


def kept_of(client: tuple[str, int], subject: str) -> list[bytes]:
    """Every message that the node has of a subject, page by page."""
    kept: list[bytes] = []
    asked = f"subject={subject}&last=1000000"
    while True:
        with urlopen(f"http://{client[0]}:{client[1]}/v1/messages?{asked}&limit=1000") as answer:
            page = json.load(answer)
            asked = f"subject={subject}&after={answer.headers['Godwit-Position']}"
        if not page:
            return kept
        kept += [event["text"].encode() for event in page if "message" in event]


@pytest.mark.long
async def test_nothing_is_lost_or_repeated_when_the_node_is_killed_every_five_seconds(
    tmp_path: Path, random: Random
) -> None:
    trial = Trial(random)
    config = tmp_path / "node.toml"
    config.write_text(PATTERNS)
    settings = {
        "node.data_directory": tmp_path,
        "node.shards": 2,
        "client.address": ":".join(map(str, trial.client)),
        "mqtt.address": ":".join(map(str, trial.mqtt)),
        "journal.segment_bytes_max": 262_144,
        "limits.log_messages_max": 1_000_000,
        "limits.log_age_ms_max": 3_600_000,
        "monitoring.push": "false",
    }
    flags = ("--config", str(config))
    async with open_nursery() as nursery, asyncio.TaskGroup() as group:
        node: Born = await nursery.start(settings, flags)
        lasting = [group.create_task(one.run()) for one in (*trial.publishers, *trial.subscribers, *trial.followers)]
        while not all(one.is_known for one in trial.subscribers):
            trial.moved.clear()
            await trial.moved.wait()
        busy = [group.create_task(trial.publish(one)) for one in trial.publishers]
        busy += [group.create_task(publish_to_disk(trial.url, s, got)) for s, got in trial.acknowledged.items()]
        for _ in range(max(int(TRIAL_S / KILL_EVERY_S), 1)):
            await asyncio.sleep(KILL_EVERY_S * (0.5 + random.random()))
            kill(node)
            node = await nursery.start(settings, flags)
        for task in busy:
            task.cancel()
        async with asyncio.timeout(SETTLE_S):
            for publisher in trial.publishers:
                await publisher.settle()
        await trial.check_end()
        for task in lasting:
            task.cancel()
        kill(node)
