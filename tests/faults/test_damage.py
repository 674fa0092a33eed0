"""A node with damaged journal segments: it never reports that no messages are missing if it cannot know."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from godwit.client import Client, Gap, Message
from godwit.model import Ack, GapReason
from tests.faults.ways import QUICK
from tests.node_process import running_node

DEADLINE_S = 60
SUBJECTS, ROUNDS = 3, 12


async def publish_all(url: str) -> list[Message]:
    """Three messages a round; those of a round share a batch of the journal, if the disk is as quick as that."""
    async with Client(url, settings=QUICK) as client:
        for number in range(ROUNDS):
            every = [client.publish(f"/s/{subject}", {"n": number}, ack=Ack.DISK) for subject in range(SUBJECTS)]
            await asyncio.gather(*every)
        subscription = client.subscribe("/s/0", last=ROUNDS)
        items = subscription.items()
        found: list[Message] = []
        while len(found) < ROUNDS:
            if isinstance(item := await anext(items), Message):
                found.append(item)
        return found


def damage(data: Path, what: bytes) -> int:
    """Flip a bit of every content that has these bytes, wherever a segment that is just being sealed has them; returns in how many."""
    count = 0
    for path in (data / "journal/messages").glob("*.arrow*"):
        content, at = bytearray(path.read_bytes()), -1
        while (at := content.find(what, at + 1)) >= 0:
            content[at + len(what) - 1] ^= 1
            count += 1
        path.write_bytes(content)
    return count


@pytest.mark.parametrize("round_no", [4, ROUNDS - 1], ids=["between others", "at the end"])
async def test_a_subject_says_how_many_it_lost_or_that_it_cannot_know(tmp_path: Path, round_no: int) -> None:
    settings: dict[str, object] = {"node.data_directory": tmp_path, "node.shards": 1}
    async with asyncio.timeout(DEADLINE_S):
        async with running_node(settings) as node:
            published = await publish_all(node.url)
            await node.kill()
        count = damage(tmp_path, json.dumps({"n": round_no}, separators=(",", ":")).encode())
        assert count in {SUBJECTS, 2 * SUBJECTS}  # twice while its segment is being sealed
        async with running_node(settings) as node, Client(node.url, settings=QUICK) as client:
            items = client.subscribe("/s/0", after=published[0].position, on_gap="oldest").items()
            numbers, missed = [0], list[tuple[str, int | None]]()
            is_last = round_no == ROUNDS - 1
            left = [number for number in range(ROUNDS) if number != round_no]
            while numbers != left or not missed:
                item = await anext(items)
                if isinstance(item, Message):
                    numbers.append(item.json()["n"])
                elif isinstance(item, Gap):
                    missed.append((item.reason, item.missed))
        assert missed == [(GapReason.EPOCH, None) if is_last else (GapReason.EXPIRED, 1)]
