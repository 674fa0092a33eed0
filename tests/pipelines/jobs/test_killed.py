"""A job that sums or merges is killed at random moments, again and again: its tables equal those of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from godwit_pipelines.jobs import JOBS
from tests.pipelines.driven import kill, run, start
from tests.pipelines.jobs.played import Play

KILLS, WAIT_S = 4, 120
SMALL, SMALLER = (("--set", f"journal.rows_per_batch={rows}") for rows in (40, 6))
"""So that there is much to be killed in."""


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the journal of a node's life, and the lake where it landed."""
    folder = tmp_path_factory.mktemp("landed")
    Play(folder / "node", seconds=40, clients=10, rate=40).write()
    words = ("run", "land", "--once", "--journal", str(folder / "node"), "--lake", str(folder / "lake"))
    few = ("--option", "streams=access", *SMALLER)  # there are not many of these
    assert run(*words, *few) == 0 and run(*words, *SMALL) == 0
    return folder


@pytest.mark.long
@pytest.mark.parametrize("job", ["delivery", "usage", "sessions", "ohlc"])
def test_tables_are_those_of_a_run_that_nobody_disturbed(job: str, landed: Path, tmp_path: Path) -> None:
    log, lakes = tmp_path / "log", [tmp_path / name for name in ("undisturbed", "killed")]
    words = ["run", job, "--master", "local[2]", *(SMALLER if job == "sessions" else SMALL)]
    if job == "ohlc":  # it reads no table
        words += ["--journal", str(landed / "node"), "--option", "field=$.celsius"]
    for lake in lakes:
        shutil.copytree(landed / "lake", lake)
    commands = [[*words, "--lake", str(lake)] for lake in lakes]
    assert run(*commands[0], "--once", log=log) == 0, log.read_text()
    chance, killed_in_work, batches = random.Random(job), 0, count_batches(lakes[0])
    for _ in range(KILLS):
        before = count_batches(lakes[1])
        if before > batches - 3:
            break  # little is left to be killed in
        process = start(*commands[1], "--every", "0s", log=log)
        deadline = time.monotonic() + WAIT_S
        while count_batches(lakes[1]) == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)  # until it works again; then somewhere in the batches that follow
        time.sleep(chance.uniform(0, 1.5))
        assert process.poll() is None, log.read_text()
        kill(process)
        killed_in_work += before < count_batches(lakes[1])
    assert run(*commands[1], "--once", log=log) == 0, log.read_text()
    assert killed_in_work >= 2
    for table in JOBS[job].writes:
        if "." in table:
            undisturbed, found = (rows_of(lake, table) for lake in lakes)
            assert found == undisturbed and found, table


def count_batches(lake: Path) -> int:
    """Batches that the job's queries have ended."""
    return sum(path.name.isdigit() for path in (lake / "_checkpoints").glob("*/commits/*"))


def rows_of(lake: Path, table: str) -> list[str]:
    return sorted(map(str, DeltaTable(str(lake.joinpath(*table.split(".")))).to_pyarrow_table().to_pylist()))
