"""A journal that is not the one that was read is read from its first row that was not, by run and offset; never left out in silence."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from godwit_pipelines.errors import JournalBroken, JournalMissing, JournalReplaced
from godwit_pipelines.source.columns import stream_columns
from godwit_pipelines.source.journal import JournalReader, JournalStreamReader, Options, Task
from godwit_pipelines.source.rows import read_part
from tests.pipelines.journals import JournalWriter, message

Stretch = tuple[str, int]
"""A run and how many rows it wrote."""


def write(
    data: Path, *stretches: Stretch, stream: str = "messages", node: str = "node-a", **fields: Any
) -> JournalWriter:
    """A journal of these runs, each in a segment of its own, as nodes write them; the last is open."""
    shutil.rmtree(data / "journal" / stream, ignore_errors=True)
    writer = JournalWriter(data, stream, node=node)
    for index, (run, rows) in enumerate(stretches):
        begin = writer.next
        writer.write([message(offset, run=run, **fields) for offset in range(begin, begin + rows)])
        if index + 1 < len(stretches):
            writer.seal()
    return writer


def tell_runs(data: Path, **follows: str | None) -> None:
    """What a node says of its runs: which each of them follows."""
    writer = JournalWriter(data, "runs")
    time = message(0)["time"]
    rows = [
        {"run": run, "tenant": "", "time": time, "kind": "began", "epoch": 1, "follows_run": before}
        for run, before in follows.items()
    ]
    writer.write(rows)
    writer.close()


def reader(data: Path, **options: str) -> JournalStreamReader:
    return JournalStreamReader(Options({"path": str(data), **options}), stream_columns("messages"))


def read_all(data: Path, start: dict[str, Any] | None = None, rows: int = 1000, **options: str) -> dict[str, Any]:
    """Where a query that begins here has come to once it has read all, as one that is started anew for each batch."""
    found = start or reader(data, **options).initialOffset()
    while (end := reader(data, **options).latestOffset(found, ReadMaxRows(rows))) != found:
        found = json.loads(json.dumps(end))
    return found


def rows_between(data: Path, start: dict[str, Any], end: dict[str, Any], **options: str) -> list[tuple[str, int]]:
    """The runs and offsets that a batch brings."""
    opened = reader(data, **options)
    found = []
    for task in opened.partitions(start, end):
        assert isinstance(task, Task)
        for batch in read_part(task.part, opened.reading):
            found += [(row["run"], row["journal_offset"]) for row in batch.to_pylist()]
    return sorted(found)


def stretch(run: str, first: int, next: int) -> list[tuple[str, int]]:
    return [(run, offset) for offset in range(first, next)]


def test_a_place_names_the_runs_that_were_come_past(tmp_path: Path) -> None:
    write(tmp_path, ("a1", 100), ("a2", 50), ("a3", 30))
    for rows in (7, 1000):
        place = read_all(tmp_path, rows=rows)
        assert [each[:2] for each in place["runs"]["node-a"]] == [["a1", 100], ["a2", 150], ["a3", 180]]
        assert all(isinstance(each[2], int) for each in place["runs"]["node-a"])


@pytest.mark.parametrize("as_tasks", ["true", "false"])
@pytest.mark.parametrize("rows", [150, 200, 600])
@pytest.mark.parametrize("limit", [50, 1000])
def test_a_new_journal_of_the_same_name_is_read_whatever_its_length(
    tmp_path: Path, as_tasks: str, rows: int, limit: int
) -> None:
    write(tmp_path, ("a1", 200))
    place = read_all(tmp_path, asTasks=as_tasks)
    write(tmp_path, ("b2", rows))
    end = reader(tmp_path, asTasks=as_tasks).latestOffset(place, ReadMaxRows(limit))
    brought = min(rows, limit)
    assert rows_between(tmp_path, place, end) == stretch("b2", 0, brought)
    assert f"the journal began again: {rows} rows from offset 0 on, of run b2" in end["replaced"]["node-a"]
    assert end["nodes"] == {"node-a": brought} and [each[0] for each in end["runs"]["node-a"]] == ["a1", "b2"]
    last = read_all(tmp_path, end, limit, asTasks=as_tasks)
    assert last["nodes"] == {"node-a": rows} and ("replaced" not in last or last == end)


def test_an_older_copy_is_read_from_where_it_forked(tmp_path: Path) -> None:
    write(tmp_path, ("a1", 100), ("a2", 100))
    place = read_all(tmp_path)
    write(tmp_path, ("a1", 100), ("a2", 20), ("a3", 500))
    end = reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end) == stretch("a3", 120, 620)
    assert "the journal continues from a copy: 500 rows from offset 120 on, of run a3" in end["replaced"]["node-a"]


def test_two_copies_in_turn_are_each_read_on(tmp_path: Path) -> None:
    """As a standby that takes over and gives back."""
    write(tmp_path, ("a1", 100), ("a2", 100))
    place = read_all(tmp_path)
    write(tmp_path, ("a1", 100), ("b2", 50))
    place = read_all(tmp_path, place)
    write(tmp_path, ("a1", 100), ("a2", 130))
    end = reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end) == stretch("a2", 200, 230)


def test_many_runs_in_one_segment_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path, ("a1", 40))
    place = read_all(tmp_path)
    shutil.rmtree(tmp_path / "journal")
    writer = JournalWriter(tmp_path)
    runs = [*["a1"] * 30, *["b1"], *["b2"] * 20, *["b3"] * 9]
    writer.write([message(offset, run=run) for offset, run in enumerate(runs)])
    writer.seal()
    end = reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end) == [
        *stretch("b1", 30, 31),
        *stretch("b2", 31, 51),
        *stretch("b3", 51, 60),
    ]
    assert [each[:2] for each in end["runs"]["node-a"]] == [["a1", 40], ["b1", 31], ["b2", 51], ["b3", 60]]


@pytest.mark.parametrize("rows", [150, 200, 300])
def test_other_rows_of_the_same_run_end_the_query(tmp_path: Path, rows: int) -> None:
    """As a virtual machine that was resumed from an image."""
    write(tmp_path, ("a1", 200))
    place = read_all(tmp_path)
    write(tmp_path, ("a1", rows), publisher="other")
    with pytest.raises(JournalReplaced, match="run a1: |150 in run a1.* 199 "):
        reader(tmp_path).latestOffset(place, ReadMaxRows(1000))


def test_a_copy_that_was_not_started_yet_ends_the_query_and_is_read_once_it_was(tmp_path: Path) -> None:
    write(tmp_path, ("a1", 200))
    place = read_all(tmp_path)
    write(tmp_path, ("a1", 150))
    with pytest.raises(JournalReplaced, match="in run a"):
        reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    write(tmp_path, ("a1", 150), ("a2", 5))
    end = reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end) == stretch("a2", 150, 155)


def keep_from(writer: JournalWriter, first: int) -> None:
    writer.seal()
    writer.retain(first)


def test_where_retention_took_the_row_of_a_place_the_run_behind_it_tells(tmp_path: Path) -> None:
    place = read_all_of(tmp_path, ("a1", 100))
    keep_from(write(tmp_path, ("a1", 100), ("a1", 100), ("a1", 100)), 100)
    assert reader(tmp_path).latestOffset(place, ReadMaxRows(1000))["nodes"] == {"node-a": 300}
    keep_from(write(tmp_path, ("a1", 100), ("a1", 100), ("a1", 100)), 200)
    with pytest.raises(JournalMissing, match="rows 100 to 199 of messages"):
        reader(tmp_path).latestOffset(place, ReadMaxRows(1000))


def read_all_of(data: Path, *stretches: Stretch) -> dict[str, Any]:
    write(data, *stretches)
    return read_all(data)


def test_where_retention_took_all_that_was_read_what_the_runs_follow_tells(tmp_path: Path) -> None:
    place = read_all_of(tmp_path, ("a1", 100))
    keep_from(write(tmp_path, ("a1", 100), ("a2", 100), ("a3", 100)), 200)
    with pytest.raises(JournalReplaced, match="begins at 200 with run"):
        reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    assert reader(tmp_path, failOnDataLoss="false").latestOffset(place, ReadMaxRows(1000))["begun"] == {"node-a": 200}
    tell_runs(tmp_path, a2="a1", a3="a2")
    with pytest.raises(JournalMissing, match="rows 100 to 199 of messages"):
        reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    shutil.rmtree(tmp_path / "journal/runs")
    tell_runs(tmp_path, a2=None, a3="a2")
    end = reader(tmp_path).latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end) == stretch("a3", 200, 300)
    assert "its offsets up to 199 were removed by retention before they were read" in end["replaced"]["node-a"]


def test_rows_that_a_power_cut_took_after_they_were_read_change_nothing(tmp_path: Path) -> None:
    place = read_all_of(tmp_path, ("a1", 120))
    writer = write(tmp_path, ("a1", 100))
    writer.close()
    writer.next = 1_000_100
    writer.write([message(offset, run="a2") for offset in range(1_000_100, 1_000_110)])
    end = reader(tmp_path).latestOffset(place, ReadMaxRows(10_000_000))
    assert rows_between(tmp_path, place, end) == stretch("a2", 1_000_100, 1_000_110) and "replaced" not in end


def test_a_copy_under_another_name_is_read_from_where_it_forked(tmp_path: Path) -> None:
    write(tmp_path / "one", ("a1", 100), ("a2", 100))
    place = read_all(tmp_path / "*")
    write_two(tmp_path)
    end = reader(tmp_path / "*").latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path / "*", place, end) == stretch("b2", 100, 150)
    assert "its rows up to offset 99, of run a1, were already read under another name" in end["replaced"]["node-b"]


@pytest.mark.parametrize("limit", [30, 1000])
def test_two_nodes_on_two_copies_bring_what_they_share_once(tmp_path: Path, limit: int) -> None:
    write(tmp_path / "one", ("a1", 100), ("a2", 100))
    write_two(tmp_path)
    place, found = reader(tmp_path / "*").initialOffset(), []
    while (end := reader(tmp_path / "*").latestOffset(place, ReadMaxRows(limit))) != place:
        found += rows_between(tmp_path / "*", place, end)
        place = end
    assert sorted(found) == [*stretch("a1", 0, 100), *stretch("a2", 100, 200), *stretch("b2", 100, 150)]


def write_two(data: Path) -> None:
    """A copy of the first run whose node was given another name, as nodes do it: the rows and the manifest keep the one of before."""
    writer = write(data / "two", ("a1", 100))
    writer.seal()
    writer.node = "node-b"
    writer.write([message(offset, run="b2") for offset in range(100, 150)])
    writer.node = "node-a"
    writer.seal()


def test_rows_that_were_erased_stay_left_out_of_a_copy_and_others_of_the_same_offsets_land(tmp_path: Path) -> None:
    place = read_all_of(tmp_path, ("a1", 100))
    write(tmp_path, ("b2", 100))
    options = {"leftOut": json.dumps({"node-a": {"a1": [[10, 20]], "b2": [[30, 31]]}})}
    end = reader(tmp_path, **options).latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end, **options) == [*stretch("b2", 0, 30), *stretch("b2", 31, 100)]


def test_a_place_of_which_no_row_was_kept_is_gone_on_from(tmp_path: Path) -> None:
    write(tmp_path, ("a1", 200))
    place = {"stream": "messages", "nodes": {"node-a": 150}}
    assert reader(tmp_path).latestOffset(place, ReadMaxRows(1000))["nodes"] == {"node-a": 200}


def test_a_lost_checkpoint_is_not_taken_for_another_name(tmp_path: Path) -> None:
    passed = read_all_of(tmp_path, ("a1", 200))["runs"]
    write(tmp_path, ("a1", 200), ("a2", 50))
    for name in ("node-a", "node-b"):
        end = reader(tmp_path).latestOffset(
            {"stream": "messages", "nodes": {}, "runs": {name: passed["node-a"]}}, ReadMaxRows(1000)
        )
        assert end["nodes"]["node-a"] == 250
        assert ("under another name" in end.get("replaced", {}).get("node-a", "")) == (name == "node-b")


def test_a_place_of_an_older_version_knows_its_last_run(tmp_path: Path) -> None:
    place = read_all_of(tmp_path, ("a0", 50), ("a1", 150))
    old = {"stream": "messages", "nodes": {"node-a": 200}, "last": {"node-a": place["runs"]["node-a"][-1][::2]}}
    write(tmp_path, ("a0", 50), ("a1", 100), ("a2", 100))
    end = reader(tmp_path).latestOffset(old, ReadMaxRows(1000))
    assert rows_between(tmp_path, old, end) == stretch("a2", 150, 250)


def test_a_running_query_sees_that_the_folder_was_replaced(tmp_path: Path) -> None:
    write(tmp_path, ("a1", 200)).close()
    running = reader(tmp_path)
    place = running.latestOffset(running.initialOffset(), ReadMaxRows(1000))
    write(tmp_path, ("b2", 300)).close()
    os.utime(tmp_path / "journal/messages", (0, 0))  # no clock is fine enough for what a test does in a row
    end = running.latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path, place, end) == stretch("b2", 0, 300)


@pytest.mark.parametrize("rows", [40, 200, 300])
@pytest.mark.parametrize("run", ["a1", "b2"])
def test_a_running_query_sees_that_other_rows_were_written_into_a_file(tmp_path: Path, run: str, rows: int) -> None:
    """A copy put back over the files of a journal leaves their names and inodes."""
    write(tmp_path / "now", ("a1", 200)).close()
    running = reader(tmp_path / "now")
    place = running.latestOffset(running.initialOffset(), ReadMaxRows(1000))
    (part,) = running.journals.parts({"node-a": 0}, {"node-a": 200})
    write(tmp_path / "copy", (run, rows), publisher="other").close()
    name = f"journal/messages/{0:020}.arrows"
    (tmp_path / "now" / name).write_bytes((tmp_path / "copy" / name).read_bytes())
    if rows < 200:
        with pytest.raises(JournalBroken, match="it was overwritten while it was read"):
            [*read_part(part, running.reading)]
    if run == "a1":
        with pytest.raises(JournalReplaced, match="restored from a copy|differs from the row that was read"):
            running.latestOffset(place, ReadMaxRows(1000))
        return
    end = running.latestOffset(place, ReadMaxRows(1000))
    assert rows_between(tmp_path / "now", place, end) == stretch("b2", 0, rows)


def test_the_runs_of_a_node_that_is_away_are_kept(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, (f"run-{name}", 20), node=name).close()
    place = read_all(tmp_path / "*")
    shutil.rmtree(tmp_path / "one")
    write(tmp_path / "two", ("run-two", 30), node="two").close()
    later = reader(tmp_path / "*").latestOffset(place, ReadMaxRows(1000))
    assert later["nodes"] == {"one": 20, "two": 30} and later["runs"]["one"] == place["runs"]["one"]


@pytest.mark.parametrize("as_tasks", ["true", "false"])
@pytest.mark.parametrize("run", ["a1", "b2"])
@pytest.mark.parametrize("is_sealed", [True, False])
def test_rows_that_took_the_place_of_those_that_were_planned_are_not_read(
    tmp_path: Path, run: str, is_sealed: bool, as_tasks: str
) -> None:
    """As many rows, of the same length, in a file of the same name: written between the plan of a batch and its reading."""
    writers = [write(tmp_path / "now", ("a1", 200)), write(tmp_path / "copy", (run, 200), publisher="thermometry")]
    for writer in writers:
        if is_sealed:
            writer.seal()
        writer.close()
    opened = reader(tmp_path / "now", asTasks=as_tasks, rowsPerTask="70")
    start = opened.initialOffset()
    end = opened.latestOffset(start, ReadMaxRows(1000))
    tasks = [task.part for task in opened.partitions(start, end) if isinstance(task, Task)]
    batch = JournalReader(opened.options, stream_columns("messages")).partitions()
    whole = [task.part for task in batch if isinstance(task, Task)]
    shutil.copytree(tmp_path / "copy/journal/messages", tmp_path / "now/journal/messages", dirs_exist_ok=True)
    changed = [tasks[-1]] if run == "a1" else [*tasks, *whole]  # of one run the last row is known
    for part in changed:
        with pytest.raises(JournalReplaced):
            [*read_part(part, opened.reading)]
    for again in (reader(tmp_path / "now", asTasks=as_tasks), opened):
        with pytest.raises(JournalReplaced, match="others than when this batch was planned"):
            again.partitions(start, json.loads(json.dumps(end)))
    assert rows_between(tmp_path / "now", start, end, failOnDataLoss="false") == [], (
        "what took their place is no part of it"
    )
