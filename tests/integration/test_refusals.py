"""The last refusals that operators see are those of every wire: a publish, a subscription, a packet, a request."""

import asyncio
from collections.abc import Sequence

import aiohttp
import pytest

from godwit import testing
from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule
from godwit.audit import AccessEvent, Audit, Event
from tests.mqtt.packets import V3, V5, Peer, connect, publish

DEADLINE_S = 30
TOKEN = "a token that nobody may read"


class Door(Authorizer):
    """Lets nobody in with a token, and nobody renew one."""

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return Refusal(f"no: {question.token}") if question.token else Grant("guest", [Rule.allow("/**")])


class Heard(Audit):
    """Keeps the refusals that are reported to it."""

    def __init__(self) -> None:
        self.refused: list[AccessEvent] = []

    async def take(self, events: Sequence[Event]) -> None:
        self.refused += [event for event in events if isinstance(event, AccessEvent) and event.what == "refused"]


DOOR = Door()


async def wait_for_refusal(node: testing.RunningNode, *words: str) -> dict[str, object]:
    """The newest that has all the words in its name or reason."""
    async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession() as http:
        while True:
            async with http.get(f"{node.admin_url}/v1/refusals") as answer:
                rows = (await answer.json())["rows"]
            for row in rows:
                if all(word in f"{row['code']} {row['name']} {row['reason']}" for word in words):
                    assert row["address"].startswith("127.0.0.1:") and row["connection"]
                    return dict(row)


@pytest.mark.parametrize("version", [V3, V5])
async def test_what_mqtt_is_refused_is_told(version: int) -> None:
    async with testing.node() as node:
        assert node.mqtt is not None
        address = (node.mqtt.host, node.mqtt.port)
        with Peer(address, version) as peer:
            peer.join(connect("a", version))
            peer.send(publish("$node/x", b"1", 1, 9, version))
            assert peer.receive()[0] >> 4 == 4
            await wait_for_refusal(node, "4114", "PublishForbidden")
            peer.send(publish("", b"1", 1, 10, version))
            await wait_for_refusal(node, "4100", "CommandMalformed", "MQTT 0x")
    async with testing.node({"access": {"mode": "basic", "publish_tokens": ["t" * 32]}}) as node:
        assert node.mqtt is not None
        with Peer((node.mqtt.host, node.mqtt.port), version) as peer:
            peer.join(connect("b", version))
            assert peer.granted(("$node/#", 0))[0] >= 0x80
            row = await wait_for_refusal(node, "4113", "SubscribeForbidden")
            assert row["identity"] == ""


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (publish("a", b"1") * 3, ("RateExceeded", "MQTT 0x96")),
        (publish("a/" * 2_000, b"1"), ("SubjectInvalid", "MQTT 0x90")),
        (publish("a", bytes(5_000)), ("MessageTooBig", "MQTT 0x95")),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "sent",
)
async def test_who_is_disconnected_is_listed_by_the_code_of_every_protocol(sent: bytes, words: tuple[str, ...]) -> None:
    limits = {"publishes_per_second_max": 1, "message_bytes_max": 4_096}
    async with testing.node({"limits": limits}) as node:
        assert node.mqtt is not None
        with Peer((node.mqtt.host, node.mqtt.port), V5) as peer:
            peer.join(connect("a", V5))
            peer.send(sent)
            assert peer.receive()[0] >> 4 == 14
            await wait_for_refusal(node, *words)


async def test_what_http_is_refused_is_told_once() -> None:
    async with testing.node() as node, aiohttp.ClientSession() as http:
        url = f"http://{node.client}/v1"
        for method, path, code in (
            ("POST", "messages?subject=no/slash", "4101"),
            ("GET", "snapshot?subject=/no", "4162"),
        ):
            async with http.request(method, f"{url}/{path}", json=1 if method == "POST" else None) as answer:
                assert (await answer.json())["code"] == int(code)
            await wait_for_refusal(node, code)
        many = [{"publish": "/a", "content": 1}, {"publish": "no/slash", "content": 1}, {"subscribe": "/a"}]
        async with http.post(f"{url}/messages", json=many) as answer:
            assert [row.get("error", 0) for row in await answer.json()] == [0, 4101, 4103]
        await wait_for_refusal(node, "4103", "CommandUnknown")
        async with http.get(f"{node.admin_url}/v1/refusals") as answer:
            codes = [row["code"] for row in (await answer.json())["rows"]]
        assert sorted(codes) == [4101, 4101, 4103, 4162]


async def log_in(node: testing.RunningNode, wire: str) -> None:
    """Shows the token over one wire, as the client `me` where it has a name there, and waits for the end."""
    assert node.mqtt is not None
    if wire.startswith("mqtt"):
        version = V5 if wire == "mqtt5" else V3
        with Peer((node.mqtt.host, node.mqtt.port), version) as peer:
            peer.send(connect("me", version, username="u", password=TOKEN.encode()))
            assert (await asyncio.to_thread(peer.receive))[3] != 0
        return
    async with aiohttp.ClientSession() as http:
        if wire == "http":
            bearer = {"Authorization": f"Bearer {TOKEN.replace(' ', '-')}"}
            async with http.get(f"http://{node.client}/v1/snapshot?subject=/a", headers=bearer) as answer:
                assert answer.status == 403
            return
        async with http.ws_connect(f"http://{node.client}/v1/live", protocols=["godwit.v1.json"]) as socket:
            if wire == "renewal":
                await socket.send_json({"id": 0, "connect": {"client": "me"}})
                assert (await socket.receive_json())["ok"] == "connected"
            await socket.send_json({"id": 1, "connect": {"token": TOKEN, "client": "me"}})
            async for _ in socket:
                pass
            assert socket.close_code == 4004


@pytest.mark.parametrize("wire", ["websocket", "renewal", "http", "mqtt3", "mqtt5"])
async def test_a_login_that_is_refused_is_told_once_on_every_wire(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr(f"{__name__}.HEARD", heard, raising=False)
    access = {"mode": "custom", "authorizer": f"{__name__}:DOOR"}
    audit = {"plugins": [f"{__name__}:HEARD"], "batch_ms": 10}
    async with testing.node({"access": access, "audit": audit}) as node:
        await log_in(node, wire)
        row = await wait_for_refusal(node, "no: ")
        assert [listed["number"] for listed in node.node.refusals.list()] == [row["number"]]
        stats = node.node.engine.stats()
        assert sum(shard["refused"] for shard in stats["shards"]) == 1
        await node.node.audits.stop()
    [event] = heard.refused
    assert (event.code, event.reason, event.address) == (row["code"], row["reason"], row["address"])
    assert event.client == ("" if wire == "http" else "me") and f"{event.connection:x}" == row["connection"]
    assert "nobody" not in str(row) + str(event)
