"""Saved positions: whole or not at all, and refused with a sentence when they cannot be read."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from godwit.client import PositionFile, PositionFileInvalid, PositionInvalid, ResumePoint
from godwit.model import Position


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    resume_point = ResumePoint({"/a/1": Position(7, 42)}, "1.2.3", "node")
    positions = PositionFile(path)
    positions["/a/*"] = resume_point.to_json()
    assert not path.exists()
    positions.save()
    assert ResumePoint.from_json(PositionFile(path)["/a/*"]) == resume_point
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_when_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    PositionFile(path).save()
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_broken_file_is_refused_at_the_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "positions.json"
    path.write_text(content)
    with pytest.raises(PositionFileInvalid, match=r"positions\.json does not contain saved positions"):
        PositionFile(path)


def test_a_pipe_or_a_device_is_refused_and_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(PositionFileInvalid, match="not a regular file"):
            PositionFile(path)


@pytest.mark.parametrize("saved", [7, None, {"after": 7}, {"after": {"/a": "x"}}, {"since": 1}])
def test_broken_stand_is_refused(saved: object) -> None:
    with pytest.raises(PositionInvalid):
        ResumePoint.from_json(saved)


@pytest.mark.parametrize("path", ["/", ".", "", ".."])
def test_a_folder_is_refused_at_the_start(path: str) -> None:
    with pytest.raises(IsADirectoryError):
        PositionFile(path)


def test_a_file_that_is_damaged_before_the_client_begins_leaves_no_lease(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    positions = PositionFile(path)
    path.write_text("{")
    with pytest.raises(PositionFileInvalid):
        asyncio.run(positions.open())
    assert list(tmp_path.iterdir()) == [path]
