"""Tables without Spark: commits that are made once, rows that are deleted permanently, and a table that is read while it grows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StringType, StructField, StructType

from godwit_pipelines.delta.appended import read_file, snapshot_files
from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.commits import commit_files, open_or_create
from godwit_pipelines.delta.erasing import count_rows, erase_rows
from godwit_pipelines.delta.files import Written, write_files
from godwit_pipelines.delta.quarantine import Sorter
from godwit_pipelines.delta.table_files import file_paths, live_files
from godwit_pipelines.delta.tail import TailReader
from godwit_pipelines.errors import CheckpointOlder, TableMissing
from godwit_pipelines.jobs.maintain import vacuum
from godwit_pipelines.tables import TABLES, Table
from tests.pipelines.journals import START, message

TABLE = TABLES["bronze.messages"]
SCHEMA = arrow_schema(TABLE.schema)


def write_rows(path: Path, offsets: Iterable[int], **fields: Any) -> list[Written]:
    rows = [
        {"node": "a", "journal_offset": offset, "crc": 0, "date": START.date(), **message(offset, **fields)}
        for offset in offsets
    ]
    return write_files(pa.Table.from_pylist(rows, SCHEMA).to_batches(), path, SCHEMA, TABLE.partitions)


def write(path: Path, offsets: range, *, app: str = "query", batch: int = 0, **fields: Any) -> bool:
    files = write_rows(path, offsets, **fields)
    return commit_files(str(path), TABLE.schema, TABLE.partitions, files, app=app, batch=batch)


def offsets_of(path: Path) -> list[int]:
    return sorted(DeltaTable(str(path)).to_pyarrow_table().column("journal_offset").to_pylist())


def test_a_batch_is_committed_once_the_first_too_and_a_repeat_leaves_no_file(tmp_path: Path) -> None:
    assert write(tmp_path, range(10)) and not write(tmp_path, range(10))
    assert write(tmp_path, range(10, 20), batch=1) and not write(tmp_path, range(10), batch=1)
    with pytest.raises(CheckpointOlder):
        write(tmp_path, range(10), batch=0)
    assert write(tmp_path, range(20, 25), app="another")
    assert offsets_of(tmp_path) == list(range(25))
    assert len(list(tmp_path.rglob("*.parquet"))) == len(live_files(str(tmp_path))) == 3


def test_files_are_named_as_the_system_names_them(tmp_path: Path) -> None:
    path = tmp_path / "lake ü {a,b} *?#"
    rows = pa.table({"k": ["a b/ü%", "z:{q}", None], "v": [1, 2, 3]})
    write_deltalake(str(path), rows, partition_by=["k"])
    files = file_paths(str(path))
    assert len(files) == 3 and all(Path(file).is_file() for file in files), files


class ByName(Table):
    """A table whose folders are names, not days."""

    @property
    def partitions(self) -> tuple[str, ...]:
        return ("k",)


def test_a_file_is_found_and_taken_out_whatever_its_folder_is_called(tmp_path: Path) -> None:
    kind = StructType([StructField(name, StringType()) for name in ("who", "k")])
    table = ByName(name="gold.odd", about="", columns=kind, key=("k",), job="land", persons=("who",))
    rows = pa.table({"who": ["ann", "mallory"] * 2, "k": ["a b%20c", "a b%20c", "d ü", "d ü"]})
    write_deltalake(str(tmp_path), rows, partition_by=["k"])
    for left in (["ann", "mallory"] * 2, ["ann"] * 2):
        files = snapshot_files(str(tmp_path), DeltaTable(str(tmp_path)).version())
        batches = [batch for file in files for batch in read_file(tmp_path, file, arrow_schema(table.schema))]
        assert sorted(pa.Table.from_batches(batches).column("who").to_pylist()) == sorted(left)
        erase_rows(str(tmp_path), table, "mallory")


def test_a_file_of_a_task_that_failed_is_removed(tmp_path: Path) -> None:
    def batches() -> Any:
        yield from pa.Table.from_pylist([{"journal_offset": 1, "date": START.date()}], SCHEMA).to_batches()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_files(batches(), tmp_path, SCHEMA, TABLE.partitions)
    assert not list(tmp_path.rglob("*.parquet"))


def test_rows_of_several_days_lie_in_a_folder_each(tmp_path: Path) -> None:
    days = [START.date().replace(day=day) for day in (20, 21, 20)]
    rows = [{"node": "a", "journal_offset": offset, "date": day} for offset, day in enumerate(days)]
    files = write_files(pa.Table.from_pylist(rows, SCHEMA).to_batches(), tmp_path, SCHEMA, TABLE.partitions)
    assert {(each.partition["date"], each.rows) for each in files} == {("2026-11-20", 2), ("2026-11-21", 1)}


def test_bounds_of_offsets_are_in_the_log_and_names_of_persons_are_not(tmp_path: Path) -> None:
    write(tmp_path, range(5, 15), publisher="mallory")
    DeltaTable(str(tmp_path)).optimize.compact()
    file = live_files(str(tmp_path))[0]
    assert (file["min.journal_offset"], file["max.journal_offset"], file["min.node"], file["num_records"]) == (
        5,
        14,
        "a",
        10,
    )
    assert "mallory" not in "".join(path.read_text() for path in (tmp_path / "_delta_log").glob("*.json"))


def test_who_is_erased_is_in_no_file_and_in_no_log(tmp_path: Path) -> None:
    write(tmp_path, range(10))
    write(tmp_path, range(10, 20), batch=1, publisher="mallory")
    write(tmp_path, range(20, 30), batch=2)
    untouched = {file["path"] for file in live_files(str(tmp_path))}
    assert erase_rows(str(tmp_path), TABLE, "mallory") == 10
    assert erase_rows(str(tmp_path), TABLE, "mallory") == 0
    assert offsets_of(tmp_path) == [*range(10), *range(20, 30)]
    assert len(untouched & {file["path"] for file in live_files(str(tmp_path))}) == 2
    table = DeltaTable(str(tmp_path))
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    table.create_checkpoint()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"mallory" in path.read_bytes()]


def test_files_that_a_job_has_not_committed_yet_are_left_to_it(tmp_path: Path) -> None:
    write(tmp_path, range(10))
    files = write_rows(tmp_path, range(10, 20))
    DeltaTable(str(tmp_path)).optimize.compact()
    orphan = tmp_path / "date=2026-11-21" / "orphan.parquet"
    orphan.write_bytes(b"left by a crash")
    os.utime(orphan, (0, 0))
    assert vacuum(str(tmp_path), 0.0) == ["1 file removed"] and not orphan.exists()
    commit_files(str(tmp_path), TABLE.schema, TABLE.partitions, files, app="query", batch=1)
    assert offsets_of(tmp_path) == list(range(20))


def test_what_was_replaced_is_kept_for_a_part_of_an_hour_too(tmp_path: Path) -> None:
    write(tmp_path, range(10))
    write(tmp_path, range(10, 20), batch=1)
    DeltaTable(str(tmp_path)).optimize.compact()
    assert vacuum(str(tmp_path), 0.5) == [] and vacuum(str(tmp_path), 0.0) == ["2 files removed"]


def test_who_is_erased_is_in_no_file_that_was_compacted_either(tmp_path: Path) -> None:
    for batch, publisher in enumerate(("ann", "mallory", None)):
        write(tmp_path, range(batch * 10, batch * 10 + 10), batch=batch, publisher=publisher)
    DeltaTable(str(tmp_path)).optimize.compact()
    assert len(live_files(str(tmp_path))) == 1
    assert erase_rows(str(tmp_path), TABLE, "mallory") == 10
    assert offsets_of(tmp_path) == [*range(10), *range(20, 30)]
    table = DeltaTable(str(tmp_path))
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"mallory" in path.read_bytes()]


def test_who_is_erased_is_in_no_damaged_row_either(tmp_path: Path) -> None:
    table = TABLES["bronze.quarantine"]
    sorter = Sorter("messages")
    for offset, publisher in enumerate(("mallory", 'the "other" Zoë', "x: mallory")):
        row = {
            "node": "a",
            "journal_offset": offset,
            "time": START,
            "fault": "crc",
            "publisher": publisher,
            "date": START.date(),
        }
        sorter.damaged.append(sorter.describe(row))
    schema = arrow_schema(table.schema)
    files = write_files(pa.Table.from_pylist(sorter.damaged, schema).to_batches(), tmp_path, schema, table.partitions)
    commit_files(str(tmp_path), table.schema, table.partitions, files)
    assert [erase_rows(str(tmp_path), table, name) for name in ("publisher", "mallory", 'the "other" Zoë')] == [0, 1, 1]
    assert offsets_of(tmp_path) == [2]


def tell(reader: TailReader, place: dict[str, Any], limit: ReadLimit) -> tuple[dict[str, Any], list[int]]:
    """One micro-batch: where it ends and the offsets that it reported, by a new reader, as in a worker."""
    end = reader.latestOffset(place, limit)
    tasks = TailReader(reader.options, TABLE.schema).partitions(place, end)
    return end, sorted(
        offset for task in tasks for batch in reader.read(task) for offset in batch.column("journal_offset").to_pylist()
    )


def test_a_table_is_told_as_it_stands_and_then_as_it_grows(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "table")}
    reader = TailReader(options, TABLE.schema)
    place, progress = tell(reader, reader.initialOffset(), ReadAllAvailable())
    assert progress == []  # nothing is there yet
    path = tmp_path / "table"
    write(path, range(10))
    place, progress = tell(reader, place, ReadAllAvailable())
    assert progress == list(range(10))
    for batch in (1, 2, 3):
        write(path, range(batch * 10, batch * 10 + 10), batch=batch)
    place, progress = tell(reader, place, ReadMaxRows(20))
    assert progress == list(range(10, 30))
    DeltaTable(str(path)).optimize.compact()
    place, progress = tell(reader, place, ReadAllAvailable())
    assert progress == list(range(30, 40))
    erase_rows(str(path), replace(TABLE, persons=("subject",)), "/rooms/3")
    write(path, range(40, 50), batch=4)
    place, progress = tell(reader, place, ReadAllAvailable())
    assert progress == list(range(40, 50))


def hour(number: int, node: str = "a") -> dict[str, Any]:
    return {"node": node, "time": START + timedelta(hours=number)}


@pytest.mark.parametrize("is_snapshot", [True, False])
def test_the_oldest_rows_come_first_and_none_behind_much_newer_ones(tmp_path: Path, is_snapshot: bool) -> None:
    """Offsets are hours. Another node's came hours later, and some files are of hours that another has, too."""
    reader = TailReader({"path": str(tmp_path)}, TABLE.schema)
    begun = reader.initialOffset()
    for batch, number in enumerate((0, 3, 1, 4, 2, 5)):
        write(tmp_path, range(number, number + 1), batch=batch, **hour(number))
    write_long(tmp_path, 6, 10)
    write_long(tmp_path, 8, 11)
    for batch, number in enumerate((9, 12, 13)):
        write(tmp_path, range(number, number + 1), batch=batch + 8, **hour(number))
    place, progress = (reader.initialOffset() if is_snapshot else begun), list[list[int]]()
    while not progress or progress[-1]:
        place, found = tell(TailReader(reader.options, TABLE.schema), place, ReadMaxRows(2))
        progress.append(found)
    if is_snapshot:
        assert progress == [[0, 1], [2, 3], [4, 5], [6, 8, 9, 10, 11], [12, 13], []]
    else:
        assert progress == [[0, 1, 2, 3, 4], [5], [6, 8, 9, 10, 11], [12, 13], []]


def write_long(path: Path, first: int, last: int) -> None:
    """A file with a row at either end of so many hours."""
    rows = [
        {**message(offset, **hour(offset, "b")), "journal_offset": offset, "crc": 0, "date": START.date()}
        for offset in (first, last)
    ]
    files = write_files(pa.Table.from_pylist(rows, SCHEMA).to_batches(), path, SCHEMA, TABLE.partitions)
    commit_files(str(path), TABLE.schema, TABLE.partitions, files, app="long", batch=first)


def test_a_checkpoint_from_before_goes_on_in_its_order(tmp_path: Path) -> None:
    for batch, number in enumerate((3, 1, 2)):
        write(tmp_path, range(number, number + 1), batch=batch, **hour(number))
    by_name = [tell_hour(file.begins_us) for file in snapshot_files(str(tmp_path), 3)]
    reader = TailReader({"path": str(tmp_path)}, TABLE.schema)
    place, progress = tell(reader, {"version": 3, "files": 1, "snapshot": True}, ReadAllAvailable())
    table = {"table": DeltaTable(tmp_path).metadata().id}
    assert progress == sorted(by_name[1:]) and place.pop("digest")
    assert place == {"version": 3, "files": 3, "snapshot": True, **table}
    write(tmp_path, range(4, 5), batch=3, **hour(4))
    place, progress = tell(reader, place, ReadAllAvailable())
    assert progress == [4] and place.pop("digest")
    assert place == {"version": 4, "files": 1, "snapshot": False, "by_time": True, **table}


def tell_hour(time_us: int) -> int:
    return int((time_us / 1e6 - START.timestamp()) / 3600)


def test_who_comes_late_begins_with_the_snapshot_even_when_the_log_is_gone(tmp_path: Path) -> None:
    for batch in range(4):
        write(tmp_path, range(batch * 10, batch * 10 + 10), batch=batch)
    table = DeltaTable(str(tmp_path))
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    table.create_checkpoint()
    reader = TailReader({"path": str(tmp_path)}, TABLE.schema)
    begun = reader.initialOffset()
    for commit in sorted((tmp_path / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    place, progress = tell(reader, begun, ReadAllAvailable())
    assert progress == list(range(40))
    with pytest.raises(TableMissing, match="version 1 "):
        tell(reader, {"version": 1, "files": 0, "snapshot": False}, ReadAllAvailable())
    assert tell(reader, place, ReadAllAvailable()) == (place, [])


def test_a_column_that_a_table_gains_is_null_in_the_rows_before(tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    write(tmp_path, range(3))
    wider = StructType([*TABLE.schema.fields, StructField("weight", LongType(), False, {"comment": "New."})])
    open_or_create(str(tmp_path), wider, TABLE.partitions)
    rows = [{"node": "a", "journal_offset": 3, "date": START.date(), "weight": 5}]
    files = write_files(
        pa.Table.from_pylist(rows, arrow_schema(wider)).to_batches(), tmp_path, arrow_schema(wider), TABLE.partitions
    )
    commit_files(str(tmp_path), wider, TABLE.partitions, files, app="query", batch=1)
    assert sorted(map(str, DeltaTable(str(tmp_path)).to_pyarrow_table().column("weight").to_pylist())) == [
        "5",
        "None",
        "None",
        "None",
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_a_person_is_found_however_a_compacted_file_holds_texts(tmp_path: Path, kind: pa.DataType) -> None:
    names = pa.array(["ann", "bob", None, "ann"]).cast(kind)
    pq.write_table(pa.table({TABLE.persons[0]: names}), tmp_path / "rows")
    assert count_rows(tmp_path / "rows", TABLE, "ann") == 2
