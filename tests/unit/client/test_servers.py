"""The list of servers: each once a round, the weighted first, by the randomness it is given."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client import Client
from godwit.client.servers import ServerList, shown_address
from tests.waiting import until


@given(st.lists(st.floats(min_value=0, max_value=10), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_each_round_tries_every_server_once(weights: list[float], random: Random) -> None:
    servers = [(f"ws://{number}", weight) for number, weight in enumerate(weights)]
    chooser = ServerList(servers)
    for _ in range(3):
        assert {chooser.choose(random.random()) for _ in servers} == {f"{url}/v1/live" for url, _ in servers}


def test_weights_are_shares() -> None:
    random, counts = Random(1), Counter[str]()
    for _ in range(3_000):
        counts[ServerList([("ws://a", 2.0), ("ws://b", 1.0)]).choose(random.random())] += 1
    assert 1_850 < counts["ws://a/v1/live"] < 2_150


def test_reserve_is_tried_when_no_weighted_one_is_left() -> None:
    servers = ServerList([("ws://reserve", 0), "ws://a"])
    assert [servers.choose(0.0), servers.choose(0.0)] == ["ws://a/v1/live", "ws://reserve/v1/live"]


def test_success_begins_a_new_round() -> None:
    servers = ServerList(["ws://a/p", "ws://b/p"])
    assert servers.choose(0.0) == "ws://a/p"
    servers.succeeded()
    assert servers.choose(0.0) == "ws://a/p"


@pytest.mark.parametrize("servers", [[], "http://a", ["a"], [("ws://a", -1)], [("ws://a", float("nan"))]])
def test_list_that_cannot_be_used_is_refused_with_a_sentence(servers: list[str]) -> None:
    with pytest.raises(ValueError, match=r"list of servers|server address|weight"):
        ServerList(servers)


@pytest.mark.parametrize(
    "url", ["ws://", "ws://:8800", "ws://a:port", "ws://a:70000", "ws://a b", "ws://a/#x", "ws://[::1", "ws://a\n"]
)
def test_malformed_address_is_refused_when_the_client_is_made(url: str) -> None:
    with pytest.raises(ValueError, match="server address|Invalid IPv6"):
        ServerList(["ws://good", url])


@pytest.mark.parametrize("url", ["ws://user:hunter2@a:1", "ws://user:hunter2@a:1/v1/live", "http://user:hunter2@a:1"])
def test_password_in_an_address_is_refused_and_never_shown(url: str) -> None:
    with pytest.raises(ValueError, match="a:1") as raised:
        ServerList(url)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("url", ["ws://a:1", "ws://a:1/"])
def test_address_without_a_path_has_the_nodes_own(url: str) -> None:
    assert ServerList(url).choose(0.0) == "ws://a:1/v1/live"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ws://a:8800/v1/live", "ws://a:8800/v1/live"),
        ("ws://a/v1/live?token=s3cret", "ws://a/v1/live?..."),
        ("wss://a#s3cret", "wss://a#..."),
        ("ws//u:s3cret@a", "a"),
        ("ws://u:s3?cret@a", "ws://..."),
        ("ws://a?t=s3@cret", "ws://..."),
        ("x?s3@cret", "..."),
    ],
)
def test_address_is_shown_without_a_user_a_password_and_a_query(url: str, expected: str) -> None:
    assert shown_address(url) == expected


@pytest.mark.parametrize(
    "server",
    ["ws:/a?s3cret", "ws://u:s3?cret@a", "ws://a:x/?s3cret", "u:s3cret@a", "ws://u:s3cret@a", ("ws://a?s3cret", -1)],
)
def test_refused_address_shows_no_secret(server: str | tuple[str, float]) -> None:
    with pytest.raises(ValueError) as refused:
        ServerList([server])
    assert "s3" not in str(refused.value) and "cret" not in str(refused.value)


async def test_log_shows_no_query(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # it does not listen: each connection is refused
        client = Client(f"ws://127.0.0.1:{held.getsockname()[1]}/?token=s3cret")
        async with asyncio.timeout(20), client:
            await until(lambda: "retrying" in caplog.text)
    assert "v1/live?..." in caplog.text and "s3cret" not in caplog.text
