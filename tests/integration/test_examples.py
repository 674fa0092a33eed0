"""The examples and the README's program do what they say, against a real node; none is longer than sixty lines."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from godwit import testing
from godwit.children import wait_for_end
from godwit.client import Client, CommandRefused, SessionClosed

EXAMPLE_LINES_MAX = 60
DEADLINE_S = 30


@pytest.fixture
async def running() -> AsyncIterator[testing.RunningNode]:
    async with testing.node() as node:
        yield node


async def run(program: Path, *arguments: str, stdin: str = "", cwd: Path | None = None) -> str:
    """The standard output of a program that ends by itself, well."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(program), *arguments),
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE_S):
        output, errors = await process.communicate(stdin.encode())
    assert process.returncode == 0, errors.decode()
    return output.decode()


def test_no_example_is_longer_than_sixty_lines(root: Path) -> None:
    assert not [
        path.name for path in (root / "examples").iterdir() if len(path.read_text().splitlines()) > EXAMPLE_LINES_MAX
    ]


async def test_the_readme_program_prints_what_it_published(
    root: Path, tmp_path: Path, running: testing.RunningNode
) -> None:
    block = re.search(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert block is not None
    assert len(block.group(1).splitlines()) <= 22
    program = tmp_path / "hello.py"
    program.write_text(block.group(1).replace("ws://127.0.0.1:8800", running.url))
    for _ in range(2):  # the second run comes back to the place of the first
        lines = (await run(program, cwd=tmp_path)).splitlines()
        assert [line.split()[0] for line in lines] == ["accepted"] * 3 + ["/rooms/kitchen/temperature"] * 3
        accepted, read = [[line.split()[place] for line in part] for part, place in ((lines[:3], 2), (lines[3:], 1))]
        assert accepted == read
        assert [line.split()[2] for line in lines[3:]] == ["20.5", "21.0", "21.5"]


async def test_resume_reads_each_number_once_across_runs(
    root: Path, tmp_path: Path, running: testing.RunningNode
) -> None:
    accepted = await run(
        root / "examples/publish.py", "/numbers", running.url, stdin="".join(f"{n}\n" for n in range(9))
    )
    assert len(accepted.splitlines()) == 9
    read: list[str] = []
    for _ in range(3):
        lines = await run(root / "examples/resume.py", "/numbers", "3", str(tmp_path / "positions.json"), running.url)
        read += [line.split()[2] for line in lines.splitlines()]
    assert read == [str(n) for n in range(9)]


async def test_reply_answers_a_sum(root: Path, running: testing.RunningNode) -> None:
    assert (await run(root / "examples/reply.py", running.url)).strip() == "6"


async def test_tail_prints_what_happens(root: Path, running: testing.RunningNode) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(root / "examples/tail.py"), "/news/**", running.url), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S), Client(running.url) as client:
            published = await client.publish("/news/today", "hello")
            line = (await process.stdout.readline()).decode().split()
        assert line == [str(published.position), "/news/today", "hello"]
    finally:
        process.terminate()
        await wait_for_end(process)


async def test_the_authorizer_lets_each_do_what_is_theirs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "examples"))
    settings = {"access": {"mode": "custom", "authorizer": "authorizer:Rooms"}}
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        async with Client(node.url, token="token-of-ada-lovelace") as ada:
            await ada.publish("/rooms/ada/door", "open")
            await ada.publish("/orders/1", "buy")
            with pytest.raises(CommandRefused):
                await ada.publish("/rooms/alan/door", "open")
        async with Client(node.url, token="token-of-alan-turing") as alan:
            with pytest.raises(CommandRefused):
                await alan.publish("/orders/1", "sell")
        async with Client(node.url, token="no such token") as nobody:
            with pytest.raises(SessionClosed):
                await nobody.publish("/rooms/ada/door", "shut")


async def test_the_audit_writes_who_did_what(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "examples"))
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    async with (
        testing.node({"audit": {"plugins": ["audit:Ledger"]}}) as node,
        asyncio.timeout(DEADLINE_S),
        Client(node.url) as client,
    ):
        published = await client.publish("/orders/1", "buy")
    rows = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
    messages = [
        (row["subject"], row["position"], row["content_bytes"]) for row in rows if row["event"] == "MessageEvent"
    ]
    assert ("/orders/1", str(published.position), 3) in messages
    assert "connected" in [row.get("what") for row in rows]


async def test_presence_says_who_is_in_a_room(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "examples"))
    settings = {"audit": {"plugins": ["presence:Presence"], "batch_ms": 10}}
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S), Client(node.url) as watching:
        seen = watching.subscribe("/presence/1")
        await seen.joined()
        async with Client(node.url) as guest:
            await guest.subscribe("/rooms/1").joined()
            while not (here := (await anext(seen)).json()["here"]):
                pass
            assert len(here) == 1 and here[0].startswith("guest-")
        while (await anext(seen)).json()["here"]:
            pass
