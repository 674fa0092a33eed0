"""aiomqtt, the asyncio face of Paho, as its own guide uses it."""

from __future__ import annotations

import asyncio

import aiomqtt
import pytest

from tests.mqtt.clients.conftest import Doors

WAIT_S = 20

pytestmark = pytest.mark.long


async def test_messages_are_iterated_over_as_they_come(doors: Doors) -> None:
    async with asyncio.timeout(WAIT_S), aiomqtt.Client(*doors.mqtt, protocol=aiomqtt.ProtocolVersion.V5) as client:
        await client.subscribe("aio/+/temperature", qos=1)
        for room in ("kitchen", "hall"):
            await client.publish(f"aio/{room}/temperature", payload=21.5, qos=2)
        got = []
        async for message in client.messages:
            got.append((str(message.topic), message.payload, message.qos))
            if len(got) == 2:
                break
        assert got == [("aio/kitchen/temperature", b"21.5", 1), ("aio/hall/temperature", b"21.5", 1)]


async def test_a_wills_message_and_a_retained_one(doors: Doors) -> None:
    will = aiomqtt.Will("aio/state", payload="offline", qos=1, retain=True)
    async with asyncio.timeout(WAIT_S):
        async with aiomqtt.Client(*doors.mqtt, will=will) as client:
            await client.publish("aio/state", "online", qos=1, retain=True)
        async with aiomqtt.Client(*doors.mqtt) as late:
            await late.subscribe("aio/state")
            message = await anext(aiter(late.messages))
            assert message.payload == b"online" and message.retain  # it left in order: the will is forgotten


async def test_a_client_comes_back_to_its_session(doors: Doors) -> None:
    async with asyncio.timeout(WAIT_S):
        async with aiomqtt.Client(*doors.mqtt, identifier="aio-session", clean_session=False) as client:
            await client.subscribe("aio/session", qos=1)
        async with aiomqtt.Client(*doors.mqtt) as sender:
            for n in range(10):
                await sender.publish("aio/session", str(n), qos=1)
        async with aiomqtt.Client(*doors.mqtt, identifier="aio-session", clean_session=False) as client:
            messages = aiter(client.messages)
            assert [int((await anext(messages)).payload) for _ in range(10)] == list(range(10))  # type: ignore[arg-type]  # bytes


async def test_twenty_clients_at_once_each_get_what_all_say(doors: Doors) -> None:
    async def take_part(number: int, start: asyncio.Barrier) -> set[bytes]:
        async with aiomqtt.Client(*doors.mqtt, identifier=f"aio-{number}") as client:
            await client.subscribe("aio/all/#", qos=1)
            await start.wait()
            await client.publish(f"aio/all/{number}", str(number), qos=1)
            got: set[bytes] = set()
            async for message in client.messages:
                got.add(message.payload)  # type: ignore[arg-type]  # bytes
                if len(got) == 20:
                    return got
        return set()

    start = asyncio.Barrier(20)
    async with asyncio.timeout(3 * WAIT_S):
        heard = await asyncio.gather(*(take_part(number, start) for number in range(20)))
    assert all(got == {str(n).encode() for n in range(20)} for got in heard)
