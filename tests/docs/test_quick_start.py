"""The quick start as a reader follows it: its commands unchanged (except ports), and the output that it shows.

By the checkout's own command always; by the wheel in a fresh environment as a long test.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from pathlib import Path

import pytest

from godwit.children import follow_parent
from godwit.verify.brokers.broker import find_port
from tests.docs.test_notifications_tutorial import hear

DEADLINE_S = 120
POSITION = r"\d+\.\d+"


class Reader:
    """Shells in one folder, in which `godwit` is found first in `bin`."""

    def __init__(self, page: str, bin_folder: Path, folder: Path) -> None:
        commands = [line.strip() for line in page.splitlines() if line.startswith("    godwit ")]
        self.serve, self.tail, *self.publishes = commands
        self.port, self.folder = find_port(), folder
        own = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "GODWIT_SERVER": f"ws://127.0.0.1:{self.port}"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GODWIT_")}
        self.environment = kept | own | {"PYTHONUNBUFFERED": "1"}
        self.open: list[Process] = []

    async def start(self, command: str) -> Process:
        """A command that runs until it is stopped."""
        process = await asyncio.create_subprocess_shell(
            f"exec {command}",
            cwd=self.folder,
            stdout=PIPE,
            stderr=STDOUT,
            env=self.environment,
            preexec_fn=follow_parent(),
        )
        self.open.append(process)
        return process

    async def start_node(self) -> Process:
        ports = f"--client 127.0.0.1:{self.port} --mqtt 127.0.0.1:0 --admin 127.0.0.1:0"
        node = await self.start(f"{self.serve} {ports}")
        await hear(node, "listening client=")
        return node

    async def publish(self, command: str) -> str:
        process = await self.start(command)
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()
        return said.decode()

    async def end(self) -> None:
        for process in self.open:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        for process in self.open:
            await process.wait()


async def follow(root: Path, bin_folder: Path, folder: Path) -> None:
    reader = Reader((root / "docs/quick-start.md").read_text("utf-8"), bin_folder, folder)
    first, second, third, fourth = reader.publishes
    try:
        async with asyncio.timeout(DEADLINE_S):
            node = await reader.start_node()
            tail = await reader.start(reader.tail)
            await hear(tail, "godwit: subscribed to /rooms/** (snapshot)")
            published = await reader.publish(first)
            assert re.fullmatch(rf"/rooms/kitchen {POSITION}\n", published), published
            assert published.strip() in await hear(tail, '{"celsius": 21.5}')
            tail.send_signal(signal.SIGINT)
            said = await hear(tail, "godwit: continue from here with: ")
            await reader.publish(second)
            await reader.publish(third)
            tail = await reader.start(said.rpartition("continue from here with: ")[2].strip())
            said = await hear(tail, '{"celsius": 19}')
            assert re.findall(r"\{.*\}", said) == ['{"celsius": 22}', '{"celsius": 19}'], said
            node.send_signal(signal.SIGINT)
            assert await node.wait() == 0
            await reader.start_node()
            await hear(tail, "subscribed to /rooms/** (recovered)")
            published = await reader.publish(fourth)
            assert published.strip() in await hear(tail, '{"celsius": 23}')
    finally:
        await reader.end()


async def test_the_quick_start_does_what_it_says(root: Path, tmp_path: Path) -> None:
    await follow(root, Path(sys.executable).parent, tmp_path)


@pytest.mark.long
async def test_the_quick_start_does_what_it_says_by_wheel(root: Path, installed: Path, tmp_path: Path) -> None:
    await follow(root, installed / "bin", tmp_path)
