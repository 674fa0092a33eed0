"""Token functions that fail, hang, cancel or give up: bounded, and never the end of a client that they did not mean."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from godwit.client import Client, ClientError, CommandRefused, Settings, Unauthorized
from godwit.client.backoff import HELD_MS, Faults
from godwit.client.codec.reply import Reply
from godwit.client.session import Session
from godwit.client.tokens import source
from tests.unit.client.peer import Peer
from tests.waiting import until

QUICK = Settings(reconnect_first_ms=5, reconnect_max_ms=20)


async def test_unauthorized_ends_the_client_and_whoever_waits_for_it() -> None:
    calls = 0

    async def token() -> str:
        nonlocal calls
        calls += 1
        raise Unauthorized("logged out")

    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, token=token, settings=QUICK) as client:
        with pytest.raises(Unauthorized, match="logged out"):
            await client.connected()
        with pytest.raises(Unauthorized):
            await client.publish("/a", 1)
    assert calls == 1 and peer.heard == []


async def test_unauthorized_at_a_renewal_ends_the_client() -> None:
    tokens = iter(["first"])

    async def token() -> str:
        try:
            return next(tokens)
        except StopIteration:
            raise Unauthorized("logged out") from None

    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, token=token, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        await subscription.joined()
        await peer.say({"notice": "token_expiring", "in_ms": 60_000})
        with pytest.raises(Unauthorized):
            await anext(subscription)


@pytest.mark.parametrize("how", ["cancels", "hangs", "raises", "wrong"])
async def test_function_that_fails_is_called_again_after_a_second(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "TOKEN_MS", 50)
    calls: list[float] = []

    async def token() -> Any:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) > 1:
            return "good"
        if how == "hangs":
            await asyncio.Event().wait()
        if how == "wrong":
            return 7
        raise asyncio.CancelledError if how == "cancels" else OSError("not now")

    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, token=token, settings=QUICK) as client:
        await client.connected()
        assert (await client.publish("/a", 1)).position is not None
    assert len(calls) == 2 and calls[1] - calls[0] >= 0.9


async def test_function_that_closes_its_client_closes_it() -> None:
    async def token() -> str:
        await client.close()
        return "late"

    async with asyncio.timeout(20), Peer() as peer:
        client = Client(peer.url, token=token, settings=QUICK)
        async with client:
            with pytest.raises(Exception, match="closed"):
                await client.connected()


def is_connected_again(peer: Peer, client: Client, times: int) -> bool:
    connects = [command for command in peer.heard if "connect" in command]
    return len(connects) == times and len(peer.connections) == 1 and client.is_connected


@pytest.mark.parametrize(
    "poison",
    ["{", "[[]]", '{"message":7,"content":1}', '{"gap":"/a","missed":{}}', '{"message":"/a","text":"\\ud800', b"\x01"],
)
async def test_frame_that_nobody_can_read_ends_the_client_the_second_time(poison: str | bytes) -> None:
    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, settings=QUICK) as client:
        for number in (1, 2):
            await until(functools.partial(is_connected_again, peer, client, number))
            await peer.say(poison)
        with pytest.raises(ClientError, match=r"cannot read .*twice in a row"):
            await client.publish("/a", 1)
        with pytest.raises(ClientError, match="twice in a row"):
            await client.connected()
        assert len([command for command in peer.heard if "connect" in command]) == 2


async def test_server_that_cannot_read_two_frames_in_a_row_ends_the_client_with_a_sentence_that_says_so() -> None:
    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, settings=QUICK) as client:
        subscription = client.subscribe("/a")
        for number in (1, 2):
            await until(functools.partial(is_connected_again, peer, client, number))
            await peer.say({"error": 4100, "name": "CommandMalformed", "reason": "two verbs"})
        with pytest.raises(
            ClientError, match=r"^the server cannot read a frame of this client \(CommandMalformed: two verbs\), twice"
        ):
            await anext(subscription)


def test_connection_that_held_for_a_minute_makes_the_next_broken_frame_a_first_one() -> None:
    faults = Faults()
    broken = [("a frame", 0), (None, 0), ("a frame", 0), ("a frame", HELD_MS), ("a frame", HELD_MS - 1)]
    assert [faults.lost(*each) is not None for each in broken] == [False, False, False, False, True]


def test_connections_that_were_never_served_make_the_next_broken_frame_no_first_one() -> None:
    session = Session(Settings())
    for fault, is_served in [("a frame", True), (None, False), (None, False), ("a frame", True)]:
        assert not session.is_over
        if is_served:
            session.opened(0, None)
            session.receive([Reply(session.commands()[0].id, "connected", ping_interval_ms=25_000)], 0)
        session.lost(1 if is_served else HELD_MS, fault=fault)
    assert isinstance(session.error, ClientError) and "twice in a row" in str(session.error)


async def test_server_that_sends_a_frame_too_long_twice_is_not_asked_a_third_time() -> None:
    few = Settings(reconnect_first_ms=5, reconnect_max_ms=20, frame_bytes_max=8_192)
    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, settings=few) as client:
        for number in (1, 2):
            await until(functools.partial(is_connected_again, peer, client, number))
            await peer.say({"message": "/a", "text": "x" * 8_192})
        with pytest.raises(ClientError, match="8192 bytes"):
            await client.publish("/a", 1)
        commands = [command["connect"]["frame_bytes_max"] for command in peer.heard if "connect" in command]
        assert commands == [8_192, 8_192]


async def test_a_server_that_answers_nothing_is_named_as_the_reason() -> None:
    settings = Settings(connect_timeout_ms=50, reconnect_first_ms=5, reconnect_max_ms=20)
    async with asyncio.timeout(20), Peer() as peer:
        peer.is_mute = True
        async with Client(peer.url, settings=settings) as client:
            await until(lambda: client.loss != "")
            assert client.loss == "the server did not answer connect"


async def test_requests_that_are_refused_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(peer: Peer, command: dict[str, Any]) -> dict[str, Any]:
        if "subscribe" in command:
            refused = {"error": 4113, "name": "SubscribeForbidden", "reason": "not allowed", "retry": False}
            return {"id": command["id"], **refused}
        return answer(peer, command)

    answer = Peer._answer
    monkeypatch.setattr(Peer, "_answer", refuse)
    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, settings=QUICK) as client:
        await client.connected()
        before = len(asyncio.all_tasks()), len(client._tasks)
        for _ in range(5):
            with pytest.raises(CommandRefused):
                await client.request("/a", 1)
        await until(lambda: (len(asyncio.all_tasks()), len(client._tasks)) == before)
