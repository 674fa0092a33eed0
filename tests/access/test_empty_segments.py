"""Names that only MQTT makes: rules, tokens, reads, subscriptions, deletes, purges and audits take them as any other name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest

from godwit import testing
from godwit.audit import Audit, Event, MessageEvent
from godwit.client import Client
from godwit.errors import CommandRefused
from tests.hostile.peer import Peer
from tests.mqtt import packets
from tests.waiting import until

DEADLINE_S = 60
ISSUER, SECRET, ADMIN_TOKEN = "https://login.example", "s" * 64, "an-admin-token-of-a-test"
NAMES = {"/house/temp": "//house/temp", "house//temp": "/house//temp", "house/": "/house/", "/": "//"}


class Heard(Audit):
    def __init__(self) -> None:
        self.subjects: list[str] = []

    async def take(self, events: Sequence[Event]) -> None:
        self.subjects += [event.subject for event in events if isinstance(event, MessageEvent)]


HEARD = Heard()


def make_settings(folder: Path, subject: str) -> dict[str, Any]:
    (folder / "secret").write_text(SECRET)
    return {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: {"keys_file": str(folder / "secret"), "algorithms": ["HS256"]}},
        "admin": {"token": ADMIN_TOKEN},
        "patterns": {subject: {"log_messages_max": 2}},
        "audit": {"plugins": [f"{__name__}:HEARD"], "patterns": [subject], "batch_ms": 10},
    }


def make_token(*patterns: str) -> str:
    rights = {"allow": {"both": patterns}}
    claims = {"iss": ISSUER, "sub": "ann", "exp": time.time() + 600, "permissions": rights}
    return jwt.encode(claims, SECRET, "HS256")


async def send_by_mqtt(node: testing.RunningNode, topic: str, token: str) -> None:
    assert node.mqtt is not None
    async with Peer.open(node.mqtt.host, node.mqtt.port) as device:
        await device.say(packets.connect("d", password=token.encode(), username=""))
        await device.say(packets.publish(topic, b'"21"', qos=1))
        assert (await device.reader.readexactly(2))[0] == 0x20
        while (await device.reader.readexactly(1))[0] != 0x40:
            pass


@pytest.mark.parametrize("topic", NAMES)
async def test_what_mqtt_names_everything_takes(topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, heard = NAMES[topic], Heard()
    monkeypatch.setattr(f"{__name__}.HEARD", heard)
    token = make_token(subject, "/other")
    async with (
        testing.node(make_settings(tmp_path, subject)) as node,
        asyncio.timeout(DEADLINE_S),
        Client(node.url, token=token) as client,
        aiohttp.ClientSession() as http,
    ):
        with pytest.raises(CommandRefused) as refused:
            await client.publish(subject, 1)
        assert refused.value.code == 4101 and "only MQTT" in str(refused.value)
        await send_by_mqtt(node, topic, token)
        subscription = client.subscribe(subject, last=10)
        assert (await anext(subscription)).subject == subject
        await client.publish(subject, 2)
        assert (await anext(subscription)).json() == 2
        bearer = {"Authorization": f"Bearer {token}"}
        url, query = f"http://{node.client}/v1", {"subject": subject}
        async with http.get(f"{url}/snapshot", params=query, headers=bearer) as answer:
            assert answer.status == 200
        async with http.get(f"{url}/messages", params={**query, "last": "5"}, headers=bearer) as answer:
            assert len(await answer.json()) == 2
        async with http.post(f"{url}/messages", params=query, headers=bearer, data=b"3") as answer:
            assert answer.status == 201
        async with http.delete(f"{url}/snapshot", params=query, headers=bearer) as answer:
            assert answer.status < 300, await answer.text()
        purge = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        async with http.post(f"{node.admin_url}/v1/purge", params=query, headers=purge) as answer:
            assert answer.status == 200, await answer.text()
        async with http.get(f"{node.admin_url}/v1/subjects", params={"pattern": subject}) as answer:
            assert answer.status == 200, await answer.text()
        await until(lambda: len(heard.subjects) >= 3)
        assert set(heard.subjects) == {subject}
        for other in ("/house/temp", "///house/temp"):
            with pytest.raises(CommandRefused) as forbidden:
                await client.subscribe(other).joined()
            assert forbidden.value.code == 4113
