"""The client with a scripted server over a real WebSocket: behaviour that the pure tests cannot check."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from godwit.client import (
    Client,
    ClientClosed,
    ClientError,
    CommandRefused,
    Gap,
    Message,
    Position,
    ReplyTimeout,
    ResumePoint,
    SessionClosed,
    Settings,
    Status,
    SubscriptionExists,
)
from godwit.client.positions import PositionFile
from godwit.codes import Code
from tests.unit.client.peer import Peer

QUICK = Settings(reconnect_first_ms=5, reconnect_max_ms=20, items_max=4, answer_timeout_ms=200)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer() as peer:
        yield peer


async def test_messages_come_after_their_stand_whatever_is_cut(peer: Peer) -> None:
    seen = []
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        for number in range(20):
            await client.publish("/a", number)
            if number % 3 == 0:
                await peer.cut()
            seen.append((await anext(subscription)).json())
    assert seen == list(range(20))
    assert subscription.counts["joins"] > 3 and subscription.counts["missing"] == 0


async def test_publishes_wait_for_a_server_and_each_counts_once() -> None:
    async with asyncio.timeout(60), Peer() as nobody:
        url = nobody.url
    async with asyncio.timeout(60), Peer() as peer, Client([(url, 1.0), (peer.url, 0)], settings=QUICK) as client:
        receipts = await asyncio.gather(*(client.publish("/a", number) for number in range(100)))
    assert [str(each.position) for each in receipts] == [f"7.{number}" for number in range(1, 101)]
    assert peer.log["/a"] == list(range(100))


async def test_lost_acknowledgement_is_asked_again_under_the_same_number(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        await peer.connected.wait()
        peer.is_mute = True
        publish = asyncio.create_task(client.publish("/a", 1))
        while not any("publish" in command for command in peer.heard):
            await asyncio.wait([publish], timeout=0.01)
        peer.keys[str(next(each["number"] for each in peer.heard if "publish" in each))] = 9
        peer.is_mute = False
        await peer.cut()
        published = await publish
    assert published.is_duplicate and published.position == Position(7, 9)


async def test_slow_consumer_stops_the_reading_and_misses_nothing(peer: Peer) -> None:
    peer.log["/a"] = list(range(5_000))
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        await subscription.joined()
        seen = [(await anext(subscription)).json() for _ in range(5_000)]
    assert seen == list(range(5_000))
    assert subscription.counts["joins"] == 1


async def test_reader_that_publishes_for_each_message_does_not_wait_for_itself(peer: Peer) -> None:
    peer.log["/a"] = list(range(50))
    seen = []
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK) as client:
        async for message in client.subscribe("/a"):
            await client.publish("/b", message.json())
            seen.append(message.json())
            if len(seen) == 50:
                break
    assert seen == list(range(50)) == peer.log["/b"]


async def test_two_readers_one_of_which_never_reads(peer: Peer) -> None:
    peer.log |= {"/idle": list(range(500)), "/busy": list(range(500))}
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK) as client:
        client.subscribe("/idle")
        await client.publish("/c", 1)
        busy = client.subscribe("/busy")
        for number in range(500):
            if number % 100 == 0:
                await client.publish("/c", 1)
            assert (await anext(busy)).json() == number


async def test_items_show_gaps_and_statuses_in_their_places(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        items = client.subscribe("/a").items()
        assert isinstance(await anext(items), Status)
        await peer.say(
            {"message": "/a", "at": "7.1", "content": 1},
            {"gap": "/a", "after": "7.1", "at": "7.9", "reason": "expired", "missed": 8},
            {"message": "/a", "at": "7.9", "content": 9, "snapshot": True},
            {"message": "/a", "at": "7.9", "content": 9},
            {"message": "/a", "at": "7.10", "content": 10},
        )
        found = [await anext(items) for _ in range(4)]
    assert [type(each) for each in found] == [Message, Gap, Message, Message]
    assert [str(each.position) for each in found if isinstance(each, Message)] == ["7.1", "7.9", "7.10"]


async def test_items_go_on_after_a_timeout_around_one_of_them(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        async with contextlib.aclosing(subscription.items()) as first:
            assert isinstance(await anext(first), Status)
        items = subscription.items()  # closing an iterator ends nothing
        for number in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(items), 0.001)
            await client.publish("/a", number)
            found = await anext(items)
            assert isinstance(found, Message) and found.json() == number


async def test_closed_for_good_ends_every_wait_with_the_code(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        await subscription.joined()
        await peer.close(4000, "enough")
        with pytest.raises(SessionClosed, check=lambda error: error.code == Code.CLOSED_BY_OPERATOR):
            await anext(subscription)
        with pytest.raises(SessionClosed):
            await client.publish("/a", 1)


async def test_dead_peer_is_noticed_and_another_connection_made(peer: Peer) -> None:
    settings = Settings(reconnect_first_ms=5, ping_interval_ms=20, answer_timeout_ms=40, connect_timeout_ms=100)
    async with asyncio.timeout(60), Client(peer.url, settings=settings) as client:
        subscription = client.subscribe("/a")
        peer.is_mute = True
        while sum("connect" in command for command in peer.heard) < 2:
            await asyncio.wait([asyncio.ensure_future(peer.connected.wait())], timeout=0.01)
        peer.is_mute = False
        await subscription.joined()


async def test_reply_reaches_the_one_who_asked(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        asked = asyncio.create_task(client.request("/svc/time", {}))
        while not any("reply_to" in command for command in peer.heard):
            await asyncio.wait([asked], timeout=0.01)
        reply_to = next(each["reply_to"] for each in peer.heard if "reply_to" in each)
        pattern = reply_to.rpartition("/")[0] + "/*"
        await peer.say({"message": reply_to, "at": "7.1", "content": "noon", "pattern": pattern})
        assert (await asked).json() == "noon"
        with pytest.raises(ReplyTimeout):
            await client.request("/svc/time", {}, timeout_ms=20)


async def test_watch_yields_interest(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        watch = client.watch("/orders/**")
        while not any("watch" in command for command in peer.heard):
            await asyncio.wait([asyncio.ensure_future(peer.connected.wait())], timeout=0.01)
        await peer.say({"interest": "/orders/eu", "subscribers": True}, {"interest": "/other", "subscribers": True})
        change = await anext(watch)
    assert (change.subject, change.has_subscribers) == ("/orders/eu", True)
    with pytest.raises(StopAsyncIteration):
        await anext(watch)


async def test_positions_are_saved_and_started_from(peer: Peer, tmp_path: object) -> None:
    path = f"{tmp_path}/positions.json"
    peer.log["/a"] = list(range(10))
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK, positions=PositionFile(path)) as client:
        subscription = client.subscribe("/a")
        first = [(await anext(subscription)).json() for _ in range(4)]
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK, positions=PositionFile(path)) as client:
        subscription = client.subscribe("/a")
        second = [(await anext(subscription)).json() for _ in range(6)]
    assert first + second == list(range(10))


async def test_saved_place_that_a_gap_of_the_whole_pattern_made_nothing_is_forgotten(peer: Peer) -> None:
    positions: dict[str, object] = {"/a/*": {"after": {"/a/b": "6.9"}}, "/other": {"after": {"/other": "6.1"}}}
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK, positions=positions) as client:
        items = client.subscribe("/a/*").items()
        assert isinstance(await anext(items), Status)
        await peer.say({"gap": "/a/*", "after": None, "at": None, "reason": "epoch", "missed": None, "pattern": "/a/*"})
        assert isinstance(await anext(items), Gap)
        await client.publish("/c", 1)
    assert positions == {"/other": {"after": {"/other": "6.1"}}}


async def test_requests_are_possible_again_after_their_subscription_was_refused(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(command: dict[str, object]) -> dict[str, object]:
        return {"id": command["id"], "error": 4113, "name": "SubscribeForbidden", "reason": "no", "retry": False}

    answer = peer._answer
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        with monkeypatch.context() as patched:
            patched.setattr(peer, "_answer", lambda command: (refuse if "subscribe" in command else answer)(command))
            with pytest.raises(CommandRefused):
                await client.request("/svc/time", {})
        with pytest.raises(ReplyTimeout):
            await client.request("/svc/time", {}, timeout_ms=20)
    assert len([each for each in peer.heard if "subscribe" in each]) == 2


async def test_nothing_is_saved_of_requests_or_twice(peer: Peer) -> None:
    peer.log["/a"] = [1, 2]
    positions: dict[str, object] = {}
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK, positions=positions) as client:
        async with client.subscribe("/a") as subscription:
            await anext(subscription)
            assert not subscription.has_moved()
        assert subscription.is_ended
        with pytest.raises(ReplyTimeout):
            await client.request("/svc/time", {}, timeout_ms=20)
        async with client.subscribe("/a") as subscription:
            assert (await anext(subscription)).json() == 2
    assert positions == {"/a": {"after": {"/a": "7.2"}}}


async def test_error_in_the_readers_code_leaves_its_message_unhandled(peer: Peer) -> None:
    peer.log["/a"] = [1, 2]
    positions: dict[str, object] = {}
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(60), Client(peer.url, settings=QUICK, positions=positions) as client:
            async for message in client.subscribe("/a"):
                1 / (message.json() - 2)
    assert positions == {"/a": {"after": {"/a": "7.1"}}}


async def test_token_is_asked_at_each_connect_and_when_it_expires(peer: Peer) -> None:
    tokens = iter("abcdefgh")

    async def token() -> str:
        return next(tokens)

    async with asyncio.timeout(60), Client(peer.url, token=token, settings=QUICK) as client:
        await client.publish("/a", 1)
        await peer.say({"notice": "token_expiring", "in_ms": 100})
        while sum("connect" in command for command in peer.heard) < 2:
            await client.publish("/a", 1)
        await peer.cut()
        await client.publish("/a", 1)
    given = [each["connect"]["token"] for each in peer.heard if "connect" in each]
    assert given == ["a", "b", "c"]


async def test_client_that_has_not_begun_names_the_remedy(peer: Peer) -> None:
    with pytest.raises(ClientError, match="async with"):
        Client(peer.url).subscribe("/a")


async def test_waiting_for_the_connection_ends_with_it_or_with_the_reason(peer: Peer) -> None:
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        await client.connected()
        assert client.is_connected
        await peer.close(4000, "enough")
        while client.is_connected:
            await asyncio.wait([asyncio.ensure_future(peer.connected.wait())], timeout=0.01)
        with pytest.raises(SessionClosed):
            await client.connected()


async def test_closing_does_not_wait_for_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url, patient = f"ws://127.0.0.1:{silent.getsockname()[1]}", Settings(connect_timeout_ms=600_000)
        async with asyncio.timeout(60), Client(url, settings=patient) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.connected()


async def test_failing_token_is_logged_and_tried_again(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    tokens = iter(["", "good"])

    async def token() -> str:
        if not (given := next(tokens)):
            raise OSError("no token today")
        return given

    async with asyncio.timeout(60), Client(peer.url, token=token, settings=QUICK) as client:
        await client.connected()
    assert "no token" in caplog.text


async def test_token_that_cannot_be_renewed_is_logged_and_the_client_lives(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asyncio.Event()

    async def token() -> str:
        if peer.connected.is_set():
            asked.set()
            raise OSError("no token today")
        return "first"

    async with asyncio.timeout(60), Client(peer.url, token=token, settings=QUICK) as client:
        await client.connected()
        await peer.say({"notice": "token_expiring", "in_ms": 60_000})
        await asked.wait()
        assert (await client.publish("/a", 1)).position is not None
    assert "could not renew the token" in caplog.text


async def test_closed_client_says_so(peer: Peer) -> None:
    async with Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        with pytest.raises(SubscriptionExists):
            client.subscribe("/a")
        await client.close()
        with pytest.raises(ClientClosed):
            await client.publish("/a", 1)
        with pytest.raises(StopAsyncIteration):
            await anext(subscription)


async def test_who_is_cancelled_while_its_client_closes_is_cancelled(peer: Peer) -> None:
    """Else a program that opens one client after the other would go on for ever."""
    client = await Client(peer.url, settings=QUICK).__aenter__()
    await client.connected()
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)  # it is under way now, and waits for the connection's end
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


async def test_subscription_can_be_closed_and_made_again(peer: Peer) -> None:
    peer.log["/a"] = [1, 2, 3]
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        async with client.subscribe("/a") as subscription:
            assert (await anext(subscription)).json() == 1
        async with client.subscribe("/a", after=subscription.resume_point) as again:
            assert (await anext(again)).json() == 2
        async with client.subscribe("/a", after=ResumePoint({"/a": Position(7, 2)})) as again:
            assert (await anext(again)).json() == 3


async def test_join_larger_than_the_queue_does_not_wait_for_itself(peer: Peer) -> None:
    peer.log["/a/*"] = list(range(100))
    async with asyncio.timeout(60), Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a/*")
        await subscription.joined()
        assert [(await anext(subscription)).json() for _ in range(100)] == list(range(100))


async def test_redirect_is_not_followed_and_the_token_goes_nowhere(peer: Peer) -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 307 Elsewhere\r\nLocation: {peer.url}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()
        redirected.set()

    redirected = asyncio.Event()
    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, asyncio.timeout(60), Client(url, token="secret", settings=QUICK) as client:
        await redirected.wait()
        while not client.loss:
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0.005))])
        assert "307" in client.loss
    assert peer.heard == []
