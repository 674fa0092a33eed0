"""A node says what the scripts of protocol/vectors/sessions.json say it does. The Rust core plays the same scripts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.node_process import NodeProcess, is_allowed, running_node
from tests.raw_client import RawClient, raw_client

CASES = json.loads((Path(__file__).parents[2] / "protocol/vectors/sessions.json").read_text())["cases"]
DEADLINE_S = 30
HOLE = re.compile(r"\$\{(\w*)\}")
numbers = count(1)


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["io_uring", "readiness"])
async def node(request: pytest.FixtureRequest) -> AsyncIterator[NodeProcess]:
    if not await is_allowed(request.param):
        pytest.skip(f"this machine allows no {request.param}")
    async with running_node({"node.driver": request.param}) as node:
        yield node
        assert await node.terminate() == 0


class Stage:
    """One script under way: its clients, what they heard and nobody asked for yet, and what the names stand for."""

    def __init__(self, url: str, clients: AsyncExitStack) -> None:
        self.url = url
        self.clients: dict[str, RawClient] = {}
        self.names = {"s": f"/v/{next(numbers)}"}
        self._open = clients

    async def client(self, name: str) -> RawClient:
        if name not in self.clients:
            self.clients[name] = await self._open.enter_async_context(raw_client(self.url))
        return self.clients[name]

    async def play(self, lines: list[str]) -> None:
        unordered: dict[str, list[Any]] = {}
        for line in [*lines, "pass 0"]:
            name, way, text = [*line.split(" ", 2), ""][:3]
            if way == "~":
                unordered.setdefault(name, []).append(json.loads(text))
                continue
            while unordered:
                await self.hear_all(*unordered.popitem())
            if way == ">":
                await (await self.client(name)).socket.send(HOLE.sub(lambda hole: self.names[hole[1]], text))
            elif way == "<":
                await self.hear_all(name, [json.loads(text)])
        for name in self.clients:
            assert await self.next(name, '{"id":"end","ping":true}', wants_mark=False) == {
                **{"id": "end", "ok": "pong"},
                "time": pytest.approx(0, abs=2**53),
            }

    async def next(self, name: str, question: str = "", *, wants_mark: bool) -> dict[str, Any]:
        client = await self.client(name)
        if question:
            await client.socket.send(question)
        while (heard := await client.receive()) is not None:
            if wants_mark or "mark" not in heard:
                return heard
        raise AssertionError(f"{name} was closed: {client.close}")

    async def hear_all(self, name: str, wanted: list[Any]) -> None:
        """Hears as many things as are wanted, which fit them in some order."""
        while wanted:
            heard = await self.next(name, wants_mark=any("mark" in one for one in wanted))
            for one in wanted:
                names = dict(self.names)
                if fits(one, heard, names):
                    self.names = names
                    wanted.remove(one)
                    break
            else:
                raise AssertionError(f"{name} heard {heard}, wanted {wanted} with {self.names}")


def fits(wanted: Any, heard: Any, names: dict[str, str]) -> bool:
    """Whether something heard is what is wanted; binds the names that are new."""
    if isinstance(wanted, dict) and isinstance(heard, dict):
        return wanted.keys() == heard.keys() and all(fits(wanted[key], heard[key], names) for key in wanted)
    if isinstance(wanted, list) and isinstance(heard, list):
        return len(wanted) == len(heard) and all(fits(w, h, names) for w, h in zip(wanted, heard, strict=True))
    if not isinstance(wanted, str) or not HOLE.search(wanted):
        return bool(wanted == heard and type(wanted) is type(heard))
    if wanted == "${}":
        return True
    literal, *rest = HOLE.split(wanted)
    expression = re.escape(literal)
    bound: set[str] = set()
    for name, literal in zip(rest[::2], rest[1::2], strict=True):
        if name in names:
            expression += re.escape(names[name])
        else:
            expression += f"(?P={name})" if name in bound else f"(?P<{name}>.*?)" if name else ".*?"
            bound.add(name)
        expression += re.escape(literal)
    found = re.fullmatch(expression, heard if isinstance(heard, str) else json.dumps(heard), re.DOTALL)
    names.update(found.groupdict() if found else {})
    return found is not None


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
async def test_a_session_goes_as_the_script_says(node: NodeProcess, case: dict[str, Any]) -> None:
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as clients:
        await Stage(node.url, clients).play(case["lines"])
