"""`godwit tail`, stopped and continued with the command that it prints: every message is printed once, also right after the last one."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sys

import pytest

from godwit import testing
from godwit.children import follow_parent
from godwit.client import Client


async def start(*words: str, ignoring: signal.Signals | None = None) -> asyncio.subprocess.Process:
    follow = follow_parent()

    def prepare() -> None:
        follow()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under `nohup`
        if ignoring is not None:
            signal.signal(ignoring, signal.SIG_IGN)

    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "godwit", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=prepare,
    )


async def test_a_tail_that_is_continued_at_once_prints_each_message_once() -> None:
    """The resume token is up to a second old, so that the command names what came after it; other subjects resume by the token."""
    async with asyncio.timeout(60), testing.node() as node, Client(node.url) as client:
        first = await start("tail", "/rooms/**", "--server", node.url)
        assert first.stdout is not None and first.stderr is not None
        assert b"subscribed" in await first.stderr.readline()
        await client.publish("/rooms/a", "one")
        assert b"one" in await first.stdout.readline()
        first.send_signal(signal.SIGINT)
        _, errors = await first.communicate()
        for subject, text in (("/rooms/a", "two"), ("/rooms/b", "three"), ("/rooms/b", "four")):
            await client.publish(subject, text)
        command = re.search(r"continue from here with: godwit (.*)", errors.decode())
        assert command is not None
        second = await start(*shlex.split(command[1]), "--count", "3")
        lines, _ = await second.communicate()
        assert [line.split()[-1] for line in lines.decode().splitlines()] == ["two", "three", "four"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_tail_that_is_ended_by_a_signal_says_how_to_continue(number: int) -> None:
    async with asyncio.timeout(60), testing.node() as node:
        tail = await start("tail", "/rooms/a", "--server", node.url)
        assert tail.stderr is not None
        assert b"subscribed" in await tail.stderr.readline()
        tail.send_signal(number)
        _, errors = await tail.communicate()
        assert b"continue from here with: godwit tail" in errors and tail.returncode == 0


async def test_a_tail_that_ignores_a_hangup_goes_on() -> None:
    """As under `nohup`."""
    async with asyncio.timeout(60), testing.node() as node, Client(node.url) as client:
        tail = await start("tail", "/rooms/a", "--server", node.url, ignoring=signal.SIGHUP)
        assert tail.stdout is not None and tail.stderr is not None
        assert b"subscribed" in await tail.stderr.readline()
        tail.send_signal(signal.SIGHUP)
        await client.publish("/rooms/a", "one")
        assert b"one" in await tail.stdout.readline()
        tail.terminate()
        await tail.communicate()
