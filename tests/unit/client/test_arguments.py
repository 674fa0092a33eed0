"""Every argument of every public method is checked at the call: it is named, and the client lives on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import godwit.client as public
from godwit.client import Client, ClientError, ReplyTimeout, Settings
from godwit.client.arguments import check_count, resume_point_of, seconds_of
from tests.unit.client.peer import Peer

SURROGATE = "\ud800"
NO_FLAG = [0, 1, "yes", 2.0]
NO_COUNT = [-1, True, 1.5, "1", float("nan"), 1 << 64]
NO_SUBJECT = ["a", "", SURROGATE, "/" + SURROGATE, 1, None, b"/a", "/a//b"]
BAD: dict[str, dict[str, list[Any]]] = {
    "Client": {
        "servers": ["", 1, None, b"ws://a", [1], ["ws://a", ("ws://b", "x")], [("ws://a",)]],
        "token": [1, "", SURROGATE, b"x"],
        "encoding": ["xml", 1, None],
        "positions": [1, "file", []],
        "on_save_failed": [1, "x", asyncio.sleep],
        "settings": [{}, 1],
        "ca_file": ["/nowhere/ca.pem"],
    },
    "Client.subscribe": {
        "selector": NO_SUBJECT,
        "after": [1, "7.42", {"/a": "7.42"}, {1: 2}, {"a": None}, True],
        "last": NO_COUNT,
        "snapshot": NO_FLAG,
        "on_gap": ["newest", 1, None, SURROGATE],
        "conflate_ms": [*NO_COUNT, 0],
    },
    "Client.publish": {
        "subject": [*NO_SUBJECT, "/a/*"],
        "content": [SURROGATE, {"x": SURROGATE}, float("inf"), {1, 2}, object()],
        "key": ["", SURROGATE, 1, b"x" * 16, "x" * 257],
        "reply_to": ["a", "/a/*", SURROGATE, 1],
        "retain": NO_FLAG,
        "merge": NO_FLAG,
        "guaranteed": NO_FLAG,
        "ack": ["x", 1, True, SURROGATE],
        "once": NO_FLAG,
    },
    "Client.remove_snapshot": {"subject": [*NO_SUBJECT, "/a/*"]},
    "Client.request": {
        "subject": [*NO_SUBJECT, "/a/*"],
        "content": [SURROGATE, {1, 2}],
        "timeout_ms": [-1, True, "1", None, float("nan")],
    },
    "Client.set_token": {"token": [1, "", SURROGATE, None, b"x"]},
    "Client.reply": {"request": [None, "/a"], "content": []},
    "Client.watch": {"selector": NO_SUBJECT},
}
GOOD: dict[str, dict[str, Any]] = {
    "Client.subscribe": {"selector": "/good"},
    "Client.publish": {"subject": "/good", "content": 1},
    "Client.request": {"subject": "/good", "content": 1},
    "Client.reply": {"content": 1},
    "Client": {"servers": "ws://a"},
}


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "kind", "error", "trace")]


def test_every_argument_of_every_public_method_has_bad_values_here() -> None:
    found = {"Client": parameters(Client.__init__)}
    for owner in ("Client", "Subscription", "Watch"):
        assert owner in public.__all__
        for name, function in inspect.getmembers(getattr(public, owner), inspect.isfunction):
            if not name.startswith("_") and parameters(function):
                found[f"{owner}.{name}"] = parameters(function)
    assert {name: list(bad) for name, bad in BAD.items()} == found


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Peer() as peer, Client(peer.url) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [(method, name, value) for method, bad in BAD.items() for name, values in bad.items() for value in values],
)
async def test_bad_argument_is_refused_by_name_and_the_client_lives(
    client: Client, method: str, name: str, value: Any
) -> None:
    given = GOOD.get(method, {}) | {name: value}
    with pytest.raises((ValueError, TypeError, OSError)) as told:
        outcome = Client(**given) if method == "Client" else getattr(client, method.partition(".")[2])(**given)
        if inspect.isawaitable(outcome):
            await outcome
    if name not in ("servers", "selector", "subject", "reply_to", "ca_file", "after"):
        assert name in str(told.value)
    async with asyncio.timeout(20):
        assert (await client.publish("/good", 1)).position is not None


@given(st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none()))
def test_a_time_is_taken_or_refused_and_never_overflows(value: Any) -> None:
    try:
        seconds = seconds_of("timeout_ms", value)
    except (TypeError, ValueError) as error:
        assert "timeout_ms" in str(error)
    else:
        assert seconds is None or 0 <= seconds < 1 << 31


@given(st.one_of(st.integers(), st.floats(), st.text(), st.dictionaries(st.text(), st.integers())))
def test_after_is_taken_or_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        if value == {}:
            raise ValueError("an empty mapping is a stand from nowhere")
        resume_point_of("/a", value)
    with pytest.raises((TypeError, ValueError)):
        check_count("last", value if not isinstance(value, int) else -1, 0)


@pytest.mark.parametrize("timeout_ms", [float("inf"), 1e300, 10**400], ids=["infinity", "1e300", "10^400"])
async def test_timeouts_of_any_length_do_not_fire(client: Client, timeout_ms: float) -> None:
    request = asyncio.create_task(client.request("/nobody", 1, timeout_ms=timeout_ms))
    await client.publish("/other", 1)
    assert not request.done()
    with pytest.raises(ReplyTimeout):
        await client.request("/nobody", 1, timeout_ms=0)
    request.cancel()
    assert Settings(connect_timeout_ms=10**12)


@pytest.mark.parametrize("value", [1, 1.5, 1e9, float("inf"), 1 << 40])
async def test_times_may_be_any_number_also_one_that_never_ends(value: float) -> None:
    names = [name for name in Settings.__slots__ if name.endswith("_ms") and name != "reconnect_first_ms"]
    given: Any = value
    settings = Settings(**dict.fromkeys(names, given))
    assert all(1 <= getattr(settings, name) <= 1 << 31 for name in names)
    longest = [name for name in names if name not in ("ping_interval_ms", "answer_timeout_ms", "connect_timeout_ms")]
    lasting = Settings(**dict.fromkeys(longest, given))
    async with asyncio.timeout(30), Peer() as peer, Client(peer.url, settings=lasting) as client:
        await client.publish("/a", 1)


@pytest.mark.parametrize("value", [0, -1, True, float("nan"), "1", None])
def test_no_time_is_no_setting(value: Any) -> None:
    with pytest.raises(ValueError, match="answer_timeout_ms"):
        Settings(answer_timeout_ms=value)


async def test_another_threads_loop_is_refused_at_once() -> None:
    async with asyncio.timeout(30), Peer() as peer, Client(peer.url) as client:
        subscription, watch = client.subscribe("/a"), client.watch("/w")
        await subscription.joined()

        async def call(work: Callable[[], Any]) -> None:
            with pytest.raises(ClientError, match="another event loop"):
                made = work()
                await made

        calls: list[Callable[[], Any]] = [
            lambda: client.publish("/a", 1),
            lambda: client.request("/a", 1),
            lambda: client.subscribe("/b"),
            lambda: client.watch("/b"),
            client.connected,
            client.close,
            subscription.joined,
            subscription.close,
            subscription.__anext__,
            watch.__anext__,
            watch.close,
        ]
        for work in calls:
            await asyncio.to_thread(asyncio.run, call(work))
        with pytest.raises(ClientError, match="another event loop"):
            await asyncio.to_thread(client.subscribe, "/c")
        await client.publish("/a", 1)
