"""Publishes over HTTP that their publisher numbers: one that is sent again is one message, and counted."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import pytest_asyncio

from tests.node_process import NodeProcess, running_node
from tests.raw_client import raw_client

NAME = "b7d04c1e92f35a68"
Answer = tuple[int, Any, bool]
"""Status, body, and whether it is said to be a repeat."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def node() -> AsyncIterator[NodeProcess]:
    async with running_node({"limits.commands_in_flight_max": 16}) as node:
        yield node


async def ask(node: NodeProcess, query: str, body: bytes = b"one", media: str = "text/plain") -> Answer:
    def tell() -> Answer:
        request = Request(f"http://{node.host}:{node.port}/v1/messages{query}", body, {"Content-Type": media})
        try:
            with urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer), answer.headers["Godwit-Duplicate"] == "true"
        except HTTPError as refused:
            return refused.code, json.load(refused), False

    return await asyncio.to_thread(tell)


async def ask_many(node: NodeProcess, *commands: dict[str, Any]) -> list[Any]:
    status, outcomes, _ = await ask(node, "", json.dumps(commands).encode(), "application/json")
    assert status == 200
    return list(outcomes)


def numbered(subject: str, number: int, more: str = "", name: str = NAME) -> str:
    return f"?subject={subject}&publisher={name}&number={number}{more}"


async def repeats(node: NodeProcess) -> int:
    def read() -> str:
        with urlopen(f"{node.admin_url}/metrics", timeout=20) as answer:
            return str(answer.read().decode())

    found = re.search(
        r"^godwit_duplicate_publishes_total(?:\{.*\})? (\d+)", await asyncio.to_thread(read), re.MULTILINE
    )
    assert found is not None
    return int(found[1])


async def test_a_number_sent_again_is_one_message_on_every_connection(node: NodeProcess) -> None:
    before = await repeats(node)
    first = await ask(node, numbered("/one", 1))
    assert first[0] == 201 and not first[2]
    for more in ("", "&again=true", "&floor=1&again=false"):
        assert await ask(node, numbered("/one", 1, more)) == (201, first[1], True)
    command = {"publish": "/one", "text": "one", "publisher": NAME, "number": 1}
    assert await ask_many(node, command) == [{"ok": "published", **first[1], "duplicate": True}]
    async with raw_client(f"ws://{node.host}:{node.port}") as client:
        await client.ask({"id": 1, "connect": {"publisher": NAME, "number": 2}})
        answer = await client.ask({"id": 2, "publish": "/one", "text": "one", "number": 1, "again": True})
        assert answer["at"] == first[1]["at"] and answer["duplicate"]
    assert await repeats(node) == before + 5


async def test_another_content_or_subject_under_a_number_is_refused(node: NodeProcess) -> None:
    assert (await ask(node, numbered("/other", 1, name="0123456789abcdef")))[0] == 201
    for query, body in (("/other", b"two"), ("/another", b"one")):
        status, problem, _ = await ask(node, numbered(query, 1, name="0123456789abcdef"), body)
        assert (status, problem["code"]) == (409, 4117)


async def test_what_cannot_be_known_is_not_published(node: NodeProcess) -> None:
    unknown = await ask(node, numbered("/unknown", 7, "&again=true", "never-seen-before"))
    assert unknown[1]["code"] == 4129
    assert (await ask(node, numbered("/unknown", 9, "&floor=9", "a-window-of-its-own")))[0] == 201
    assert (await ask(node, numbered("/unknown", 8, "", "a-window-of-its-own")))[1]["code"] == 4128


@pytest.mark.parametrize(
    "query",
    [
        f"&publisher={NAME}",
        f"&publisher={NAME}&again=true",
        "&number=1",
        f"&publisher={NAME}&number=0",
        f"&publisher={NAME}&number=9007199254740992",
        f"&publisher={NAME}&number=-1",
        f"&publisher={NAME}&number=1&number=1",
        f"&publisher={NAME}&number=1&floor=2",
        f"&publisher={NAME}&number=1&again=yes",
        f"&publisher={NAME}&number=1&guaranteed=false",
        "&publisher=short&number=1",
        f"&publisher={'x' * 65}&number=1",
        f"&publisher={NAME}%0a&number=1",
    ],
)
async def test_a_number_that_says_nothing_is_refused(node: NodeProcess, query: str) -> None:
    status, problem, _ = await ask(node, f"?subject=/bad{query}")
    assert (status, problem["code"]) == (400, 4104)


async def test_a_publisher_beside_a_publish_is_refused_where_connect_names_it(node: NodeProcess) -> None:
    async with raw_client(f"ws://{node.host}:{node.port}") as client:
        answer = await client.ask({"id": 1, "publish": "/ws", "text": "one", "publisher": NAME, "number": 3})
        assert answer["error"] == 4104
    (alone,) = await ask_many(node, {"publish": "/alone", "text": "one", "publisher": NAME})
    assert alone["error"] == 4104


async def test_a_number_is_known_again_after_a_kill(tmp_path: Path) -> None:
    settings: dict[str, object] = {"node.data_directory": tmp_path}
    async with running_node(settings) as node:
        first = await ask(node, numbered("/kept", 1, "&ack=disk"))
        assert first[0] == 201
        await node.kill()
    async with running_node(settings) as node:
        assert await ask(node, numbered("/kept", 1, "&ack=disk&again=true")) == (201, first[1], True)
