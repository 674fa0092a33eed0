"""Fields are user properties on MQTT 5 and fields on every other protocol; merging the messages gives the same state on each of them."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from godwit.client import Client, Message
from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import V3, V5, Peer, connect, publish, text
from tests.raw_client import raw_client

State = tuple[Any, dict[str, str | bytes]]


@pytest.fixture(scope="module")
def node() -> Iterator[Served]:
    with serve() as served:
        yield served


def ask(node: Served, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[Any, Any]:
    host, port = node["client"]
    data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
    sent = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(f"http://{host}:{port}{path}", data, sent)
    with urllib.request.urlopen(request, timeout=30) as response:
        read = response.read()
        return json.loads(read) if read else None, response.headers


def joined(node: Served, version: int = V5) -> Peer:
    peer = Peer(node.mqtt, version)
    peer.join(connect("", version))
    return peer


def users(properties: bytes) -> list[tuple[str, str]]:
    """The user properties of a message that has no others."""
    found, rest = [], properties
    while rest:
        assert rest[0] == 0x26, rest
        size = int.from_bytes(rest[1:3])
        name, rest = rest[3 : 3 + size].decode(), rest[3 + size :]
        size = int.from_bytes(rest[:2])
        found.append((name, rest[2 : 2 + size].decode()))
        rest = rest[2 + size :]
    return found


def test_user_properties_are_fields_elsewhere_and_come_unaltered_to_mqtt(node: Served) -> None:
    given = [("unit", "C"), ("site", "north"), ("unit", "K"), ("", "no name"), ("a\tb", "no name either")]
    properties = b"".join(b"\x26" + text(name) + text(value) for name, value in given)
    with joined(node) as peer, joined(node) as sender:
        peer.granted(("in/5", 0))
        sender.send(publish("in/5", b"21", retain=True, properties=properties))
        assert users(peer.message().properties) == given
    whole, headers = ask(node, "/v1/snapshot?subject=/in/5&as=message")
    assert whole["fields"] == {"site": "north", "unit": "K"} and headers["Godwit-Fields"] == "2"
    with joined(node) as sender, joined(node) as late:
        # A retained message takes the place of all that was retained [MQTT-3.3.1-5].
        sender.send(publish("in/5", b"22", retain=True, properties=b"\x26" + text("site") + text("south")))
        sender.quiet()
        late.granted(("in/5", 0))
        assert users(late.message().properties) == [("site", "south")]
    assert ask(node, "/v1/snapshot?subject=/in/5&as=message")[0]["fields"] == {"site": "south"}


def test_fields_come_to_mqtt_as_user_properties(node: Served) -> None:
    raw = base64.urlsafe_b64encode(b"\xff\x00").decode()
    with joined(node) as peer, joined(node, V3) as old:
        peer.granted(("out/1", 0))
        old.granted(("out/1", 0))
        ask(node, f"/v1/messages?subject=/out/1&field.unit=C&field_bytes.raw={raw}&field.a%20b=%C3%A4", 21)
        ask(node, "/v1/messages", [{"publish": "/out/1", "content": {"x": 1}, "merge": True, "fields": {"unit": None}}])
        first, second = peer.message(), peer.message()
        assert users(first.properties) == [("a b", "ä"), ("raw;base64", "/wA="), ("unit", "C")]
        assert users(second.properties) == [("godwit-merge", "true"), ("unit;removed", "")]
        assert [old.message().payload, old.message().payload] == [b"21", b'{"x":1}']
    with joined(node) as late:
        late.granted(("out/1", 0))
        shown = late.message()
        assert users(shown.properties) == [("a b", "ä"), ("raw;base64", "/wA=")]
        assert shown.payload == b'{"x":1}'


@pytest.mark.parametrize("qos", [0, 1])
def test_user_properties_of_a_removal_come_to_mqtt_alone(node: Served, qos: int) -> None:
    properties = b"\x26" + text("v") + text("1")
    with joined(node) as peer, joined(node) as sender:
        peer.granted((f"gone/{qos}", 0))
        sender.send(publish(f"gone/{qos}", b"21", retain=True, properties=b"\x26" + text("unit") + text("C")))
        sender.send(publish(f"gone/{qos}", b"", qos, retain=True, properties=properties))
        assert [users(peer.message().properties) for _ in range(2)] == [[("unit", "C")], [("v", "1")]]
        asyncio.run(check_removal(node, f"/gone/{qos}", sender, publish(f"gone/{qos}", b"", qos, 2, retain=True)))


async def check_removal(node: Served, subject: str, sender: Peer, removal: bytes) -> None:
    """Of a message with fields, and one without, each removed by a message with a user property."""
    async with raw_client("ws://{}:{}".format(*node["client"])) as reader:
        await reader.ask({"id": 1, "subscribe": subject})
        topic, with_property = subject[1:], b"\x26" + text("v") + text("1")
        for sent in (b"\x26" + text("unit") + text("K"), b""):
            sender.send(publish(topic, b"22", 0, retain=True, properties=sent))
            sender.send(publish(topic, b"", 0, retain=True, properties=with_property))
        sender.send(removal)
        removals = []
        while len(removals) < 3:
            message = await reader.receive()
            assert message is not None
            if message.get("removed"):
                removals.append(message.get("fields"))
        assert removals == [{"unit": None}, None, None]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("field.=x", 4104),
        ("field.a=1&field.a=2", 4104),
        ("field.a=1&field_bytes.a=", 4104),
        ("field_bytes.a=%3F", 4104),
        ("field.a%07=1", 4104),
        ("&".join(f"field.f{number}=" for number in range(65)), 4132),
    ],
)
def test_a_query_with_fields_that_are_not_valid_is_refused(node: Served, query: str, code: int) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(node, f"/v1/messages?subject=/refused&{query}", 1)
    assert json.loads(refused.value.read())["code"] == code


SCRIPT: list[dict[str, Any]] = [
    {"content": {"a": 1}, "fields": {"f": "1", "g": "1"}},
    {"content": None, "fields": {"g": None}},
    {"content": {"b": 2}, "fields_bytes": {"h": "/wA="}},
    {"content": {"a": 3}, "merge": True, "fields": {"f": "2"}},
    {"content": {"b": None, "c": 4}, "merge": True},
    {"removed": True},
    {"content": {"d": 5}, "fields": {"i": "1"}},
    {"content": {"e": 6}, "merge": True},
]


def fold(state: State, content: Any, fields: dict[str, Any], *, is_patch: bool, is_removal: bool) -> State:
    if is_removal:
        return None, {}
    content_before, fields_before = state
    if is_patch:
        base = content_before if isinstance(content_before, dict) else {}
        content = {name: value for name, value in {**base, **content}.items() if value is not None}
    put = {**fields_before, **fields}
    return content, {name: value for name, value in put.items() if value is not None}


def fold_object(state: State, message: dict[str, Any]) -> State:
    decoded = {name: base64.b64decode(value) for name, value in message.get("fields_bytes", {}).items()}
    fields = {**message.get("fields", {}), **decoded}
    facts = {"is_patch": message.get("merge", False), "is_removal": message.get("removed", False)}
    return fold(state, message.get("content"), fields, **facts)


def fold_mqtt(state: State, payload: bytes, properties: bytes) -> State:
    fields: dict[str, Any] = {}
    is_patch = False
    for name, value in users(properties):
        plain, _, form = name.rpartition(";")
        if name == "godwit-merge":
            is_patch = True
        elif form == "base64":
            fields[plain] = base64.b64decode(value)
        elif form == "removed":
            fields[plain] = None
        else:
            fields[name] = value
    content = json.loads(payload) if payload else None
    return fold(state, content, fields, is_patch=is_patch, is_removal=not payload)


def test_who_folds_what_comes_has_the_state_on_every_protocol(node: Served) -> None:
    asyncio.run(fold_everywhere(node))


async def fold_everywhere(node: Served) -> None:
    subject, url = "/fold", "ws://{}:{}".format(*node["client"])
    states: dict[str, State] = dict.fromkeys(("json", "binary", "http", "mqtt"), (None, {}))
    async with Client(url, encoding="json") as by_json, Client(url, encoding="binary") as by_binary:
        readers = {"json": by_json.subscribe(subject), "binary": by_binary.subscribe(subject)}
        for reader in readers.values():
            await reader.joined()
        with joined(node) as peer:
            peer.granted(("fold", 0))
            for step in SCRIPT:
                [answer], _ = await asyncio.to_thread(ask, node, "/v1/messages", [{"publish": subject, **step}])
                for name, reader in readers.items():
                    heard = await anext(reader)
                    assert isinstance(heard, Message)
                    facts = {"is_patch": heard.is_patch, "is_removal": heard.is_removal}
                    content = None if heard.is_removal else heard.json()
                    states[name] = fold(states[name], content, dict(heard.fields), **facts)
                got = peer.message()
                states["mqtt"] = fold_mqtt(states["mqtt"], got.payload, got.properties)
                query = f"/v1/messages?subject={subject}&last=1"
                [read], _ = await asyncio.to_thread(ask, node, query)
                assert read["at"] == answer["at"]
                states["http"] = fold_object(states["http"], read)
                shown: State = (None, {})
                if "removed" not in step:
                    whole, _ = await asyncio.to_thread(ask, node, f"/v1/snapshot?subject={subject}&as=message")
                    shown = fold_object((None, {}), whole)
                assert states == dict.fromkeys(states, shown), step
