"""Bug reports of users of other clients, tried with this client and a real node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from godwit import testing
from godwit.client import Client, ReplyTimeout, Settings, Subscription
from godwit.client.codec.encodings import EncodingName
from tests.waiting import until

SETTINGS = Settings(reconnect_first_ms=5, reconnect_max_ms=20, items_max=100)
DEADLINE_S = 30


@pytest.fixture
async def node() -> AsyncIterator[testing.RunningNode]:
    async with testing.node() as running:
        yield running


@pytest.fixture(params=["json", "binary"])
async def client(node: testing.RunningNode, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    encoding: EncodingName = request.param
    async with asyncio.timeout(DEADLINE_S), Client(node.url, encoding=encoding, settings=SETTINGS) as client:
        yield client


async def joined(client: Client, selector: str) -> Subscription:
    subscription = client.subscribe(selector, snapshot=False)
    await subscription.joined()
    return subscription


async def publish(client: Client, subject: str, count: int) -> None:
    await asyncio.gather(*(client.publish(subject, number) for number in range(count)))


async def take(subscription: Subscription, count: int) -> list[object]:
    return [(await anext(subscription)).json() for _ in range(count)]


async def test_token_function_may_subscribe_while_the_client_connects(node: testing.RunningNode) -> None:
    subscriptions: list[Subscription] = []

    def token() -> str:  # not asynchronous: that is taken too
        if not subscriptions:
            subscriptions.append(client.subscribe("/token", snapshot=False))
        return "any"

    async with asyncio.timeout(DEADLINE_S), Client(node.url, token=token, settings=SETTINGS) as client:
        await client.connected()
        await subscriptions[0].joined()
        await publish(client, "/token", 3)
        assert await take(subscriptions[0], 3) == [0, 1, 2]
        assert subscriptions[0].counts["joins"] == 1


async def test_reader_that_publishes_for_each_message_does_not_stand_still(client: Client) -> None:
    relayed, source = await joined(client, "/relayed"), await joined(client, "/source")

    async def relay() -> None:
        async for message in source:
            await client.publish("/relayed", message.json())

    relaying = asyncio.create_task(relay())
    publishing = asyncio.create_task(publish(client, "/source", 200))
    assert await take(relayed, 200) == [*range(200)]
    await publishing
    relaying.cancel()


async def test_reader_that_raises_holds_up_nobody_else(client: Client) -> None:
    failing, other = await joined(client, "/shared"), await joined(client, "/*")

    async def fail() -> None:
        async for _ in failing:
            raise RuntimeError("the user's own")

    reading = asyncio.create_task(fail())
    await publish(client, "/shared", 300)
    with pytest.raises(RuntimeError, match="the user's own"):
        await reading
    assert await take(other, 300) == [*range(300)]


async def test_wait_that_is_cancelled_loses_nothing(client: Client) -> None:
    subscription = await joined(client, "/race")
    publishing = asyncio.create_task(publish(client, "/race", 50))
    found: list[object] = []
    while len(found) < 50:
        try:
            async with asyncio.timeout(0.0005):
                found.append((await anext(subscription)).json())
        except TimeoutError:
            continue
    await publishing
    assert found == [*range(50)]


async def test_publish_that_is_cancelled_leaves_the_others_alone(client: Client) -> None:
    subscription = await joined(client, "/cancelled")
    tasks = [asyncio.create_task(client.publish("/cancelled", number)) for number in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(not isinstance(outcome, BaseException) for outcome in ended[1::2])
    await client.publish("/cancelled", "last")
    found: list[int | None] = []
    while not found or found[-1] is not None:
        message = await anext(subscription)
        found.append(message.json() if message.kind == "json" else None)
    odd = [number for number in found if number is not None and number % 2]
    assert odd == [*range(1, 50, 2)]  # each that was not cancelled, once and in order


async def test_subscription_made_and_closed_while_another_is_read_is_as_good_as_any(client: Client) -> None:
    await client.publish("/inner", 7)
    outer = await joined(client, "/outer")
    await publish(client, "/outer", 5)
    for _ in range(5):
        await anext(outer)
        async with client.subscribe("/inner", last=1) as inner:
            assert await take(inner, 1) == [7]


async def test_close_that_is_cancelled_or_comes_twice_ends_the_client(node: testing.RunningNode) -> None:
    async with asyncio.timeout(DEADLINE_S):
        for url in (node.url, "ws://127.0.0.1:9", "ws://[::1]:9"):
            async with Client(url, settings=SETTINGS) as client:
                subscription = client.subscribe("/a")
                closing = asyncio.create_task(client.close())
                await asyncio.sleep(0)
                closing.cancel()
                await asyncio.gather(closing, return_exceptions=True)
                await asyncio.gather(client.close(), client.close())
                assert subscription.is_ended
            assert not client.is_connected


async def test_name_with_several_addresses_is_found(node: testing.RunningNode) -> None:
    url = node.url.replace("127.0.0.1", "localhost")
    async with asyncio.timeout(DEADLINE_S), Client(url, settings=SETTINGS) as client:
        await client.connected()


async def test_request_that_timed_out_takes_no_answer_from_the_next_one(client: Client) -> None:
    asked = await joined(client, "/slow")
    with pytest.raises(ReplyTimeout):
        await client.request("/slow", 1, timeout_ms=20)
    late = await anext(asked)
    next_one = asyncio.create_task(client.request("/slow", 2))
    fresh = await anext(asked)
    await client.reply(late, "late")
    await client.reply(fresh, "fresh")
    assert (await next_one).text() == "fresh"
    await until(lambda: client.is_connected)
