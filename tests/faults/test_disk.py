"""A node whose real disk fills up, or becomes read-only, under load: publishes with `ack=disk` are refused, others continue, an alert is
raised, no acknowledged message is lost, and the node recovers once there is space. Failed syncs and power cuts:
engine/tests/node/journal.rs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

from godwit.client import Client, Message
from godwit.codes import Code
from godwit.errors import CommandRefused
from godwit.model import Ack
from tests.faults.kept import read_all
from tests.faults.small_disk import SmallDisk, small_disk
from tests.faults.ways import QUICK
from tests.node_process import NodeProcess, running_node

DEADLINE_S = 120
SUBJECT = "/disk/full"
PADDING = "x" * 16_000
LEFT_BYTES = 65_536
DISK_BYTES = 8 << 20
FILLER_BYTES = 4 << 20


def _settings(disk: SmallDisk) -> dict[str, object]:
    return {
        "node.data_directory": disk.path,
        "node.shards": 1,
        "journal.segment_bytes_max": 262_144,
        "limits.log_messages_max": 100_000,
        "limits.log_age_ms_max": 3_600_000,
        "monitoring.push": "false",
    }


async def test_a_full_disk_refuses_who_needs_it_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        filler = disk.seen / "filler"
        filler.write_bytes(bytes(FILLER_BYTES))

        async def empty() -> None:
            filler.unlink()

        await _fail_and_recover(disk, _go_on, lambda: _is_full(disk), empty)


async def test_a_read_only_folder_refuses_who_needs_it_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), small_disk(tmp_path / "disk", 64 << 20) as disk:
        folder = disk.path / "journal" / "messages"

        async def close() -> None:
            # Nobody can make a file there any more; the one that is open can still be written until it is sealed. It becomes read-only
            # elsewhere: in its place a file that the node makes meanwhile would be in the way.
            aside = tmp_path / "aside"
            aside.mkdir()
            await disk.run("mount", "--bind", folder, aside)
            await disk.run("mount", "-o", "remount,bind,ro", aside)
            await disk.run("mount", "--move", aside, folder)

        await _fail_and_recover(disk, close, lambda: True, lambda: disk.run("umount", folder))


async def test_a_node_starts_on_a_full_disk_and_serves_who_does_not_need_it(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), small_disk(tmp_path / "disk", DISK_BYTES) as disk:
        filler = disk.seen / "filler"
        places: dict[str, int] = {}
        async with (
            running_node(_settings(disk), before=disk.before) as node,
            Client(node.url, settings=QUICK) as client,
        ):
            first = await client.publish(SUBJECT, {"n": 0}, ack=Ack.DISK)
            await node.kill()
        await disk.run("sh", "-c", f"cat /dev/zero > '{disk.path}/filler' || true")
        async with (
            running_node(_settings(disk), before=disk.before) as node,
            Client(node.url, settings=QUICK) as client,
        ):
            assert [at for at, _ in await read_all(node, SUBJECT)] == [str(first.position)]
            while await _publish(client, places, Ack.DISK):
                pass  # what the last run had left room for
            assert await _publish(client, places, Ack.CACHED)
            filler.unlink()
            while not await _publish(client, places, Ack.DISK):
                pass
            await node.kill()
        async with running_node(_settings(disk), before=disk.before) as node:
            assert [at for at, _ in await read_all(node, SUBJECT)] == [str(first.position), *places]


async def _go_on() -> None:
    """It fills by itself."""


def _is_full(disk: SmallDisk) -> bool:
    """Nothing is left, and nothing on its way that gives some back: a segment is there twice while it is sealed."""
    names = [path.name for path in (disk.seen / "journal" / "messages").iterdir()]
    opened = {name.removesuffix(".arrows") for name in names if name.endswith(".arrows")}
    is_sealing = any(name.endswith(".new") or ("-" in name and name.split("-")[0] in opened) for name in names)
    found = os.statvfs(disk.seen)
    return not is_sealing and found.f_bavail * found.f_frsize < LEFT_BYTES


async def _fail_and_recover(
    disk: SmallDisk,
    fail: Callable[[], Awaitable[None]],
    has_failed: Callable[[], bool],
    mend: Callable[[], Awaitable[None]],
) -> None:
    places: dict[str, int] = {}
    heard: list[int] = []
    async with running_node(_settings(disk), before=disk.before) as node:
        async with Client(node.url, settings=QUICK) as reader, Client(node.url, settings=QUICK) as client:
            subscription = reader.subscribe(SUBJECT)
            await subscription.joined()
            for _ in range(20):
                await _publish(client, places, Ack.DISK)
            await fail()
            while await _publish(client, places, Ack.DISK) or not has_failed():
                pass
            # The shard refuses first; the control plane hears of it by a report of its own.
            while not (condition := (await _read_health(node)).get("journal", "")):
                pass
            assert condition.startswith("failing: ")  # of the stream whose rows found no room first
            assert await _read_figure(node, "godwit_journal_failing") == 1
            for _ in range(20):
                before = len(places)
                assert not await _publish(client, places, Ack.DISK) and len(places) == before
                assert await _publish(client, places, Ack.CACHED), "who does not need the disk is not held up"
            await mend()
            while not await _publish(client, places, Ack.DISK):
                pass
            while "journal" in await _read_health(node):
                pass
            assert await _read_figure(node, "godwit_journal_failing") == 0
            assert await _read_figure(node, "godwit_journal_failures_total") >= 1
            async for item in subscription.items():
                if isinstance(item, Message):
                    heard.append(item.json()["n"])
                if len(heard) == len(places):
                    break
        await node.kill()
    async with running_node(_settings(disk), before=disk.before) as node:
        kept = await read_all(node, SUBJECT)
        await node.kill()
    # The last was on the disk, and with it all that only memory had while the disk failed.
    in_order = sorted(places.items(), key=lambda place: place[1])
    assert [(at, content["n"]) for at, content in kept] == in_order
    assert heard == [number for _, number in in_order]


async def _publish(client: Client, places: dict[str, int], ack: Ack) -> bool:
    """Whether it was numbered; a number that was not is the next one's."""
    number = len(places) + 1
    try:
        published = await client.publish(SUBJECT, {"n": number, "padding": PADDING}, ack=ack)
    except CommandRefused as refused:
        assert refused.code == Code.DISK_FAILING and refused.retry
        return False
    assert published.position is not None and published.position.sequence == number
    places[str(published.position)] = number
    return True


async def _read_health(node: NodeProcess) -> dict[str, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{node.admin_url}/health/ready") as answer:
        assert answer.status == 200, "it serves"
        condition: dict[str, str] = await answer.json()
        return condition


async def _read_figure(node: NodeProcess, name: str) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"{node.admin_url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)
