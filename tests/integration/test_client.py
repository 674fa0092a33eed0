"""The client against a real node, on both wires: everything that a user can ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from godwit import testing
from godwit.client import (
    Client,
    CommandRefused,
    Gap,
    Kind,
    Message,
    Position,
    PositionFile,
    ResumePoint,
    Settings,
    Status,
)
from godwit.client.codec.encodings import EncodingName
from godwit.codes import Code

QUICK = Settings(reconnect_first_ms=4, reconnect_max_ms=40)
DEADLINE_S = 20


@pytest.fixture
async def node() -> AsyncIterator[testing.RunningNode]:
    async with testing.node() as running:
        yield running


@pytest.fixture(params=["json", "binary"])
def encoding(request: pytest.FixtureRequest) -> EncodingName:
    name: EncodingName = request.param
    return name


@pytest.fixture
async def client(node: testing.RunningNode, encoding: EncodingName) -> AsyncIterator[Client]:
    async with Client(node.url, encoding=encoding, settings=QUICK) as client:
        yield client


async def take(messages: AsyncIterator[Message], count: int) -> list[Message]:
    return [await anext(messages) for _ in range(count)]


@pytest.mark.parametrize(
    ("content", "kind"),
    [({"x": [1, 2.5, None]}, Kind.JSON), (None, Kind.JSON), ("tëxt", Kind.TEXT), (b"\x00\xff", Kind.BYTES)],
)
async def test_content_comes_as_it_went(client: Client, content: Any, kind: Kind) -> None:
    subscription = client.subscribe("/a/b")
    await subscription.joined()
    published = await client.publish("/a/b", content)
    [message] = await take(subscription, 1)
    assert (message.subject, message.position, message.kind) == ("/a/b", published.position, kind)
    read = {Kind.JSON: message.json, Kind.TEXT: message.text, Kind.BYTES: lambda: message.content}[kind]()
    assert read == content


async def test_positions_follow_each_other_and_messages_come_in_their_order(client: Client) -> None:
    subscription = client.subscribe("/a/b")
    await subscription.joined()
    published = await asyncio.gather(*(client.publish("/a/b", number) for number in range(500)))
    messages = await take(subscription, 500)
    assert [message.json() for message in messages] == list(range(500))
    assert [message.position for message in messages] == [each.position for each in published]
    assert [each.position.sequence for each in published if each.position] == list(range(1, 501))


async def test_new_subscriber_is_given_the_last_retained_message(client: Client) -> None:
    await client.publish("/a/b", {"error": "disk full"})
    await client.publish("/a/b", {"status": "ok"})
    await client.publish("/a/b", {"z": 9}, retain=False)
    for selector in ("/a/b", "/a/*"):
        [message] = await take(client.subscribe(selector), 1)
        assert message.is_snapshot and message.json() == {"status": "ok"}
        assert message.position is not None and message.position.sequence == 3


async def test_patches_are_merged_into_the_snapshot_and_say_so(client: Client) -> None:
    live = client.subscribe("/a/b", snapshot=False)
    await live.joined()
    await client.publish("/a/b", {"x": 1, "y": 1, "z": 1})
    await client.publish("/a/b", {"y": 2, "z": None}, merge=True)
    whole, patch = await take(live, 2)
    assert (whole.is_patch, patch.is_patch) == (False, True)
    assert patch.json() == {"y": 2, "z": None}
    [message] = await take(client.subscribe("/a/*"), 1)
    assert message.is_snapshot and not message.is_patch and message.json() == {"x": 1, "y": 2}


async def test_a_removed_snapshot_is_told_and_gone(client: Client) -> None:
    await client.publish("/a/b", {"on": True})
    live = client.subscribe("/a/b", snapshot=False)
    await live.joined()
    removed = await client.remove_snapshot("/a/b")
    [message] = await take(live, 1)
    assert message.is_removal and (message.position, message.content) == (removed.position, b"")
    with pytest.raises(CommandRefused, check=lambda error: error.code == Code.SNAPSHOT_MISSING):
        await client.remove_snapshot("/a/b")


async def test_live_only_and_last_and_after_choose_where_to_begin(client: Client) -> None:
    published = [await client.publish("/a/b", number) for number in range(5)]
    async with client.subscribe("/a/b", last=2) as last:
        assert [message.json() for message in await take(last, 2)] == [3, 4]
    assert published[1].position is not None
    async with client.subscribe("/a/b", after=published[1].position) as after:
        assert [message.json() for message in await take(after, 3)] == [2, 3, 4]
    async with client.subscribe("/a/b", snapshot=False) as live:
        await live.joined()
        await client.publish("/a/b", 5)
        assert [message.json() for message in await take(live, 1)] == [5]
    async with client.subscribe("/a/**", after={"/a/b": published[2].position or Position(1, 1)}) as pattern:
        assert [message.json() for message in await take(pattern, 3)] == [3, 4, 5]


async def test_pattern_goes_on_from_its_resume_token(
    client: Client, node: testing.RunningNode, encoding: EncodingName
) -> None:
    subscription = client.subscribe("/a/**")
    await subscription.joined()
    for number in range(10):
        await client.publish(f"/a/{number % 3}", number)
    assert [message.json() for message in await take(subscription, 6)] == list(range(6))
    subscription.handled()
    stand = subscription.resume_point
    async with Client(node.url, encoding=encoding) as other:
        assert [message.json() for message in await take(other.subscribe("/a/**", after=stand), 4)] == [6, 7, 8, 9]


async def test_place_that_cannot_be_served_is_a_gap_and_the_snapshot(client: Client) -> None:
    await client.publish("/a/b", 1)
    items = client.subscribe("/a/b", after=Position(1, 999)).items()
    found = [await anext(items) for _ in range(3)]
    assert [type(item).__name__ for item in found] == ["Status", "Gap", "Message"]


async def test_conflated_subscriber_gets_one_message_a_window(client: Client) -> None:
    subscription = client.subscribe("/a/b", conflate_ms=200)
    await subscription.joined()
    await asyncio.gather(*(client.publish("/a/b", {f"k{number}": number}, merge=True) for number in range(20)))
    merged: dict[str, int] = {}
    count = 0
    while count < 20:
        message = await anext(subscription)
        count += message.conflated or 1
        merged |= message.json()
    assert merged == {f"k{number}": number for number in range(20)}


async def test_standard_message_has_no_position(client: Client) -> None:
    subscription = client.subscribe("/a/b")
    await subscription.joined()
    assert (await client.publish("/a/b", 1, guaranteed=False)).position is None
    [message] = await take(subscription, 1)
    assert message.position is None


async def test_same_key_is_one_message(client: Client) -> None:
    first = await client.publish("/a/b", 1, key="k" * 16)
    second = await client.publish("/a/b", 1, key="k" * 16)
    assert (second.position, second.is_duplicate) == (first.position, True)
    with pytest.raises(CommandRefused, check=lambda error: error.code == Code.KEY_CONFLICT):
        await client.publish("/a/b", 2, key="k" * 16)


async def test_request_is_replied_to(client: Client, node: testing.RunningNode, encoding: EncodingName) -> None:
    async with Client(node.url, encoding=encoding) as worker:
        requests = worker.subscribe("/svc/double", snapshot=False)
        await requests.joined()

        async def work() -> None:
            async for request in requests:
                await worker.reply(request, request.json() * 2)

        working = asyncio.create_task(work())
        assert [(await client.request("/svc/double", number)).json() for number in range(5)] == [0, 2, 4, 6, 8]
        working.cancel()


async def test_watch_tells_who_listens(client: Client, node: testing.RunningNode) -> None:
    watch = client.watch("/orders/**")
    async with Client(node.url) as other:
        eu = other.subscribe("/orders/eu")
        await eu.joined()
        change = await anext(watch)
        assert (change.subject, change.has_subscribers) == ("/orders/eu", True)
        await eu.close()
        change = await anext(watch)
        assert (change.subject, change.has_subscribers) == ("/orders/eu", False)
    await watch.close()


async def test_what_the_node_refuses_is_raised_where_it_was_asked(client: Client) -> None:
    with pytest.raises(CommandRefused, check=lambda error: error.code == Code.ACK_UNAVAILABLE):
        await client.publish("/a/b", 1, ack="disk")  # type: ignore[arg-type]  # a plain word does as well
    with pytest.raises(CommandRefused, check=lambda error: error.code == Code.SUBJECT_INVALID):
        await client.publish("/$node/x", 1)


async def test_saved_positions_are_gone_on_from(
    node: testing.RunningNode, encoding: EncodingName, client: Client, tmp_path: object
) -> None:
    read: list[int] = []
    for selector in ("/a/b", "/a/*"):
        read.clear()
        async with Client(node.url, encoding=encoding) as first:  # so that a later begin is not at the snapshot
            await first.publish("/a/b", -1)
        for number in range(12):
            async with Client(
                node.url, encoding=encoding, positions=PositionFile(f"{tmp_path}/{number // 12}.json")
            ) as reader:
                subscription = reader.subscribe(selector)
                if number == 0:
                    await take(subscription, 1)
                else:
                    await client.publish("/a/b", number)
                    read += [message.json() for message in await take(subscription, 1)]
        assert read == list(range(1, 12))


async def test_resume_point_of_another_run_is_a_gap(client: Client) -> None:
    await client.publish("/a/b", 1)
    items = client.subscribe("/a/b", after=ResumePoint({"/a/b": Position(1, 1)})).items()
    found = [type(await anext(items)).__name__ for _ in range(3)]
    assert found == ["Status", "Gap", "Message"]


@pytest.mark.parametrize("kept", [3, 100])
async def test_who_comes_back_too_late_is_told_how_much_is_gone_and_given_the_present(
    encoding: EncodingName, kept: int
) -> None:
    async with testing.node({"limits": {"log_messages_max": kept}}) as node, asyncio.timeout(DEADLINE_S):
        positions: dict[str, Any] = {}
        async with Client(node.url, encoding=encoding, settings=QUICK, positions=positions) as client:
            for number in range(10):
                published = await client.publish("/a", number)
            first = published.position
            assert first is not None
            positions["/a"] = {"after": {"/a": str(Position(first.epoch, 4))}}
            items = client.subscribe("/a").items()
            status = await anext(items)
            assert isinstance(status, Status)
            if kept == 3:
                gap, snapshot = await anext(items), await anext(items)
                assert isinstance(gap, Gap) and (gap.missed, gap.position) == (6, first)
                assert isinstance(snapshot, Message) and (snapshot.json(), snapshot.is_snapshot) == (9, True)
            else:
                found = [await anext(items) for _ in range(6)]
                assert [each.json() for each in found if isinstance(each, Message)] == [4, 5, 6, 7, 8, 9]
            await client.publish("/a", 10)
            last = await anext(items)
            assert isinstance(last, Message) and last.json() == 10


async def test_a_drain_is_said_in_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "godwit.client")
    async with testing.node() as node, asyncio.timeout(DEADLINE_S), Client(node.url, settings=QUICK) as client:
        items = client.subscribe("/a").items()
        await anext(items)
        await node.node.hang_up()
        status = await anext(items)
        assert isinstance(status, Status) and status.reason.startswith("Draining: The node stops")
        lines = [line for line in caplog.messages if "disconnected from" in line]
        assert lines and not [line for line in lines if "{" in line]
