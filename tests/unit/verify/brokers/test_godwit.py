"""The address of a running node: accepted forms, and the error if nothing listens there."""

from pathlib import Path

import pytest

from godwit.errors import ConfigInvalid
from godwit.verify.brokers.broker import find_port
from godwit.verify.brokers.godwit import GodwitBroker, read_place


@pytest.mark.parametrize(
    "url", ["ws://127.0.0.1:8800", "127.0.0.1:8800", "ws://127.0.0.1:8800/", "ws://127.0.0.1:8800/v1/live", "http://127.0.0.1:8800"]
)  # fmt: skip
def test_an_address_is_taken_as_clients_write_it(url: str) -> None:
    assert read_place(url) == ("127.0.0.1", 8800)


@pytest.mark.parametrize("url", ["ws://127.0.0.1", "wss://127.0.0.1:8800", "ws://a:b", "", "ws://127.0.0.1:99999"])
def test_what_is_no_address_is_said_before_anything_runs(url: str) -> None:
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--url"):
        GodwitBroker(url)


async def test_a_place_where_nothing_answers_is_no_broken_guarantee(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--url"):
        await GodwitBroker(f"ws://127.0.0.1:{find_port()}").start(tmp_path)
