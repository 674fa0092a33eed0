"""A checkpoint and the table that its query writes are of the same moment, or nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from godwit_pipelines.errors import CheckpointOlder
from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message


def test_a_checkpoint_that_was_put_back_ends_the_job_before_it_writes(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    checkpoint, copy = Path(lake.checkpoint("land-messages")), tmp_path / "copy"
    for first in (0, 10):
        writer.write([message(offset) for offset in range(first, first + 10)])
        run_job("land", streams="messages")
        if not first:
            shutil.copytree(checkpoint, copy)
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    writer.write([message(offset) for offset in range(20, 30)])
    with pytest.raises(
        CheckpointOlder, match=r"land-messages ends at batch 0, and .*messages holds batch 1 of its query"
    ):
        run_job("land", streams="messages")
    assert lake.read("bronze.messages").count() == 20
    shutil.rmtree(checkpoint)
    run_job("land", streams="messages")
    assert sorted(row["journal_offset"] for row in lake.read("bronze.messages").collect()) == list(range(30))
