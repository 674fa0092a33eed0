"""Case 68 on a whole node: its disk is full. Publishes with `ack=disk` are refused, others continue, clients and operators are notified,
and messages that were acknowledged from the disk are there after a kill."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.hostile.peer import DEADLINE_S, Peer, request
from tests.mqtt import packets
from tests.node_process import NodeProcess, running_node

DISK_FAILING = 4119


@asynccontextmanager
async def journaling(directory: Path, log: int | None = None) -> AsyncIterator[tuple[NodeProcess, Peer, Peer]]:
    """A node that keeps a journal, and two clients of its: one listens to /a."""
    settings: dict[str, object] = {
        "node.data_directory": directory,
        "node.shards": 1,
        "journal.sync_interval_ms": 20,
        "limits.log_messages_max": 1_000,
    }
    async with (
        running_node(settings, log=log) as node,
        Peer.live(node.host, node.port) as publisher,
        Peer.live(node.host, node.port) as listener,
    ):
        assert (await listener.ask({"id": 1, "subscribe": "/a"}))["ok"] == "subscribed"
        yield node, publisher, listener


def limit_files(node: NodeProcess, size_bytes: int) -> None:
    """No file of the node's may grow past this: to it the disk is full."""
    _, hard = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (size_bytes, hard))


async def publish(peer: Peer, content: int, ack: str) -> dict[str, Any]:
    return await peer.ask({"id": content, "publish": "/a", "content": content, "ack": ack})


async def read(node: NodeProcess, path: str) -> str:
    def ask() -> str:
        with urlopen(f"{node.admin_url}{path}") as answer:
            return str(answer.read().decode())

    return await asyncio.to_thread(ask)


async def hear(peer: Peer, content: int) -> None:
    while (heard := await peer.hear()).get("content") != content:
        assert "close" not in heard


async def test_68_a_full_disk_refuses_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S * 2), journaling(tmp_path) as (node, publisher, listener):
        kept = await publish(publisher, 1, "disk")
        assert kept["ok"] == "published" and "ack" not in kept
        limit_files(node, 0)
        number = 2
        while (answer := await publish(publisher, number, "disk")).get("error") != DISK_FAILING:
            # The first publishes that meet it have positions already: their answer names the level that they reached.
            assert answer["ok"] == "published" and answer["ack"] == "cached", (
                "acknowledged from a disk that took nothing"
            )
            number += 1
        async with Peer.open(node.host, node.port) as rest:
            await rest.say(request("POST", "/v1/messages?subject=/a&ack=disk", body=b"x"))
            status, problem = await rest.answer()
            assert (status, json.loads(problem)["code"]) == (503, DISK_FAILING)
        assert (await publish(publisher, 1000, "cached"))["ok"] == "published"
        await hear(listener, 1000)
        host, _, port = node.mqtt.rpartition(":")
        await asyncio.to_thread(_is_served, (host, int(port)))
        assert json.loads(await read(node, "/health/ready"))["journal"].startswith("failing: ")
        assert "\ngodwit_journal_failing 1" in await read(node, "/metrics")
        limit_files(node, resource.RLIM_INFINITY)
        number = 2000
        while (answer := await publish(publisher, number, "disk")).get("error") == DISK_FAILING:
            number += 1
        while answer.get("ack") == "cached":
            number += 1
            answer = await publish(publisher, number, "disk")
        assert answer["ok"] == "published"
        await node.kill()
    check = [sys.executable, "-m", "godwit", "journal", "check", str(tmp_path)]
    checked = await asyncio.to_thread(subprocess.run, check, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    async with asyncio.timeout(DEADLINE_S), journaling(tmp_path) as (node, publisher, _):
        async with Peer.open(node.host, node.port) as rest:
            await rest.say(request("GET", "/v1/messages?subject=/a&last=1000&limit=1000"))
            contents = [lines_found.get("content") for lines_found in json.loads((await rest.answer())[1])]
        assert {1, number} <= set(contents), "acknowledged from the disk, and gone"


async def test_a_node_that_stops_while_its_disk_fails_says_what_is_not_on_it(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE_S * 2),
        journaling(tmp_path, log=subprocess.PIPE) as (node, publisher, _),
    ):
        assert "ack" not in await publish(publisher, 1, "disk")
        limit_files(node, 0)
        number = 2
        while (await publish(publisher, number, "disk")).get("error") != DISK_FAILING:
            number += 1
        await publish(publisher, 1000, "cached")
        assert await node.terminate() == 0
        assert node.process.stderr
        lines = (await node.process.stderr.read()).decode().splitlines()
    lines_found = [line for line in map(json.loads, lines) if line["event"] == "journal_incomplete"]
    assert [line["level"] for line in lines_found] == ["error"]
    assert lines_found[0]["rows_lost"]["messages"] >= number - 1  # the refused has no row


def _is_served(address: tuple[str, int]) -> None:
    with packets.Peer(address) as peer:
        peer.join(packets.connect(""))
        peer.send(packets.publish("b", b"1", 1, 7))
        peer.expect(packets.packet(0x40, b"\0\7"))
