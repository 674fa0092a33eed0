"""An authorizer that fails or is late: every protocol reports it with its own code, other commands are not affected, and the
same command sent again is asked again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from godwit import testing
from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion
from godwit.codes import CODES, Code
from tests.hostile.peer import Peer, request
from tests.mqtt import packets

SILENT, UNAVAILABLE = 4125, 4204
SENTENCE = CODES[Code.AUTHORIZER_TIMEOUT].sentence.encode()
V3, V5 = packets.V3, packets.V5


class Moody(Authorizer):
    """Lets everybody in and is asked about each selector; it raises, or hangs, while its database is down."""

    mood = "well"

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        if question.token != "welcome":
            await self.think()
        return Grant(question.token or "anybody", [Rule.ask("/**"), Rule.allow("/free/**")])

    async def subscribe(self, question: SelectorQuestion) -> bool:
        if question.selector != "/always":
            await self.think()
        return True

    publish = subscribe

    async def think(self) -> None:
        if self.mood == "raises":
            raise RuntimeError("no database")
        if self.mood == "hangs":
            await asyncio.Event().wait()


MOODY = Moody()


@pytest.fixture(params=["raises", "hangs"])
async def node(request: pytest.FixtureRequest) -> AsyncIterator[testing.RunningNode]:
    # A busy machine must not look like a hanging authorizer: only the test that hangs waits for the timeout.
    timeout_ms = 1_000 if request.param == "hangs" else 60_000
    access = {"mode": "custom", "authorizer": f"{__name__}:MOODY", "authorizer_timeout_ms": timeout_ms}
    async with testing.node({"access": access}) as running:
        MOODY.mood = request.param
        yield running
    MOODY.mood = "well"


@asynccontextmanager
async def mqtt(
    node: testing.RunningNode, version: int, mood: str, **more: Any
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client that came while all was well, and since when it is not."""
    assert node.mqtt is not None
    reader, writer = await asyncio.open_connection(node.mqtt.host, node.mqtt.port)
    try:
        MOODY.mood = "well"
        writer.write(packets.connect("c", version, **more))
        assert (await read_packet(reader))[3] == 0
        MOODY.mood = mood
        yield reader, writer
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # one turn of the loop, in which it is let go


async def read_packet(reader: asyncio.StreamReader) -> bytes:
    """The next packet; empty where the server has closed."""
    try:
        head = await reader.readexactly(2)
        while head[-1] > 127:
            head += await reader.readexactly(1)
        length = sum((byte & 127) << 7 * place for place, byte in enumerate(head[1:]))
        return head + await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return b""


async def test_a_command_over_websocket_is_refused_as_one_that_may_be_sent_again(node: testing.RunningNode) -> None:
    mood, MOODY.mood = MOODY.mood, "well"
    async with Peer.live(node.client.host, node.client.port) as peer:

        async def try_all(*subjects: str) -> list[Any]:
            verbs: list[dict[str, Any]] = [{"subscribe": ""}, {"publish": "", "content": 1}, {"watch": ""}]
            sent = [{**verb, next(iter(verb)): subject} for verb in verbs for subject in subjects]
            await peer.say(*({"id": number, **command} for number, command in enumerate(sent)))
            answers: dict[int, Any] = {}
            while len(answers) < len(sent):
                one = await peer.hear()
                assert "close" not in one
                if "id" in one:
                    answers[one["id"]] = (one["error"], one["retry"]) if "error" in one else one["ok"]
            return [answers[number] for number in range(len(sent))]

        await peer.say({"id": 0, "connect": {}})
        assert (await peer.hear())["ok"] == "connected"
        MOODY.mood = mood
        fine, no = ["subscribed", "published", "watching"], (SILENT, True)
        answers = await try_all("/a", "/always")
        assert answers == [no, fine[0], no, fine[1], no, fine[2]], "and what is asked beside it is answered"
        MOODY.mood = "well"
        assert await try_all("/a") == fine, "nobody was denied for good"
        MOODY.mood = mood
        assert await try_all("/a") == fine, "an answer holds, a failure does not"


async def test_a_request_over_http_is_503_with_retry_after(node: testing.RunningNode) -> None:
    mood, MOODY.mood = MOODY.mood, "well"
    async with Peer.open(node.client.host, node.client.port) as peer:
        await peer.say(request("GET", "/v1/messages?subject=/free"))
        assert await peer.status() == 200
        MOODY.mood = mood
        for method, target in (
            ("GET", "/v1/messages?subject=/a"),
            ("GET", "/v1/messages?subject=/free&subject=/a"),
            ("GET", "/v1/snapshot?subject=/a"),
            ("GET", "/v1/stream?subject=/a"),
            ("POST", "/v1/messages?subject=/a"),
        ):
            await peer.say(request(method, target, "Content-Type: application/json", body=b"1" * (method == "POST")))
            head = await peer.head()
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = json.loads(await peer.reader.readexactly(length))
            assert head.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in head, target
            assert (body["code"], body["retry"], body["title"]) == (SILENT, True, "AuthorizerTimeout"), target
        batch = [{"id": n, "publish": name, "content": n} for n, name in enumerate(("/always", "/a", "/free"))]
        body_of_batch = json.dumps(batch).encode()
        await peer.say(request("POST", "/v1/messages", "Content-Type: application/json", body=body_of_batch))
        status, raw = await peer.answer()
        assert (status, [one.get("error") for one in json.loads(raw)]) == (200, [None, SILENT, None])
        MOODY.mood = "well"
        await peer.say(request("POST", "/v1/messages?subject=/a", "Content-Type: application/json", body=b"1"))
        assert await peer.status() == 201, "asked anew, on the same connection"


async def test_whoever_connects_is_told_to_come_again(node: testing.RunningNode) -> None:
    async with Peer.live(node.client.host, node.client.port) as peer:
        await peer.say({"id": 1, "connect": {}})
        assert (await peer.hear()).get("close") == UNAVAILABLE
    for target in ("/v1/stream?subject=/free", "/v1/messages?subject=/free", "/v1/snapshot?subject=/free"):
        async with Peer.open(node.client.host, node.client.port) as peer:
            await peer.say(request("GET", target))
            head = await peer.head()
            assert head.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in head
    assert node.mqtt is not None
    for version, says in ((V5, 0x88), (V3, 3)):
        reader, writer = await asyncio.open_connection(node.mqtt.host, node.mqtt.port)
        writer.write(packets.connect("c", version))
        assert (await read_packet(reader))[3] == says
        assert await read_packet(reader) == b""
        writer.close()


@pytest.mark.parametrize("version", [V5, V3])
async def test_a_filter_of_mqtt_is_refused_alone_and_may_be_asked_for_again(
    node: testing.RunningNode, version: int
) -> None:
    async with mqtt(node, version, MOODY.mood) as (reader, writer):
        writer.write(packets.subscribe(("free/a", 1), ("a", 1), ("always", 1), ("b/#", 1), version=version))
        suback = await read_packet(reader)
        no = 0x83 if version == V5 else 0x80
        assert suback[-4:] == bytes([1, no, 1, no])
        assert (SENTENCE in suback) == (version == V5)
        MOODY.mood = "well"
        writer.write(packets.subscribe(("a", 1), ("b/#", 1), version=version))
        assert (await read_packet(reader))[-2:] == b"\x01\x01"


async def test_a_reason_is_put_into_words_only_for_who_wants_them(node: testing.RunningNode) -> None:
    async with mqtt(node, V5, MOODY.mood, properties=b"\x17\x00") as (reader, writer):
        writer.write(packets.subscribe(("a", 1)) + packets.publish("a", b"1", 1, 7))
        assert await read_packet(reader) == packets.packet(0x90, b"\0\x01\0\x83")
        assert await read_packet(reader) == packets.packet(0x40, b"\0\x07\x83")


async def test_a_publish_of_mqtt_5_is_answered_and_the_same_again_is_taken(node: testing.RunningNode) -> None:
    mood = MOODY.mood
    async with mqtt(node, V5, mood) as (reader, writer):
        for qos, kind in ((1, 0x40), (2, 0x50)):
            MOODY.mood = mood
            writer.write(packets.publish(f"a/{qos}", b"1", qos, 7))
            answer = await read_packet(reader)
            assert (answer[0], answer[2:5]) == (kind, b"\0\x07\x83") and SENTENCE in answer
            MOODY.mood = "well"
            writer.write(packets.publish(f"a/{qos}", b"1", qos, 7))
            assert (await read_packet(reader))[:4] == bytes([kind, 2, 0, 7])


@pytest.mark.parametrize(("version", "qos"), [(V5, 0), (V3, 0), (V3, 1), (V3, 2)])
async def test_a_publish_that_cannot_be_answered_with_a_no_is_not_dropped_in_silence(
    node: testing.RunningNode, version: int, qos: int
) -> None:
    async with mqtt(node, version, MOODY.mood) as (reader, writer):
        writer.write(packets.publish("a", b"1", qos, 7, version))
        last = await read_packet(reader)
        if version == V5:
            assert last[0] == 0xE0 and last[2] == 0x89 and SENTENCE in last
            last = await read_packet(reader)
        assert last == b""


@pytest.mark.parametrize(("version", "says"), [(V5, 0x88), (V3, 3)])
async def test_a_will_that_nobody_could_judge_lets_nobody_in_for_now(
    node: testing.RunningNode, version: int, says: int
) -> None:
    assert node.mqtt is not None
    for will, code in (("wills/a", says), ("free/a", 0)):
        reader, writer = await asyncio.open_connection(node.mqtt.host, node.mqtt.port)
        writer.write(packets.connect("c", version, will=(will, b"gone"), username="welcome"))
        assert (await read_packet(reader))[3] == code
        writer.close()
