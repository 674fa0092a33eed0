"""A node whose memory keeps ten messages of a subject, and whose journal keeps all: an older place gets everything after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from godwit.client import Client, Gap, Message
from tests.faults.ways import QUICK
from tests.node_process import NodeProcess, running_node
from tests.raw_client import raw_client

DEADLINE_S = 120
MESSAGES = 10_000


@asynccontextmanager
async def filled_node(folder: Path, messages: int) -> AsyncIterator[tuple[NodeProcess, str]]:
    """With so many messages of /a/b; and the epoch they are of."""
    settings: dict[str, object] = {
        "node.data_directory": folder,
        "limits.log_messages_max": 10,
        "journal.segment_bytes_max": 262_144,
    }
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node:
        async with aiohttp.ClientSession() as session:
            for begin in range(0, messages, 500):
                body = [{"publish": "/a/b", "content": n, "id": n} for n in range(begin, min(begin + 500, messages))]
                async with session.post(f"http://{node.host}:{node.port}/v1/messages", json=body) as answer:
                    epoch = str((await answer.json())[-1]["at"]).split(".")[0]
        yield node, epoch


async def read(session: aiohttp.ClientSession, url: str) -> tuple[list[dict[str, Any]], str]:
    async with session.get(url) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json(), answer.headers["Godwit-Position"]


async def test_a_client_that_stands_at_the_first_message_gets_the_other_ten_thousand(tmp_path: Path) -> None:
    async with filled_node(tmp_path, MESSAGES) as (node, epoch), raw_client(node.url) as client:
        reply = await client.ask({"id": 1, "subscribe": "/a/b", "after": f"{epoch}.1"})
        assert reply["outcome"] == "recovered" and "count" not in reply, "only the journal can tell"
        for n in range(1, MESSAGES):
            got = await client.receive()
            assert got is not None and (got["message"], got["content"]) == ("/a/b", n), got
        await client.send({"publish": "/a/b", "content": "live"})
        live = await client.receive()
        assert live is not None and live["at"] == f"{epoch}.{MESSAGES + 1}"


async def test_consume_pages_through_what_only_the_journal_holds(tmp_path: Path) -> None:
    async with filled_node(tmp_path, 2_345) as (node, epoch), aiohttp.ClientSession() as session:
        url = f"http://{node.host}:{node.port}/v1/messages?subject=/a/b&limit=1000"
        place, contents = f"{epoch}.0", []
        for size in (1000, 1000, 345):
            page, place = await read(session, f"{url}&after={place}")
            assert len(page) == size, (place, len(page))
            contents += [item["content"] for item in page]
        assert contents == list(range(2_345)) and place == f"{epoch}.2345"
        assert await read(session, f"{url}&after={place}") == ([], place)
        last, _ = await read(session, f"http://{node.host}:{node.port}/v1/messages?subject=/a/b&last=500&limit=1000")
        assert [item["content"] for item in last] == list(range(1_845, 2_345))


async def test_an_event_stream_resumes_by_an_id_that_memory_has_let_go_of(tmp_path: Path) -> None:
    async with filled_node(tmp_path, 600) as (node, epoch), aiohttp.ClientSession() as session:
        url = f"http://{node.host}:{node.port}/v1/stream?subject=/a/b"
        async with session.get(url, headers={"Last-Event-ID": f"{epoch}.100"}) as answer:
            contents: list[int] = []
            while len(contents) < 500:
                line = (await answer.content.readline()).decode()
                assert line, "the stream ended"
                if line.startswith("data:") and "message" in (event := json.loads(line[5:])):
                    contents.append(event["content"])
        assert contents == list(range(100, 600))


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_pattern_resumes_by_a_resume_token_that_is_older_than_its_logs(
    tmp_path: Path, is_restarted: bool
) -> None:
    settings: dict[str, object] = {
        "node.data_directory": tmp_path,
        "limits.log_messages_max": 10,
        "drain.grace_ms": 200,
    }
    async with asyncio.timeout(DEADLINE_S):
        async with running_node(settings) as node, raw_client(node.url) as client:
            await client.ask({"id": 1, "subscribe": "/p/*"})
            resume_token = ""
            while not resume_token:
                resume_token = (await client.receive() or {}).get("resume_token", "")
            publishes = [{"id": n, "publish": f"/p/{n % 7}", "content": n, "ack": "disk"} for n in range(700)]
            for begin in range(0, 700, 100):
                await client.send(*publishes[begin : begin + 100])
            answered = 0
            while answered < 700:
                answered += (await client.receive() or {}).get("ok") == "published"
            if not is_restarted:
                await check_pattern(node, resume_token)
            assert await node.terminate() == 0
        if is_restarted:
            async with running_node(settings) as node:
                await check_pattern(node, resume_token)


async def check_pattern(node: NodeProcess, resume_token: str) -> None:
    """Everything after the resume token comes, in the order in which it was accepted, and no gap."""
    async with raw_client(node.url) as client:
        assert (await client.ask({"id": 1, "subscribe": "/p/*", "since": resume_token}))["outcome"] == "recovered"
        contents: list[int] = []
        while len(contents) < 700:
            got = await client.receive()
            assert got is not None and "gap" not in got, got
            if "message" in got:
                contents.append(got["content"])
        assert contents == list(range(700))


async def test_the_client_library_resumes_over_a_restart_from_before_memory(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "node.data_directory": tmp_path,
        "limits.log_messages_max": 10,
        "drain.grace_ms": 200,
    }
    async with asyncio.timeout(DEADLINE_S):
        async with running_node(settings) as node, Client(node.url, settings=QUICK) as client:
            places = [await client.publish("/a/b", n) for n in range(200)]
            first = places[0].position
            assert first is not None and await node.terminate() == 0
        async with running_node(settings) as node, Client(node.url, settings=QUICK) as client:
            got: list[Message] = []
            subscription = client.subscribe("/a/b", after=first)
            await subscription.joined()
            await client.publish("/a/b", 200)
            async for item in subscription.items():
                assert not isinstance(item, Gap), "nothing is missing"
                if isinstance(item, Message):
                    got.append(item)
                    if item.json() == 200:
                        break
            assert [item.json() for item in got] == list(range(1, 201))
            assert got[-1].after == places[-1].position


async def test_the_last_messages_of_a_room_reach_back_over_restarts(tmp_path: Path) -> None:
    settings: dict[str, object] = {"node.data_directory": tmp_path, "drain.grace_ms": 200}
    # A start reads back only what memory keeps, so that of the room it has but its snapshot.
    settings |= {"limits.log_age_ms_max": 100, "limits.idempotency_keys_age_ms_max": 100}
    contents = [f"{life}.{number}" for life in range(3) for number in range(20)]
    for life in range(3):
        async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, aiohttp.ClientSession() as session:
            url = f"http://{node.host}:{node.port}/v1/messages"
            begin, until = (0, 0) if life == 0 else (20 * life - 15, 20 * life)
            found, _ = await read(session, f"{url}?subject=/room&last=15")
            assert [item["content"] for item in found if "message" in item] == contents[begin:until], life
            body = [{"publish": "/room", "content": content} for content in contents[20 * life : 20 * life + 20]]
            async with session.post(url, json=body) as answer:
                assert answer.status == 200, await answer.text()
            assert await node.terminate() == 0
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, raw_client(node.url) as client:
        await client.send({"id": 1, "subscribe": "/room", "last": 50})
        heard: list[str] = []
        while len(heard) < 50:
            got = await client.receive()
            assert got is not None and "gap" not in got, got
            heard += [got["content"]] if "message" in got else []
        assert heard == contents[10:]
        async with asyncio.timeout(DEADLINE_S), Client(node.url, settings=QUICK) as reader:
            got: list[str] = []
            async for message in reader.subscribe("/room", last=50):
                got.append(message.json())
                if len(got) == 50:
                    break
            assert got == contents[10:], "a reply without a count hides none of its messages"
