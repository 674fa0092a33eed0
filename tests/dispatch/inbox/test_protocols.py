"""The subject of an inbox on every protocol of the node: each item, each change and the head, to a client that is not one of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import aiomqtt
import pytest

from godwit.dispatch.pure.subjects import head_subject, inbox_subject
from tests.architecture.source import ROOT
from tests.dispatch.conftest import Running
from tests.dispatch.inbox.test_lists import mark, send

DEADLINE_S = 60
NAMES = json.loads((ROOT / "protocol/vectors/inbox.json").read_text())["names"]
SUBJECT, HEAD = "/$inbox/default/ann", "/$inbox/default/ann/head"
Items = AsyncIterator[tuple[str, Any]]


@pytest.mark.parametrize("case", NAMES, ids=lambda case: case["subject"])
def test_names_become_subjects_as_the_table_says(case: dict[str, str]) -> None:
    assert inbox_subject(case["tenant"], case["receiver"]) == case["subject"]
    assert head_subject(case["tenant"], case["receiver"]) == f"{case['subject']}/head"
    assert case["subject"].removeprefix("/") == case["topic"]


async def by_websocket(both: Running, token: str) -> Items:
    async with both.http.ws_connect(f"{both.node_url}/v1/live", protocols=["godwit.v1.json"]) as socket:
        await socket.send_json({"id": 9, "connect": {"token": token}})
        for number, subject in enumerate((SUBJECT, HEAD), 1):
            await socket.send_json({"id": number, "subscribe": subject})
        async for frame in socket:
            for push in frame.json() if isinstance(frame.json(), list) else [frame.json()]:
                if "message" in push:
                    yield push["message"], push["content"]


async def by_events(both: Running, token: str) -> Items:
    url = f"{both.node_url.replace('ws', 'http', 1)}/v1/stream?subject={quote(SUBJECT)}&subject={quote(HEAD)}"
    async with both.http.get(url, headers={"Authorization": f"Bearer {token}"}) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            push = json.loads(line[6:]) if line.startswith(b"data: {") else {}
            if "message" in push:
                yield push["message"], push["content"]


async def by_polls(both: Running, token: str) -> Items:
    """Two long polls, one after the other each: of items, and of the head with its snapshot first."""
    base, headers = both.node_url.replace("ws", "http", 1), {"Authorization": f"Bearer {token}"}
    heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def poll(subject: str) -> None:
        after = ""
        while True:
            url = f"{base}/v1/messages?subject={quote(subject)}&wait=30{after}"
            async with both.http.get(url, headers=headers) as answer:
                assert answer.status == 200, await answer.text()
                after = f"&after={answer.headers['Godwit-Position']}"
                for push in await answer.json():
                    if "message" in push:
                        heard.put_nowait((push["message"], push["content"]))

    polls = [asyncio.create_task(poll(subject)) for subject in (SUBJECT, HEAD)]
    try:
        while True:
            yield await heard.get()
    finally:
        for task in polls:
            task.cancel()
        await asyncio.gather(*polls, return_exceptions=True)


async def by_mqtt(both: Running, token: str) -> Items:
    host, _, port = both.mqtt.rpartition(":")
    client = aiomqtt.Client(host, int(port), username="ann", password=token, protocol=aiomqtt.ProtocolVersion.V5)
    async with client:
        await client.subscribe([(SUBJECT[1:], 1), (HEAD[1:], 1)])
        async for message in client.messages:
            yield f"/{message.topic}", json.loads(message.payload)


@pytest.mark.parametrize("protocol", [by_websocket, by_events, by_polls, by_mqtt])
async def test_items_changes_and_heads_come(dispatch: Running, protocol: Any) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await send(dispatch, "a")
        token = await dispatch.make_token("ann")
        heard = protocol(dispatch, token)
        subject, head = await anext(heard)
        assert (subject, head["unread"]) == (HEAD, 1)
        await send(dispatch, "b")
        await mark(dispatch, token, "read", "a")
        items: list[Any] = []
        while len(items) < 2 or head["unread"] != 1 or head["head"] != items[-1]["at"]:
            subject, answer = await anext(heard)
            if subject == HEAD:
                head = answer
            else:
                items.append(answer)
        assert [(item["id"], item["flags"], item["unread"]) for item in items] == [
            ("b", [], 2),
            ("a", ["seen", "read"], 1),
        ]
        await heard.aclose()
