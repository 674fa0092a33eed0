"""Finding rows in a journal's folder: by the manifest, and of open segments by their whole batches."""

from __future__ import annotations

import itertools
import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from godwit_pipelines.errors import ConfigInvalid, JournalBroken, JournalMissing
from godwit_pipelines.source.columns import stream_columns, stream_schema
from godwit_pipelines.source.journal import JournalSource, JournalStreamReader, Options
from godwit_pipelines.source.offsets import to_offset
from godwit_pipelines.source.parts import Journals, check_paths, find_folders
from godwit_pipelines.source.rows import Reading, read_part
from godwit_pipelines.source.segments import StreamFolder
from tests.pipelines.journals import START, JournalWriter, message, write_messages


def look(data: Path, stream: str = "messages") -> StreamFolder:
    folder = StreamFolder(data / "journal" / stream, stream)
    folder.look()
    return folder


def rows(first: int, next: int) -> list[dict[str, object]]:
    return [message(offset) for offset in range(first, next)]


def test_what_is_there_ends_at_the_last_whole_batch(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    assert (look(tmp_path).first, look(tmp_path).next) == (0, 400)
    writer.close()
    path = tmp_path / "journal/messages" / f"{300:020}.arrows"
    whole = path.read_bytes()
    seen = set()
    for size in range(len(whole), 0, -101):
        path.write_bytes(whole[:size])
        seen.add(look(tmp_path).next)
    assert seen == {300, 350, 400}


def test_only_what_is_new_is_looked_at(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    folder = look(tmp_path)
    before = folder.open[0].batches
    writer.write(rows(400, 450))
    folder.look()
    assert folder.next == 450 and folder.open[0].batches is before and len(before) == 3


def test_a_segment_that_is_sealed_meanwhile_goes_on_under_its_new_name(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    folder = look(tmp_path)
    writer.seal()
    folder.look()
    assert (
        folder.next == 400 and not folder.open and [segment.next for segment in folder.sealed] == [100, 200, 300, 400]
    )
    writer.write(rows(400, 410))
    folder.look()
    assert folder.next == 410 and [type(each).__name__ for each in folder.segments_of(399, 401)] == [
        "Segment",
        "OpenSegment",
    ]


def test_a_segment_that_is_sealed_between_two_looks_is_in_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = write_messages(tmp_path, 100, segments=1)
    folder = look(tmp_path)
    writer.write(rows(100, 150))
    list_open = StreamFolder._list_open

    def seal_first(self: StreamFolder) -> None:
        monkeypatch.setattr(StreamFolder, "_list_open", list_open)
        writer.seal()
        writer.write(rows(150, 160))
        list_open(self)

    monkeypatch.setattr(StreamFolder, "_list_open", seal_first)
    folder.look()
    found = folder.segments_of(0, 160)
    assert [(segment.first, segment.next) for segment in found][-1] == (150, 160)
    assert all(before.next == after.first for before, after in itertools.pairwise(found)), found


def test_an_open_file_beside_its_sealed_one_is_ignored(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 100, segments=1)
    writer.seal(remove=False)
    folder = look(tmp_path)
    assert folder.next == 100 and not folder.open


def test_rows_past_the_first_of_the_next_file_do_not_count(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    writer.write(rows(0, 10))
    writer.write(rows(10, 20))
    writer.close()
    writer.next = 15
    writer.write(rows(15, 40))
    folder = look(tmp_path)
    assert folder.next == 40
    assert [(segment.first, segment.next) for segment in folder.open] == [(0, 15), (15, 40)]
    assert [count for _, count in [(found.start, found.rows) for found, _ in folder.open[0].batches_of(0, 15)]] == [
        10,
        5,
    ]


def test_blocks_that_were_allocated_and_not_written_are_a_tail(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 100, segments=1)
    with (tmp_path / "journal/messages" / f"{50:020}.arrows").open("ab") as file:
        file.write(bytes(4096))
    assert look(tmp_path).next == 100
    writer.close()


def test_a_row_that_retention_let_go_is_missed_by_name(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    writer.retain(150)
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    assert journals.firsts() == {"node-a": 100}
    with pytest.raises(JournalMissing, match=r"node node-a: rows 50 to 99 of messages"):
        journals.parts({"node-a": 50}, {"node-a": 400})
    kept = journals.parts({"node-a": 50}, {"node-a": 400}, may_lose=True)
    assert kept[0].first == 100 and kept[-1].next == 400


def test_a_segment_that_is_gone_with_its_file_is_passed_over(tmp_path: Path) -> None:
    write_messages(tmp_path, 400, segments=3).close()
    path = tmp_path / "journal/messages/manifest.json"
    manifest = json.loads(path.read_bytes())
    gone = manifest["segments"][1]  # as a start names one that somebody took away, or that it cannot read
    gone |= {"rows": 0, "bytes": 0, "run": "", "time_min": 0, "time_max": 0, "missing": [[gone["first"], gone["next"]]]}
    path.write_text(json.dumps(manifest))
    (path.parent / gone["file"]).unlink()
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    parts = journals.parts({}, journals.nexts())
    found = {offset for part in parts for offset in range(part.first, part.next)}
    assert found == set(range(400)) - set(range(gone["first"], gone["next"]))
    assert gone["file"] not in {part.file for part in parts}
    journals.check_there("node-a", 0, 400)
    assert journals.missing_files("node-a", 0, 400) == []


def test_a_journal_without_its_manifest_is_told_as_that(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    path = tmp_path / "journal/messages/manifest.json"
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(JournalBroken, match=r"manifest.json .* 3 sealed segments .* 0{20}-"):
        Journals(str(tmp_path), "messages").look()
    for sealed in path.parent.glob("*.arrow"):
        sealed.unlink()
    folder = StreamFolder(path.parent, "messages")
    folder.look()
    assert (folder.first, folder.next) == (0, 400), "what is left begins with an open segment: nothing was sealed yet"
    open_first = folder.open[0].first
    path.with_name(f"{open_first:020}-{400:020}.arrow").write_bytes(b"being sealed")
    folder.look()
    path.write_bytes(kept)
    folder.look()
    assert len(folder.sealed) == 3
    writer.close()


def test_a_segment_that_somebody_removed_is_not_told_as_retention(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    folder = tmp_path / "journal/messages"
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    part = journals.parts({}, {"node-a": 200})[-1]
    (folder / part.file).unlink()
    reading = Reading(stream_schema("messages"), stream_schema("messages"), verify=True)
    with pytest.raises(JournalMissing, match=part.file):
        list(read_part(part, reading))
    with pytest.raises(JournalMissing, match=r"rows 100 to 199 of messages .*failOnDataLoss=false"):
        journals.check_there("node-a", 50, 210)
    journals.check_there("node-a", 200, 400)
    (folder / part.file).touch()
    writer.retain(200)
    with pytest.raises(JournalMissing, match="100 to 199 of messages .*retention"):
        journals.check_there("node-a", 100, 210)
    with pytest.raises(JournalMissing, match="retention .*offset 100 "):
        list(read_part(part, reading))


def test_rows_that_no_segment_has_are_an_error(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 400, segments=3)
    writer.close()
    path = tmp_path / "journal/messages" / f"{300:020}.arrows"
    path.rename(path.with_name(f"{320:020}.arrows"))
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    with pytest.raises(JournalBroken, match="300 to 319 of messages"):
        journals.parts({}, journals.nexts())
    path.with_name(f"{320:020}.arrows").unlink()
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    with pytest.raises(JournalBroken, match="300.* 400"):
        journals.parts({}, {"node-a": 400})


def test_a_stream_knows_a_journal_that_was_replaced_and_one_that_is_gone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_messages(tmp_path / name, 100, node=name)
    options = Options({"path": str(tmp_path / "*"), "stream": "messages"})
    reader = JournalStreamReader(options, stream_columns("messages"))
    place = to_offset("messages", {"one": 100, "two": 40})
    assert reader.latestOffset(place, ReadMaxRows(30))["nodes"] == {"one": 100, "two": 70}
    shutil.rmtree(tmp_path / "one")
    reader = JournalStreamReader(options, stream_columns("messages"))
    end = reader.latestOffset(place, ReadMaxRows(30))
    assert end["nodes"] == {"one": 100, "two": 70} and len(reader.partitions(place, end)) > 0
    with pytest.raises(JournalMissing, match="node one "):
        reader.partitions(place, to_offset("messages", end["nodes"], {"one": 90, "two": 40}))
    with pytest.raises(JournalBroken, match="100.* 105"):
        reader.latestOffset(to_offset("messages", {"two": 105}), ReadMaxRows(30))


def test_batches_bring_the_oldest_rows_of_all_nodes(tmp_path: Path) -> None:
    """The second node began 350 ms after the first, wrote slower, and has sealed nothing."""
    write_messages(tmp_path / "one", 400)
    second = JournalWriter(tmp_path / "two", node="two")
    for first in range(0, 40, 10):
        late = [message(row, time=START + timedelta(milliseconds=350 + 5 * row)) for row in range(first, first + 10)]
        second.write(late)
    journals = Journals(f"{tmp_path}/*", "messages")
    journals.look()
    options = Options({"path": str(tmp_path / "*"), "stream": "messages"})
    reader = JournalStreamReader(options, stream_columns("messages"))
    begun, offsets = reader.initialOffset(), list[dict[str, int]]()
    while not offsets or offsets[-1] != journals.nexts():
        begun = reader.latestOffset(begun, ReadMaxRows(100))
        offsets.append(begun["nodes"])
    at_a_time = [(0, 0), (100, 0), (200, 0), (300, 0), (392, 8), (400, 40)]
    assert offsets == [{"node-a": one, "two": two} for one, two in at_a_time[1:]]


def test_an_availablenow_query_ends_where_it_began_to_look(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 100)
    reader = JournalStreamReader(Options({"path": str(tmp_path)}), stream_columns("messages"))
    reader.prepareForTriggerAvailableNow()
    writer.write(rows(100, 200))
    begun = reader.initialOffset()
    assert reader.latestOffset(begun, ReadAllAvailable())["nodes"] == {"node-a": 100}
    reader.last = None
    assert reader.latestOffset(begun, ReadAllAvailable())["nodes"] == {"node-a": 200}


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": ""},
        {"stream": "mesages"},
        {"maxRowsPerBatch": "0"},
        {"verify": "perhaps"},
        {"startingOffsets": "now"},
        {"startingOffsets": "5"},
    ],
)
def test_an_option_that_cannot_be_is_told(wrong: dict[str, str]) -> None:
    with pytest.raises(ConfigInvalid):
        JournalSource({"path": "x", **wrong}).schema()


def test_tasks_cover_every_offset_once(tmp_path: Path) -> None:
    write_messages(tmp_path, 1003, segments=4, batch=7)
    journals = Journals(str(tmp_path), "messages", rows_per_task=60)
    journals.look()
    parts = journals.parts({"node-a": 11}, {"node-a": 990})
    assert [part.first for part in parts] == [11, *(part.next for part in parts[:-1])] and parts[-1].next == 990
    assert max(part.next - part.first for part in parts) < 2 * 60


def test_two_journals_of_one_node_are_refused(tmp_path: Path) -> None:
    write_messages(tmp_path / "one", 20)
    write_messages(tmp_path / "two", 20)
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "journal.paths"):
        Journals(str(tmp_path / "*"), "messages").look()


def test_paths_are_data_directories_journals_lists_and_globs(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_messages(tmp_path / name, 8, node=name)
    expected = [tmp_path / name / "journal/messages" for name in ("one", "two")]
    assert find_folders(str(tmp_path / "*"), "messages") == expected
    assert find_folders(f"{tmp_path}/one, {tmp_path}/two/journal", "messages") == expected
    assert find_folders(str(tmp_path / "one"), "access") == [] == find_folders(str(tmp_path / "none-*"), "access")
    with pytest.raises(JournalMissing, match="three"):
        find_folders(str(tmp_path / "three"), "messages")
    check_paths([str(tmp_path / "*"), str(tmp_path / "one")])
    with pytest.raises(JournalMissing, match=r"none-\*"):
        check_paths([str(tmp_path / "*"), str(tmp_path / "none-*")])
    for wrong in ("one/journal/messages", "."):
        with pytest.raises(JournalMissing, match="`journal`"):
            check_paths([str(tmp_path / wrong)])
    (tmp_path / "new" / "journal").mkdir(parents=True)
    check_paths([str(tmp_path / "new"), str(tmp_path / "one/journal")])


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1},
        {"format": 3},
        {"stream": "access"},
        {"next": 7},
        {"first": 600},
        {"segments": [{"file": "x", "first": 0, "next": 5}]},
        {"segments": [{"file": "../../../etc/passwd", "first": 0, "next": 5}]},
        {"segments": 5},
        {"node": None, "segments": [{}]},
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    write_messages(tmp_path, 400)
    path = tmp_path / "journal/messages/manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(JournalBroken):
        look(tmp_path)
