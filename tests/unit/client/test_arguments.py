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
from godwit.client import Client, ClientError, JsonText, Position, ReplyTimeout, ResumePoint, Settings
from godwit.client.arguments import check_count, resume_point_of, seconds_of
from tests.unit.client.peer import Peer


class Unshowable:
    """A value whose own code fails."""

    def __repr__(self) -> str:
        raise RuntimeError("the user's own")

    __str__ = __repr__


SURROGATE = "\ud800"
HUGE = 10**5_000  # Python refuses to write it down
EVIL = [Unshowable(), HUGE]
NO_FLAG = [0, 1, "yes", 2.0, *EVIL]
NO_COUNT = [-1, True, 1.5, "1", float("nan"), 1 << 64, *EVIL]
NO_SUBJECT = ["a", "", SURROGATE, "/" + SURROGATE, 1, None, b"/a", "/", *EVIL]
NO_JSON = ["", "{", "1 2", "NaN", '1,"key":"another field of the command"', '"\x00"', SURROGATE]
NO_TOKEN = [
    1,
    "",
    SURROGATE,
    b"hidden",
    {"token": "hidden"},
    "hidden\n",
    "hidden\x00",
    "hidden é",
    " hidden ",
    "x" * 65_537,
    *EVIL,
]
NO_ADDRESS = [
    "ws://a..b",
    f"ws://{'a' * 64}.example",
    "ws://[::1",
    "ws://\ud800",
    "ws://a/\x00",
    "ws://a:x",
    "ws://a:0",
]


def resume_points() -> list[Any]:
    """Classes that are public, and were made with what they cannot hold."""
    given: list[Any] = [{"/a": "7.42"}, {"/a": None}, {"a": Position(1, 2)}, [1], {7: Position(1, 2)}]
    numbers: list[Any] = [-1, 1 << 64, 1.5, "x", None, HUGE]
    positions = [*(Position(number, 1) for number in numbers), *(Position(1, number) for number in numbers)]
    made: Any = ResumePoint
    others = [made(since=5), made(since=SURROGATE), made(node=7), made(recent=-1), made(is_whole=2)]
    return [*map(made, given), *positions, *({"/a": each} for each in positions), *others]


CONTROL = [{f"a{character}": "x"} for character in "\n\0\x7f\x85"]
BAD: dict[str, dict[str, list[Any]]] = {
    "Client": {
        "servers": [
            *(
                "",
                1,
                None,
                b"ws://a",
                [1],
                ["ws://a", ("ws://b", "x")],
                [("ws://a",)],
                [],
                {"ws://a": 1},
                iter(["ws://a"]),
            ),
            *([("ws://a", weight)] for weight in (True, -1, float("nan"), float("inf"), 10**400, "1", None, *EVIL)),
            *NO_ADDRESS,
            *(["ws://a", address] for address in NO_ADDRESS),
            *EVIL,
        ],
        "token": NO_TOKEN,
        "encoding": ["xml", 1, None, *EVIL],
        "positions": [1, "file", [], *EVIL],
        "on_save_failed": [1, "x", asyncio.sleep, *EVIL],
        "settings": [{}, 1, *EVIL],
        "ca_file": ["/nowhere/ca.pem", 5, b"/nowhere", *EVIL],
    },
    "Client.subscribe": {
        "selector": NO_SUBJECT,
        "after": [1, "7.42", {"/a": "7.42"}, {1: 2}, {"a": None}, True, *EVIL, *resume_points()],
        "last": NO_COUNT,
        "snapshot": NO_FLAG,
        "on_gap": ["newest", 1, None, SURROGATE, *EVIL],
        "conflate_ms": [*NO_COUNT, 0],
    },
    "Client.publish": {
        "subject": [*NO_SUBJECT, "/a/*"],
        "content": [
            SURROGATE,
            {"x": SURROGATE},
            float("inf"),
            {1, 2},
            object(),
            *EVIL,
            [HUGE],
            *map(JsonText, NO_JSON),
        ],
        "key": ["", SURROGATE, 1, b"x" * 16, "x" * 257, *EVIL],
        "reply_to": ["a", "/a/*", SURROGATE, 1, *EVIL],
        "retain": NO_FLAG,
        "merge": NO_FLAG,
        "fields": [
            1,
            "x",
            ["a"],
            {"": "x"},
            {1: "x"},
            {"a": 1},
            {"x" * 257: ""},
            {"a": SURROGATE},
            {SURROGATE: ""},
            *CONTROL,
        ],
        "guaranteed": NO_FLAG,
        "ack": ["x", 1, True, SURROGATE, *EVIL],
        "once": NO_FLAG,
    },
    "Client.remove_snapshot": {"subject": [*NO_SUBJECT, "/a/*"]},
    "Client.request": {
        "subject": [*NO_SUBJECT, "/a/*"],
        "content": [SURROGATE, {1, 2}, JsonText("{")],
        "timeout_ms": [-1, True, "1", None, float("nan"), Unshowable()],
    },
    "Client.set_token": {"token": [*NO_TOKEN, None]},
    "Client.reply": {"request": [None, "/a", *EVIL], "content": []},
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


CASES = [
    pytest.param(method, name, value, id=f"{method}-{name}-{place}")
    for method, bad in BAD.items()
    for name, values in bad.items()
    for place, value in enumerate(values)
]


@pytest.mark.parametrize(("method", "name", "value"), CASES)
async def test_bad_argument_is_refused_by_name_and_the_client_lives(
    client: Client, method: str, name: str, value: Any
) -> None:
    given = GOOD.get(method, {}) | {name: value}
    with pytest.raises((ValueError, TypeError, OSError)) as raised:
        outcome = Client(**given) if method == "Client" else getattr(client, method.partition(".")[2])(**given)
        if inspect.isawaitable(outcome):
            await outcome
    assert "hidden" not in str(raised.value)
    if name not in ("selector", "subject"):
        assert {"servers": "server", "ca_file": "ca"}.get(name, name) in str(raised.value)
    async with asyncio.timeout(20):
        assert (await client.publish("/good", 1)).position is not None


async def test_client_is_begun_once(client: Client) -> None:
    with pytest.raises(ClientError, match="already used"):
        async with client:
            pass
    assert (await client.publish("/good", 1)).position is not None
    await client.close()
    with pytest.raises(ClientError, match="already used"):
        await client.__aenter__()


async def test_a_client_that_has_not_begun_is_not_waited_for() -> None:
    async with asyncio.timeout(20):
        with pytest.raises(ClientError, match="has not been started"):
            await Client("ws://127.0.0.1:1").connected()


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
            watch.complete,
            watch.close,
        ]
        for work in calls:
            await asyncio.to_thread(asyncio.run, call(work))
        with pytest.raises(ClientError, match="another event loop"):
            await asyncio.to_thread(client.subscribe, "/c")
        await client.publish("/a", 1)
