"""The lease on a file of positions: one holder at a time, void without renewal, and its loss is reported."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from godwit.client import Client, PositionFile, PositionFileHeld
from godwit.client.positions import lease
from godwit.client.positions.lease import Lease
from tests.unit.client.peer import Peer


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "VOID_S", 0.5)
    monkeypatch.setattr(lease, "LOOK_S", 0.02)


async def test_released_it_is_the_next_ones_at_once_and_nothing_is_left(tmp_path: Path) -> None:
    first, second = Lease(tmp_path / "p"), Lease(tmp_path / "p")
    await first.acquire()
    assert json.loads((tmp_path / "p.lock").read_text()).keys() == {"owner", "host", "pid", "beat"}
    first.release()
    await second.acquire()
    second.check()
    second.release()
    assert os.listdir(tmp_path) == []


async def test_second_is_refused_with_the_holders_name(tmp_path: Path) -> None:
    first, second = Lease(tmp_path / "p"), Lease(tmp_path / "p")
    await first.acquire()

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.05)
            first.renew()

    beating = asyncio.create_task(beat())
    with pytest.raises(PositionFileHeld, match=f"process {os.getpid()} on {socket.gethostname()}"):
        await second.acquire()
    beating.cancel()
    first.check()


async def test_one_that_does_not_beat_is_void_and_its_owner_learns_it(tmp_path: Path) -> None:
    frozen, second = Lease(tmp_path / "p"), Lease(tmp_path / "p")
    await frozen.acquire()
    await second.acquire()
    for check in (frozen.check, frozen.renew, frozen.check):
        with pytest.raises(PositionFileHeld):
            check()
    frozen.release()
    second.check()


async def test_something_else_in_its_place_is_void_too(tmp_path: Path) -> None:
    (tmp_path / "p.lock").write_text("[not json")
    await Lease(tmp_path / "p").acquire()


async def test_client_ends_when_another_took_its_file_and_leaves_it_alone(tmp_path: Path) -> None:
    async with asyncio.timeout(20), Peer() as peer:
        with pytest.raises(PositionFileHeld):
            async with Client(peer.url, positions=PositionFile(tmp_path / "p")) as client:
                subscription = client.subscribe("/a")
                await subscription.joined()
                (tmp_path / "p.lock").write_text(json.dumps({"owner": "x", "host": "elsewhere", "pid": 7, "beat": 1}))
                (tmp_path / "p").write_text('{"/theirs": {}}')
                async for _ in subscription:
                    pass
        assert (tmp_path / "p").read_text() == '{"/theirs": {}}'
        assert json.loads((tmp_path / "p.lock").read_text())["owner"] == "x"


async def test_two_clients_of_one_file_are_refused_and_one_after_another_goes_on(tmp_path: Path) -> None:
    async with asyncio.timeout(20), Peer() as peer:
        async with Client(peer.url, positions=PositionFile(tmp_path / "p")) as first:
            subscription = first.subscribe("/a")
            await first.publish("/a", 1)
            await anext(subscription)
            late = PositionFile(tmp_path / "p")  # it has read nothing yet
        async with Client(peer.url, positions=late) as second:
            assert str(second.subscribe("/a").resume_point.after["/a"]) == "7.1"
            assert sorted(os.listdir(tmp_path)) == ["p", "p.lock"]


async def test_where_no_lease_can_be_made_there_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = PositionFile(tmp_path / "none" / "p")
    await file.open()
    assert "has no lease" in caplog.text
    file.close()


async def test_a_lock_that_leads_nowhere_is_a_warning_and_no_endless_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "p.lock").symlink_to("nowhere")
    async with asyncio.timeout(20), Peer() as peer, Client(peer.url, positions=PositionFile(tmp_path / "p")) as client:
        await client.connected()
    assert "has no lease" in caplog.text


async def test_a_second_client_of_this_process_waits_until_the_first_has_the_lease(tmp_path: Path) -> None:
    path = tmp_path / "p"
    holder = Lease(path)
    await holder.acquire()
    shared = PositionFile(path)
    opening = [asyncio.create_task(shared.open()) for _ in range(2)]
    await asyncio.wait(opening, return_when=asyncio.FIRST_COMPLETED)
    assert shared.lease.is_held
    await asyncio.gather(*opening)
    shared.close()
    assert shared.lease.is_held
    shared.close()
    assert not shared.lease.is_held


async def test_a_lock_that_is_nested_too_deeply_is_a_holder_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "p.lock").write_text("[" * 100_000)
    lease = Lease(tmp_path / "p")
    await lease.acquire()
    assert lease.is_held
