"""A journal that was made anew under the name of one that was read: its rows are never left out in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from godwit_pipelines.errors import JournalReplaced
from godwit_pipelines.lake import Lake
from godwit_pipelines.source.columns import stream_columns
from godwit_pipelines.source.journal import JournalStreamReader, Options
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message


def write(data: Path, run: str, rows: int, *, is_sealed: bool = False) -> None:
    writer = JournalWriter(data)
    writer.write([message(offset, run=run) for offset in range(rows)])
    if is_sealed:
        writer.seal()
    writer.close()


def reader(data: Path, **options: str) -> JournalStreamReader:
    return JournalStreamReader(Options({"path": str(data), **options}), stream_columns("messages"))


@pytest.mark.parametrize("as_tasks", ["true", "false"])
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_longer_journal_of_the_same_name_ends_the_query(tmp_path: Path, as_tasks: str, is_sealed: bool) -> None:
    write(tmp_path, "a1", 200, is_sealed=is_sealed)
    first = reader(tmp_path, asTasks=as_tasks)
    place = first.latestOffset(first.initialOffset(), ReadMaxRows(1000))
    assert place["nodes"] == {"node-a": 200} and place["last"]["node-a"][0] == "a1"
    assert reader(tmp_path, asTasks=as_tasks).latestOffset(place, ReadMaxRows(1000)) == place
    shutil.rmtree(tmp_path / "journal")
    write(tmp_path, "b2", 600, is_sealed=is_sealed)
    with pytest.raises(JournalReplaced, match="row 199 of messages is of run b2, and the row that was read .* run a1"):
        reader(tmp_path, asTasks=as_tasks).latestOffset(place, ReadMaxRows(1000))


def test_a_copy_that_went_on_otherwise_in_the_same_run_ends_the_query(tmp_path: Path) -> None:
    """As a virtual machine that was resumed from an image: the same run, other rows."""
    write(tmp_path, "a1", 200)
    first = reader(tmp_path)
    place = first.latestOffset(first.initialOffset(), ReadMaxRows(1000))
    shutil.rmtree(tmp_path / "journal")
    writer = JournalWriter(tmp_path)
    writer.write([message(offset, run="a1", publisher="other") for offset in range(300)])
    writer.close()
    with pytest.raises(JournalReplaced):
        reader(tmp_path).latestOffset(place, ReadMaxRows(1000))


def test_a_place_of_which_no_row_was_kept_is_gone_on_from(tmp_path: Path) -> None:
    write(tmp_path, "a1", 200)
    place = {"stream": "messages", "nodes": {"node-a": 150}}
    assert reader(tmp_path).latestOffset(place, ReadMaxRows(1000))["nodes"] == {"node-a": 200}


def test_the_last_row_of_a_node_that_is_away_is_kept(tmp_path: Path) -> None:
    for name in ("one", "two"):
        writer = JournalWriter(tmp_path / name, node=name)
        writer.write([message(offset, run="a1") for offset in range(20)])
        writer.close()
    first = reader(tmp_path / "*")
    place = first.latestOffset(first.initialOffset(), ReadMaxRows(1000))
    shutil.rmtree(tmp_path / "one")
    (tmp_path / "two/journal/messages" / f"{0:020}.arrows").unlink()
    writer = JournalWriter(tmp_path / "two", node="two")
    writer.write([message(offset, run="a1") for offset in range(30)])
    writer.close()
    later = reader(tmp_path / "*").latestOffset(place, ReadMaxRows(1000))
    assert later["nodes"] == {"one": 20, "two": 30} and later["last"]["one"] == place["last"]["one"]


def test_neither_land_nor_reconcile_compares_with_another_journal(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    write(tmp_path / "node-1", "a1", 200)
    run_job("land", streams="messages")
    assert run_job("reconcile").found == 0
    shutil.rmtree(tmp_path / "node-1")
    write(tmp_path / "node-1", "b2", 600)
    with pytest.raises(Exception, match="JournalReplaced|began anew or was put back from a copy"):
        run_job("land", streams="messages")
    with pytest.raises(JournalReplaced, match="began anew or was put back from a copy"):
        run_job("reconcile")
    assert lake.read("bronze.messages").count() == 200
