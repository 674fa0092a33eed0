"""Jobs on a journal that was recreated or continued from a copy: every row lands once, and comparisons stay within one run."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from godwit_pipelines.errors import JournalReplaced
from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.progress import watcher
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.source.test_replaced import rows_between, write  # noqa: F401  # the same journals


def rows_of(lake: Lake, table: str = "bronze.messages") -> list[tuple[str, int]]:
    return sorted(
        (row["run"], row["journal_offset"]) for row in lake.read(table).select("run", "journal_offset").collect()
    )


def stretch(run: str, first: int, next: int) -> list[tuple[str, int]]:
    return [(run, offset) for offset in range(first, next)]


def play(lake: Lake) -> str:
    """What `land` says of messages on a terminal."""
    said = StringIO()
    watch = watcher(Console(file=said), {})
    JOBS["land"].run(Run(lake.spark, lake.config, lake, job="land", options={"streams": "messages"}, watch=watch))
    assert all(line.startswith("land-messages: ") for line in said.getvalue().splitlines()), "a line is not broken"
    return said.getvalue()


def test_a_journal_that_began_anew_lands_whole_and_is_compared_by_run(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    write(tmp_path / "node-1", ("a1", 200))
    run_job("land", streams="messages")
    assert run_job("reconcile").found == 0
    write(tmp_path / "node-1", ("b2", 600))
    behind = run_job("reconcile")
    assert behind.found == 0 and "messages of node-a: 0 to 599 not landed yet" in behind.text
    output = play(lake)
    assert "land-messages: 600 rows in" in output
    assert (
        "land-messages: node node-a: the journal began again: 600 rows from offset 0 on, of run b2, are read in addition to those"
        in output
    )
    assert rows_of(lake) == [*stretch("a1", 0, 200), *stretch("b2", 0, 600)]
    assert "messages of node-a: 600 rows landed, none missing" in run_job("reconcile").text
    shutil.rmtree(lake.checkpoint("land-messages"))
    run_job("land", streams="messages")
    assert len(rows_of(lake)) == 800, "after a lost checkpoint every run goes on after its last row"


def test_a_row_that_is_missing_is_named_though_another_run_has_one_of_its_offset(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    from deltalake import DeltaTable

    for stretches in ((("a1", 50),), (("b2", 50),)):
        write(tmp_path / "node-1", *stretches)
        run_job("land", streams="messages")
    DeltaTable(lake.path("bronze.messages")).delete("run = 'b2' AND journal_offset = 24")
    found = run_job("reconcile")
    assert found.found == 1 and "messages of node-a: 24 to 24 MISSING" in found.text
    assert lake.read("ops.landing").where("kind = 'hole' AND first = 24 AND run = 'b2'").count() == 1


def test_what_was_erased_of_one_run_is_not_left_out_of_another(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    write(tmp_path / "node-1", ("a1", 30), publisher="mallory")
    run_job("land", streams="messages")
    run_job("maintain", erase="mallory")
    write(tmp_path / "node-1", ("b2", 40))
    assert run_job("land", streams="messages").text == ""
    assert rows_of(lake) == stretch("b2", 0, 40) and run_job("reconcile").found == 0
    shutil.rmtree(lake.path("bronze.messages"))
    shutil.rmtree(lake.checkpoint("land-messages"))
    write(tmp_path / "node-1", ("a1", 30), ("a2", 5))
    assert "30 rows that were erased left out" in run_job("land", streams="messages").text
    assert rows_of(lake) == stretch("a2", 30, 35)


def test_a_damaged_row_is_known_by_its_run(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    for run in ("a1", "b2"):
        writer = write(tmp_path / "node-1", (run, 20))
        path = writer.seal()
        content = path.read_bytes()
        at = content.index(b"thermometer")
        path.write_bytes(content[:at] + b"T" + content[at + 1 :])
        output = play(lake)
        assert "land-messages: 19 rows in" in output and "1 row was added to bronze.quarantine" in output
    assert rows_of(lake, "bronze.quarantine") == [("a1", 0), ("b2", 0)]
    assert rows_of(lake) == [*stretch("a1", 1, 20), *stretch("b2", 1, 20)]
    found = run_job("reconcile")
    assert found.found == 0 and "0 to 0 in quarantine" in found.text
    shutil.rmtree(lake.path("bronze.quarantine"))
    assert run_job("reconcile").found == 1


def test_other_rows_of_one_run_end_land_and_reconcile(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    write(tmp_path / "node-1", ("a1", 200))
    run_job("land", streams="messages")
    write(tmp_path / "node-1", ("a1", 300), publisher="other")
    for job in ("land", "reconcile"):
        with pytest.raises(Exception, match=r"row 199 of messages .*run a1"):
            run_job(job, **({"streams": "messages"} if job == "land" else {}))
    assert len(rows_of(lake)) == 200


def test_a_fork_within_a_run_is_found_by_the_rows_that_landed(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    """A machine was resumed from an image, wrote on in the same run, and was started again before anybody looked."""
    write(tmp_path / "node-1", ("a1", 200))
    run_job("land", streams="messages")
    shutil.rmtree(tmp_path / "node-1")
    writer = JournalWriter(tmp_path / "node-1")
    writer.write(
        [message(offset, run="a1", publisher="thermometer" if offset < 140 else "other") for offset in range(150)]
    )
    writer.seal()
    writer.write([message(offset, run="a2") for offset in range(150, 160)])
    with pytest.raises(Exception, match=r"row 149 of messages .*run a1"):
        run_job("land", streams="messages")
    assert issubclass(JournalReplaced, Exception) and len(rows_of(lake)) == 200


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_batch_that_was_begun_before_its_journal_was_replaced_brings_no_others_rows(
    tmp_path: Path, lake: Lake, run_job: Runs, is_committed: bool
) -> None:
    """`land` was killed in a batch, and before it ran again an older copy of the journal had continued to the same offset."""
    write(tmp_path / "node-1", ("a1", 100))
    run_job("land", streams="messages")
    table, checkpoint = Path(lake.path("bronze.messages")), Path(lake.checkpoint("land-messages"))
    shutil.copytree(table, tmp_path / "copy")
    write(tmp_path / "node-1", ("a1", 100), ("a2", 100))
    run_job("land", streams="messages")
    for name in ("commits/1", "commits/.1.crc"):
        (checkpoint / name).unlink(missing_ok=True)
    if not is_committed:
        shutil.rmtree(table)
        shutil.copytree(tmp_path / "copy", table)
    write(tmp_path / "node-1", ("a1", 100), ("b2", 100))
    for _ in range(2):
        with pytest.raises(JournalReplaced, match="rows 100 to 199 of messages .*remove the checkpoint"):
            play(lake)
    shutil.rmtree(checkpoint)
    play(lake)
    others = stretch("a2", 100, 200) if is_committed else []
    assert rows_of(lake) == [*stretch("a1", 0, 100), *others, *stretch("b2", 100, 200)]
    assert run_job("reconcile").found == 0
