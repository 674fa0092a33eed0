"""The README's table of protocols: each command is run unchanged (except for ports), and every subscriber receives what one publishes."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from godwit import testing
from tests.architecture.source import ROOT

DEADLINE_S = 60
PROGRAMS = ("curl", "mosquitto_sub", "mosquitto_pub")


def list_commands() -> list[str]:
    """The commands of the table, in its order."""
    text = (ROOT / "README.md").read_text("utf-8")
    table = text.partition("## Protocols")[2].partition("\n## ")[0]
    spans = re.findall(r"`([^`]+)`", "\n".join(line for line in table.splitlines() if line.startswith("| ")))
    return [span for span in spans if span.startswith(PROGRAMS)]


def fit(line: str, node: testing.RunningNode) -> list[str]:
    """For the node under test."""
    program, *words = shlex.split(line.replace("http://127.0.0.1:8800", f"http://{node.client}"))
    assert node.mqtt is not None
    door = ["-h", node.mqtt.host, "-p", str(node.mqtt.port)] if program.startswith("mosquitto") else ["--silent"]
    return [program, *door, *words]


@asynccontextmanager
async def running(words: list[str]) -> AsyncIterator[asyncio.StreamReader]:
    """A command that may go on for ever; yields what it says."""
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(words: list[str]) -> str:
    async with running(words) as output:
        return (await output.read()).decode()


async def hear(output: asyncio.StreamReader, wanted: str) -> str:
    """Reads up to the line that holds this."""
    while wanted not in (line := (await output.readline()).decode()):
        assert line, f"it ended without {wanted}"
    return line


async def test_every_wire_is_tried_and_all_show_the_same_subject() -> None:
    commands = list_commands()
    publish, snapshot, consume, stream, *mqtt = commands
    assert [line.split()[0] for line in mqtt] == ["mosquitto_sub", "mosquitto_pub"]
    async with asyncio.timeout(DEADLINE_S), testing.node({}) as node, AsyncExitStack() as stack:
        assert json.loads(await said(fit(publish, node)))["at"].endswith(".1")
        assert await said(fit(snapshot, node)) == '{"celsius":21}'
        assert [each["content"] for each in json.loads(await said(fit(consume, node)))] == [{"celsius": 21}]
        events = await stack.enter_async_context(running(fit(stream, node)))
        await hear(events, "event: subscribed")
        assert '"snapshot":true' in await hear(events, '{"celsius":21}')
        missing = [program for program in PROGRAMS if shutil.which(program) is None]
        if missing:
            pytest.skip(
                f"{', '.join(missing)} not here: the rest of the table was not run"
            )  # Debian: mosquitto-clients
        messages = await stack.enter_async_context(running(fit(mqtt[0], node)))
        assert await hear(messages, "21") == 'rooms/hall {"celsius":21}\n'
        assert await said(fit(mqtt[1], node)) == ""
        assert await hear(messages, "22") == 'rooms/hall {"celsius":22}\n'
        assert '"message":"/rooms/hall"' in await hear(events, '{"celsius":22}')
        assert await said(fit(snapshot, node)) == '{"celsius":22}'
