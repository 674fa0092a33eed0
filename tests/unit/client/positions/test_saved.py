"""Saves that fail: the next one has what they had not, and what still fails at the end is raised."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from godwit.client import Client, ClientClosed, PositionFile, Settings
from tests.unit.client.peer import Peer
from tests.waiting import until

QUICK = Settings(reconnect_first_ms=5, reconnect_max_ms=20, positions_save_ms=5)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with Peer() as peer:
        yield peer


async def test_file_is_saved_once_its_folder_exists_again(
    peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "later"
    peer.log["/a"] = [1, 2]
    failed = asyncio.Event()
    caplog.handler.addFilter(lambda record: failed.set() or True if "could not save" in record.msg else True)
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK, positions=PositionFile(folder / "p")) as client:
        subscription = client.subscribe("/a")
        assert [(await anext(subscription)).json() for _ in range(2)] == [1, 2]
        await failed.wait()
        folder.mkdir()
        while "p" not in os.listdir(folder):
            await client.publish("/b", 1)
    assert caplog.text.count("could not save positions") == 1
    assert PositionFile(folder / "p")["/a"] == {"after": {"/a": "7.2"}}


async def test_what_cannot_be_saved_at_the_end_is_raised(peer: Peer, tmp_path: Path) -> None:
    peer.log["/a"] = [1]
    with pytest.raises(FileNotFoundError):
        async with asyncio.timeout(20), Client(peer.url, positions=PositionFile(tmp_path / "none" / "p")) as client:
            await anext(client.subscribe("/a"))


async def test_a_mapping_that_returns_an_awaitable_is_refused_where_it_is_read(peer: Peer) -> None:
    class Asynchronous(dict[str, object]):
        async def _load(self) -> object:
            return None

        def get(self, selector: str, default: object = None) -> object:  # type: ignore[override]  # what the test is about
            return self._load()

    async with asyncio.timeout(20), Client(peer.url, positions=Asynchronous()) as client:
        with pytest.raises(TypeError, match="positions returned an awaitable: expected the saved value itself"):
            client.subscribe("/a")


async def test_mapping_that_fails_once_is_given_the_position_again(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    put = asyncio.Event()

    class Fragile(dict[str, object]):
        fails = 1

        def __setitem__(self, selector: str, resume_point: object) -> None:
            if self.fails:
                self.fails -= 1
                raise OSError("the disk is full")
            super().__setitem__(selector, resume_point)
            put.set()

    peer.log["/a"] = [1, 2]
    positions = Fragile()
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK, positions=positions) as client:
        subscription = client.subscribe("/a")
        await anext(subscription), await anext(subscription)
        await put.wait()
        assert positions["/a"] == {"after": {"/a": "7.1"}}
    assert "the disk is full" in caplog.text


async def test_mapping_that_takes_nothing_fails_no_subscribe(peer: Peer) -> None:
    class Blocked(dict[str, object]):
        def __setitem__(self, selector: str, resume_point: object) -> None:
            raise OSError("blocked")

    errors: list[Exception] = []
    peer.log["/a"] = [1, 2, 3]
    with pytest.raises(OSError, match="blocked"):  # at close, which is the last save
        async with (
            asyncio.timeout(20),
            Client(peer.url, settings=QUICK, positions=Blocked(), on_save_failed=errors.append) as client,
        ):
            for count in (1, 2, 3):
                subscription = client.subscribe("/a")
                assert (await anext(subscription)).json() == count
                subscription.handled()
                await subscription.close()
    assert [str(error) for error in errors] == ["blocked"]


async def test_full_mapping_fails_no_other_selector(peer: Peer) -> None:
    full = {"/a", "/b"}

    class Full(dict[str, object]):
        def __setitem__(self, selector: str, resume_point: object) -> None:
            if selector in full:
                raise OSError(f"no room for {selector}")
            super().__setitem__(selector, resume_point)

    rarely = Settings(reconnect_first_ms=5, reconnect_max_ms=20, positions_save_ms=3_600_000)
    peer.log.update({"/a": [1], "/b": [1, 2]})
    positions, errors = Full(), list[Exception]()
    with pytest.raises(OSError, match="no room for /a"):  # at close
        async with (
            asyncio.timeout(20),
            Client(peer.url, settings=rarely, positions=positions, on_save_failed=errors.append) as client,
        ):
            for subject in ("/a", "/b"):
                subscription = client.subscribe(subject)
                assert (await anext(subscription)).json() == 1
                subscription.handled()
            await subscription.close()
            assert (await anext(client.subscribe("/b"))).json() == 2
            full.discard("/b")
    assert [str(error) for error in errors] == ["no room for /a"]
    assert list(positions) == ["/b"]


async def test_failure_is_told_of_once_until_it_can_be_saved_again(
    peer: Peer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[Exception] = []

    def on_save_failed(error: Exception) -> None:
        errors.append(error)
        raise RuntimeError("the user's own mistake")

    async def telling(count: int) -> None:
        await until(lambda: len(errors) == count)

    peer.log["/a"] = [1]
    folder = tmp_path / "later"
    async with (
        asyncio.timeout(20),
        Client(peer.url, settings=QUICK, positions=PositionFile(folder / "p"), on_save_failed=on_save_failed) as client,
    ):
        subscription = client.subscribe("/a")
        await anext(subscription)
        subscription.handled()
        for count in (1, 2):
            await telling(count)
            folder.mkdir()
            await until((folder / "p").exists)
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
            await client.publish("/a", 2)
            await anext(subscription)
            subscription.handled()
        await telling(3)
        folder.mkdir()
    assert [type(error) for error in errors] == [FileNotFoundError] * 3
    assert "on_save_failed raised" in caplog.text


async def test_request_whose_client_is_closed_ends_at_once(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK) as client:
        request = asyncio.create_task(client.request("/nobody", 1, timeout_ms=3_600_000))
        while not peer.keys:
            await asyncio.wait([request], timeout=0.005)
        await client.close()
        with pytest.raises(ClientClosed):
            await request
    assert not caplog.records


async def test_a_mapping_that_gives_none_has_no_saved_position(peer: Peer) -> None:
    async with asyncio.timeout(20), Client(peer.url, positions={"/a": None}, settings=QUICK) as client:
        await client.subscribe("/a").joined()


async def test_what_is_read_after_the_subscription_was_closed_is_saved(peer: Peer) -> None:
    peer.log["/a"] = [1, 2, 3]
    saved: dict[str, object] = {}
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK, positions=saved) as client:
        subscription = client.subscribe("/a")
        assert (await anext(subscription)).json() == 1
        await client.publish("/b", 1)  # its answer comes after the rest of /a
        await subscription.close()
        assert client._saved is not None
        kept = client._saved._kept
        await until(lambda: not kept)  # its position was saved, and it is let go of
        assert (await anext(subscription)).json() == 2
        assert (await anext(subscription)).json() == 3
        await until(lambda: saved == {"/a": {"after": {"/a": "7.2"}}})
        subscription.handled()
        await until(lambda: saved == {"/a": {"after": {"/a": "7.3"}}})


async def test_an_earlier_subscription_that_is_read_late_moves_nothing_back(peer: Peer) -> None:
    peer.log["/a"] = [1, 2, 3]
    saved: dict[str, object] = {}
    async with asyncio.timeout(20), Client(peer.url, settings=QUICK, positions=saved) as client:
        earlier = client.subscribe("/a")
        assert (await anext(earlier)).json() == 1
        await client.publish("/b", 1)
        await earlier.close()
        later = client.subscribe("/a")
        async for message in later:
            if message.json() == 3:
                break
        later.handled()
        await later.close()
        await until(lambda: saved == {"/a": {"after": {"/a": "7.3"}}})
        assert (await anext(earlier)).json() == 2
        earlier.handled()
    assert saved == {"/a": {"after": {"/a": "7.3"}}}
