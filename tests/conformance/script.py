"""Plays the scripts of protocol/vectors, sessions.json and streams.json, against a node: the commands of each client, and the expected
answers.

A client of the JSON wire says (`>`) and hears (`<`; `~` in any order) objects; one of HTTP asks for a stream of events (`?`) and hears
events.
"""

from __future__ import annotations

import json
import re
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import aiohttp
import pytest

from tests.raw_client import RawClient, raw_client

HOLE = re.compile(r"\$\{(\w*)\}")
numbers = count(1)


class Stream:
    """A stream of events, read as the standard says."""

    def __init__(self, session: aiohttp.ClientSession, answer: aiohttp.ClientResponse) -> None:
        self._session, self._answer = session, answer

    @classmethod
    async def open(cls, url: str, last_id: str, commands: str | None = None) -> Stream:
        session = aiohttp.ClientSession()
        headers = {"Last-Event-ID": last_id} if last_id else {}
        if commands is None:
            answer = await session.get(url, headers=headers)
        else:
            headers["Content-Type"] = "application/json"
            answer = await session.post(url, headers=headers, data=commands.encode())
        assert answer.status == 200, await answer.text()
        return cls(session, answer)

    async def next(self) -> dict[str, Any]:
        """The next event: its `data`, its `id` if it has one, its `event` if it is no message. Comments are passed over."""
        while True:
            fields: dict[str, list[str]] = {}
            while (line := (await self._answer.content.readuntil(b"\n")).decode().removesuffix("\n")) != "":
                name, _, value = line.partition(": ")
                fields.setdefault(name, []).append(value)
            if "data" in fields:
                data = {"data": json.loads("\n".join(fields.pop("data")))}
                return data | {name: values[-1] for name, values in fields.items() if name in ("id", "event")}

    async def close(self) -> None:
        self._answer.close()
        await self._session.close()


class Stage:
    """One script under way: its clients, what they heard and nobody asked for yet, and what the names stand for."""

    def __init__(self, url: str, clients: AsyncExitStack) -> None:
        self.url = url
        self.clients: dict[str, RawClient] = {}
        self.streams: dict[str, Stream] = {}
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
            if way in "?!":
                await self.open(name, way, self.fill(text))
            elif way == ">":
                await (await self.client(name)).socket.send(self.fill(text))
            elif way == "<":
                await self.hear_all(name, [json.loads(text)])
        for name in self.clients:
            assert await self.next(name, '{"id":"end","ping":true}', wants_resume_token=False) == {
                **{"id": "end", "ok": "pong"},
                "time": pytest.approx(0, abs=2**53),
            }

    def fill(self, text: str) -> str:
        return HOLE.sub(lambda hole: self.names[hole[1]], text)

    async def open(self, name: str, way: str, text: str) -> None:
        """A client's stream of events; the one before is closed."""
        if name in self.streams:
            await self.streams.pop(name).close()
        target, _, last_id = text.partition(" @ ")
        server = self.url.replace("ws://", "http://")
        if way == "?":
            self.streams[name] = await Stream.open(server + target, last_id)
        else:
            self.streams[name] = await Stream.open(f"{server}/v1/stream", last_id, target)
        self._open.push_async_callback(self.streams[name].close)

    async def next(self, name: str, question: str = "", *, wants_resume_token: bool) -> dict[str, Any]:
        if name in self.streams:
            while (event := await self.streams[name].next()).get("event") == "resume_token" and not wants_resume_token:
                pass
            return event
        client = await self.client(name)
        if question:
            await client.socket.send(question)
        while (heard := await client.receive()) is not None:
            if wants_resume_token or "resume_token" not in heard:
                return heard
        raise AssertionError(f"{name} was closed: {client.close}")

    async def hear_all(self, name: str, wanted: list[Any]) -> None:
        """Hears as many things as are wanted, which fit them in some order."""
        while wanted:
            heard = await self.next(
                name,
                wants_resume_token=any("resume_token" in one or one.get("event") == "resume_token" for one in wanted),
            )
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
