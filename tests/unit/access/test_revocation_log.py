"""The file of revocations: appended, compacted, read from older nodes; rows that the disk refuses stay in force and are written later."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from godwit.access import revocation_log
from godwit.access.revocation import Revocation, Revocations
from godwit.access.revocation_log import FILE_NAME, OLD_FILE_NAME
from godwit.errors import NodeFailed


def keep(revoked: Revocations) -> bool:
    async def run() -> bool:
        is_kept = await revoked.keep()
        await revoked.stop()
        return is_kept

    return asyncio.run(run())


@pytest.mark.parametrize(
    "broken", ["x\n", "[5]\n", "5\n", '{"identity": "a", "token_id": "b"}\n', '{"identity": ""}\n']
)
def test_a_broken_file_keeps_the_node_from_starting(tmp_path: Path, broken: str) -> None:
    (tmp_path / FILE_NAME).write_text(broken)
    with pytest.raises(NodeFailed, match="who is revoked"):
        Revocations(tmp_path)


def test_a_line_that_a_crash_cut_short_is_ignored_and_written_over(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"identity": "ann", "until_ms": null}\n{"identity": "bo')
    revoked = Revocations(tmp_path)
    assert [one.name for one in revoked.list()] == ["ann"]
    revoked.add(Revocation(identity="eve"))
    assert keep(revoked)
    assert [one.name for one in Revocations(tmp_path).list()] == ["ann", "eve"]


def test_the_file_of_an_older_node_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / OLD_FILE_NAME).write_text('[{"identity": "ann", "until_ms": null}]')
    revoked = Revocations(tmp_path)
    assert revoked.covers("ann", None)
    assert keep(revoked) and not (tmp_path / OLD_FILE_NAME).exists()
    assert [one.name for one in Revocations(tmp_path).list()] == ["ann"]


def test_one_more_writes_one_line_however_many_there_are_and_outdated_lines_go(tmp_path: Path) -> None:
    revoked = Revocations(tmp_path)
    for number in range(5_000):
        revoked.add(Revocation(identity=f"user-{number}"))
    assert keep(revoked)
    file = tmp_path / FILE_NAME
    before, number_of_file = file.read_bytes(), file.stat().st_ino
    revoked.add(Revocation(identity="ann"))
    assert keep(revoked) and file.stat().st_ino == number_of_file
    assert file.read_bytes() == before + json.dumps({"identity": "ann", "until_ms": None}).encode() + b"\n"
    for number in range(4_900):
        revoked.lift(identity=f"user-{number}")
    assert keep(revoked)
    revoked.add(Revocation(identity="bob"))
    assert keep(revoked) and len(file.read_text().splitlines()) == 102
    assert len(Revocations(tmp_path).list()) == 102


async def test_what_the_disk_refuses_holds_and_is_written_once_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revocation_log, "RETRY_S", 0.01)
    folder = tmp_path / "data"
    folder.mkdir()
    revoked = Revocations(folder)
    log = revoked.log
    assert log is not None
    revoked.add(Revocation(identity="ann"))
    assert await revoked.keep()
    aside = tmp_path / "aside"
    os.rename(folder, aside)
    revoked.add(Revocation(identity="bob"))
    assert not await revoked.keep() and log.reason and log.unkept == 1
    assert revoked.covers("bob", None)
    os.rename(aside, folder)
    async with asyncio.timeout(30):
        while log.unkept:
            await asyncio.to_thread(folder.exists)
    assert not log.reason
    assert [one.name for one in Revocations(folder).list()] == ["ann", "bob"]
    await revoked.stop()
