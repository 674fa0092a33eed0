"""A checkpoint with files that a power cut left empty or missing ends its job, with the remedy, before Spark reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from godwit_pipelines.errors import CheckpointBroken
from godwit_pipelines.lake import Lake
from godwit_pipelines.source.checkpoints import find_damage
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message

FILES = ("metadata", "offsets/0", "offsets/1", "commits/0", "commits/1")


@pytest.mark.parametrize("harm", ["remove", "empty", "cut"])
def test_what_a_power_cut_leaves_of_a_checkpoint_is_said_with_the_remedy(
    tmp_path: Path, lake: Lake, run_job: Runs, harm: str
) -> None:
    """Each file in turn; the job ends before it writes, or goes on and every row is there once."""
    writer = JournalWriter(tmp_path / "node-1", node="a")
    for first in (0, 10):
        writer.write([message(offset) for offset in range(first, first + 10)])
        run_job("land", streams="messages")
    checkpoint, copy = Path(lake.checkpoint("land-messages")), tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    writer.write([message(offset) for offset in range(20, 30)])
    for name in FILES:
        file = checkpoint / name
        if harm == "remove":
            file.unlink()
        else:
            file.write_bytes(b"" if harm == "empty" else file.read_bytes()[:-4])
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        if name.startswith("commits") and harm == "remove":  # a batch that is done again is known
            assert not find_damage(checkpoint)
        else:
            with pytest.raises(CheckpointBroken, match=rf"land-messages .*{name}"):
                run_job("land", streams="messages")
            assert lake.read("bronze.messages").count() == 20
        shutil.rmtree(checkpoint)
        shutil.copytree(copy, checkpoint)
    run_job("land", streams="messages")
    assert sorted(row["journal_offset"] for row in lake.read("bronze.messages").collect()) == list(range(30))


def test_an_empty_file_of_the_state_is_damage(tmp_path: Path) -> None:
    (tmp_path / "state/0/0").mkdir(parents=True)
    (tmp_path / "metadata").write_text('{"id":"x"}')
    (tmp_path / "state/0/0/1.delta").write_bytes(b"")
    assert find_damage(tmp_path) == "state/0/0/1.delta is empty"
    assert find_damage(tmp_path / "none") == ""
