"""Rows are on the disk before the commit that names them, and that before its writer returns."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from godwit_pipelines.delta import commits
from godwit_pipelines.delta.erasing import erase_rows
from tests.pipelines.test_delta import TABLE, write


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced so far, and `commit` where a commit was made."""
    seen: list[str] = []
    real_sync, real_commit = os.fsync, DeltaTable.create_write_transaction

    def sync(descriptor: int) -> None:
        seen.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_sync(descriptor)

    def commit(table: DeltaTable, *args: Any, **given: Any) -> None:
        seen.append("commit")
        real_commit(table, *args, **given)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)
    return seen


def append(path: Path) -> None:
    write(path, range(3), batch=1)


def erase(path: Path) -> None:
    assert erase_rows(str(path), TABLE, "thermometer") == 3


@pytest.mark.parametrize("change", [append, erase])
def test_a_commit_is_on_the_disk_when_its_writer_returns_and_its_files_before(
    tmp_path: Path, synced: list[str], change: Callable[[Path], None]
) -> None:
    path = tmp_path / "table"
    write(path, range(3), publisher="thermometer")
    write(path, range(3, 6), batch=0, app="another", publisher="other")
    known = set(path.rglob("*.parquet"))
    synced.clear()
    change(path)
    made = set(path.rglob("*.parquet")) - known
    at = synced.index("commit")
    for file in made:
        assert {str(file), str(file.parent), str(path)} <= set(synced[:at])
    version = DeltaTable(str(path)).version()
    assert {str(path / f"_delta_log/{version:020}.json"), str(path / "_delta_log")} <= set(synced[at:])


def test_a_batch_that_is_known_is_on_the_disk_as_well(tmp_path: Path, synced: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "t"), range(3))
        synced.clear()
        assert not write(Path(folder, "t"), range(3))
        assert any(each.endswith(".json") for each in synced)
    assert commits.is_table(str(tmp_path)) is False
