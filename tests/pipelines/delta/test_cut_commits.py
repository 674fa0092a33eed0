"""A commit that is empty, half or gone: every reader and writer of the table ends with a sentence that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from godwit_pipelines.delta.log import open_table
from godwit_pipelines.errors import TableBroken
from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import ACCESS
from tests.pipelines.conftest import Runs
from tests.pipelines.transforms.rows import frame

CUTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "without its end": lambda content: content[:-40],
}


def come(lake: Lake, number: int) -> None:
    row = {"node": "a", "run": "r", "journal_offset": number, "connection": number, "kind": "connected", "time": number}
    lake.append("bronze.access", frame(lake.spark, ACCESS, [row]), app="test", batch=number)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("version", [2, 3])
def test_a_commit_that_is_not_whole_ends_the_job_and_is_named(
    lake: Lake, run_job: Runs, cut: str, version: int
) -> None:
    for number in range(3):
        come(lake, number)
    path = Path(lake.path("bronze.access"))
    commit = path / "_delta_log" / f"{version:020}.json"
    whole = commit.read_bytes()
    commit.write_bytes(CUTS[cut](whole))
    named = f"bronze.access: its log cannot be read: {commit.name} is not whole"
    for fails in (lambda: run_job("sessions"), lambda: lake.read("bronze.access"), lambda: come(lake, 3)):
        with pytest.raises(TableBroken, match=named):
            fails()
    assert commit.read_bytes() == CUTS[cut](whole), "nothing was written over it"
    if version == 3:  # the newest: the batch is written again
        commit.unlink()
        come(lake, 2)
        assert lake.read("bronze.access").count() == 3


def test_a_commit_that_is_gone_is_named(lake: Lake) -> None:
    for number in range(3):
        come(lake, number)
    commit = Path(lake.path("bronze.access")) / "_delta_log" / f"{2:020}.json"
    commit.unlink()
    with pytest.raises(TableBroken, match=f"{commit.name} is gone: put it back"):
        lake.read("bronze.access")


def test_commits_before_the_last_checkpoint_are_not_looked_at(lake: Lake) -> None:
    for number in range(3):
        come(lake, number)
    path = lake.path("bronze.access")
    open_table(path).create_checkpoint()
    log = Path(path, "_delta_log")
    (log / f"{2:020}.json").unlink()
    come(lake, 3)
    assert lake.read("bronze.access").count() == 4 and open_table(path, 3).version() == 3
