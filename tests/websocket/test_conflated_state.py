"""What a conflated subscriber has after a window is the snapshot: removals, purges, and standard messages that are retained."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from godwit import testing
from tests.raw_client import RawClient, raw_client

Publish = dict[str, Any]
PURGE: Publish = {"purge": True}
WINDOW_MS = 500
ADMIN_TOKEN = "an-admin-token-of-length"
SETTINGS = {"admin": {"token": ADMIN_TOKEN}}


async def purge(node: testing.RunningNode, subject: str) -> None:
    url, headers = f"{node.admin_url}/v1/purge?subject={subject}", {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as http, http.post(url) as answer:
        assert answer.status == 200


def put_over(state: dict[str, Any], message: dict[str, Any]) -> None:
    """As a client does that has nothing but what it receives (protocol.md, chapters 8 and 9)."""
    fields = dict(state.get("fields", {})) | message.get("fields", {})
    old = state.get("content")
    content = message.get("content")
    if message.get("merge"):
        content = {**(old if isinstance(old, dict) else {}), **content}
        content = {name: value for name, value in content.items() if value is not None}
    state.clear()
    state |= {"content": content, "fields": {name: text for name, text in fields.items() if text is not None}}


async def receive_until_last(reader: RawClient, last: str) -> list[dict[str, Any]]:
    """Messages up to the last one that was published, whose text is in that frame or merged into it."""
    received: list[dict[str, Any]] = []
    while True:
        message = await reader.receive()
        assert message is not None
        if message.get("message") == last:
            return received
        if "message" in message:
            received.append(message)


async def publish_all(node: testing.RunningNode, subject: str, publishes: list[Publish]) -> list[dict[str, Any]]:
    """What a conflated subscriber receives of these."""
    async with raw_client(f"ws://{node.client}") as reader, raw_client(f"ws://{node.client}") as sender:
        await reader.ask({"id": 1, "subscribe": f"{subject}/*", "conflate_ms": WINDOW_MS})
        for number, publish in enumerate(publishes):
            if publish is PURGE:
                await purge(node, f"{subject}/s")
            else:
                await sender.ask({"id": number, "publish": f"{subject}/s", **publish})
        await sender.send({"publish": f"{subject}/end", "content": 0})
        return await receive_until_last(reader, f"{subject}/end")


async def read_snapshot(node: testing.RunningNode, subject: str) -> dict[str, Any]:
    url = f"http://{node.client}/v1/snapshot?subject={subject}&as=message"
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        whole = json.loads(await answer.text())
    return {"content": whole["content"], "fields": whole.get("fields", {})}


WITH_FIELD: Publish = {"content": 0, "fields": {"u": "1"}}
STANDARD: Publish = {"guaranteed": False, "retain": True, "merge": True}
CASES: dict[str, list[Publish]] = {
    "a purge removes fields": [WITH_FIELD, PURGE, {"content": 1}],
    "a removal removes fields": [WITH_FIELD, {"removed": True}, {"content": 2}],
    "a removal removes fields that were not retained": [
        {"content": 0},
        {**WITH_FIELD, "retain": False},
        {"removed": True},
        {"content": 2},
    ],
    "a standard message between": [
        {"content": {"a": 1}},
        {**STANDARD, "content": {"a": 2}},
        {"content": {"b": 3}, "merge": True},
    ],
    "a standard message first": [
        {**STANDARD, "content": {"a": 2}, "merge": False},
        {"content": {"b": 3}, "merge": True},
        {**STANDARD, "content": {"c": 4}, "fields": {"f": "1"}},
    ],
    "standard messages that are not retained stand apart": [
        {"content": {"a": 1}},
        {**STANDARD, "content": {"a": 2}},
        {"content": {"a": 9}, "guaranteed": False, "retain": False},
        {"content": {"b": 3}, "merge": True},
    ],
    "patches alone, of both": [
        {"content": {"a": 1, "b": 1}, "merge": True},
        {**STANDARD, "content": {"a": 2, "b": None}},
        {"content": {"c": 3}, "merge": True, "fields": {"f": "1"}},
        {**STANDARD, "content": {"d": 4}, "fields": {"f": None, "g": "2"}},
    ],
}


@pytest.mark.parametrize("case", CASES)
async def test_a_window_leaves_its_reader_with_the_snapshot(case: str) -> None:
    async with testing.node(SETTINGS) as node:
        state: dict[str, Any] = {}
        for message in await publish_all(node, "/a", CASES[case]):
            put_over(state, message)
        assert state == await read_snapshot(node, "/a/s")


async def test_the_removal_of_a_purge_has_null_for_each_field() -> None:
    async with testing.node(SETTINGS) as node, raw_client(f"ws://{node.client}") as reader:
        await reader.ask({"id": 1, "publish": "/a", **WITH_FIELD})
        await reader.ask({"id": 2, "publish": "/a", "content": 1, "fields": {"v": "2"}})
        await reader.ask({"id": 3, "subscribe": "/a"})
        await purge(node, "/a")
        while "removed" not in (message := await reader.receive() or {"removed": None}):
            pass
        assert message["fields"] == {"u": None, "v": None}
