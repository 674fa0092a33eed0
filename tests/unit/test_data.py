"""Epochs never repeat, for any clock, any number of starts, and any copy of the data directory."""

import errno
import shutil
from pathlib import Path

import pytest

from godwit.data import EPOCHS_RESERVED, DataDirectory
from godwit.errors import ConfigInvalid, NodeFailed


def reserve(path: Path, wall_ms: int, jump: int = 0) -> int:
    directory = DataDirectory(path)
    try:
        return directory.reserve_epoch(wall_ms, jump)
    finally:
        directory.close()


def test_the_first_epoch_is_the_clocks(tmp_path: Path) -> None:
    assert reserve(tmp_path / "new" / "data", 1_795_250_000_000) == 1_795_250_000_000


def test_an_epoch_is_above_all_that_an_earlier_run_may_have_used_even_when_the_clock_went_back(tmp_path: Path) -> None:
    first = reserve(tmp_path, 1_795_250_000_000)
    assert reserve(tmp_path, 1_795_246_400_000) > first + EPOCHS_RESERVED


def test_two_runs_that_begin_with_copies_of_one_directory_get_different_epochs(tmp_path: Path) -> None:
    reserve(tmp_path / "data", 1_795_250_000_000)
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    first = reserve(tmp_path / "data", 1_795_250_100_000, jump=5)
    assert reserve(tmp_path / "copy", 1_795_250_200_000, jump=7) == first + 2
    assert reserve(tmp_path / "data", 1_795_250_300_000) > first + EPOCHS_RESERVED, "the ceiling is above the jump"


def test_two_nodes_cannot_have_one_directory(tmp_path: Path) -> None:
    held = DataDirectory(tmp_path)
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "node.data_directory"):
        DataDirectory(tmp_path)
    held.close()
    DataDirectory(tmp_path).close()


@pytest.mark.parametrize("content", ["", "x", "-1", "1e9", "\xff"])
def test_a_damaged_directory_is_refused_with_the_way_out(tmp_path: Path, content: str) -> None:
    (tmp_path / "epoch").write_text(content, encoding="latin-1")
    with pytest.raises(NodeFailed, match="restore it, or remove it"):
        reserve(tmp_path, 1)


def test_on_a_full_disk_the_next_ceiling_takes_the_place_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reserve(tmp_path, 1_795_250_000_000)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    second = reserve(tmp_path, 1_795_250_000_001)
    assert second > first + EPOCHS_RESERVED
    assert (tmp_path / "epoch").read_text() == f"{second + EPOCHS_RESERVED}\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["epoch", "lock"]
    (tmp_path / "epoch").write_text("1\n")  # as many bytes do not fit
    with pytest.raises(NodeFailed, match="No space left on device"):
        reserve(tmp_path, 1_795_250_000_002)
    (tmp_path / "epoch").unlink()
    with pytest.raises(NodeFailed, match="No space left on device"):
        reserve(tmp_path, 1_795_250_000_002)


def test_a_directory_that_cannot_be_written_gives_no_epoch_and_keeps_the_old_ceiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve(tmp_path, 1_000)
    before = (tmp_path / "epoch").read_text()

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("godwit.data.os.fsync", fail)
    with pytest.raises(NodeFailed, match="Input/output error"):
        reserve(tmp_path, 2_000)
    assert (tmp_path / "epoch").read_text() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["epoch", "lock"]
