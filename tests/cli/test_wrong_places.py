"""Ports that are mistaken for one another, nodes that are not there or go away: a sentence, soon, and once."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from tests.node_process import NodeProcess, running_node

DEADLINE_S = 60


@pytest.fixture
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node() as node:
        yield node


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


async def run(*words: str) -> tuple[int, list[str], list[str]]:
    command = (sys.executable, "-m", "godwit", *words)
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    async with asyncio.timeout(DEADLINE_S):
        output, errors = await process.communicate()
    return process.returncode or 0, output.decode().splitlines(), errors.decode().splitlines()


@pytest.mark.parametrize("words", [("publish", "/a", "1", "--timeout", "50"), ("tail", "/a")])
async def test_a_client_command_at_the_admin_port_ends_at_once(words: tuple[str, ...], node: NodeProcess) -> None:
    code, output, errors = await run(*words, "--server", f"ws://{node.admin}")
    assert (code, output) == (1, [])
    assert "this is the admin port; clients connect to the client port (client.address)" in errors[-1], errors


@pytest.mark.parametrize("words", [("top",), ("purge", "/a"), ("reload",), ("revoke", "--list")])
async def test_an_operators_command_at_the_client_port_says_so(words: tuple[str, ...], node: NodeProcess) -> None:
    code, output, errors = await run(*words, "--admin", node.url.replace("ws:", "http:"))
    assert (code, output, len(errors)) == (2, [], 1)
    assert "is the client port of a node: expected its admin port (admin.address)" in errors[0]


async def test_without_a_node_a_publish_says_so_at_once_and_then_gives_up() -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    code, output, errors = await run("publish", "/a", "1", "--timeout", "3", "--server", url)
    assert (code, output, len(errors)) == (1, [], 2)
    assert errors[0] == f"godwit: cannot connect to {url}/v1/live: Connection refused; retrying"
    assert "no answer in 3 s" in errors[1]


async def test_a_node_that_goes_away_is_first_disconnected(node: NodeProcess) -> None:
    command = (sys.executable, "-m", "godwit", "tail", "/a", "--server", node.url)
    tail = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert tail.stderr is not None
    async with asyncio.timeout(DEADLINE_S):
        assert b"subscribed" in await tail.stderr.readline()
        await node.kill()
        lines = [(await tail.stderr.readline()).decode() for _ in range(2)]
        tail.terminate()
        await tail.communicate()
    assert lines[0].startswith("godwit: disconnected: ")
    assert lines[1] == f"godwit: cannot connect to {node.url}/v1/live: Connection refused; retrying\n"


async def test_a_dash_is_content_and_standard_input_is_named(node: NodeProcess) -> None:
    code, output, errors = await run("publish", "/a", "-", "--server", node.url)
    assert (code, len(output), len(errors)) == (0, 1, 1), (output, errors)
    assert "leave CONTENT out" in errors[0]
