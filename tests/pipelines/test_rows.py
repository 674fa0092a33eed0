"""Reading rows: each as it was written, or with a fault; never silently another, and never one too few."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from crc32c import crc32c

from godwit_pipelines.errors import JournalBroken, JournalMissing
from godwit_pipelines.schemas import SCHEMAS
from godwit_pipelines.source.checksum import checksums
from godwit_pipelines.source.columns import stream_schema
from godwit_pipelines.source.journal import leave_out
from godwit_pipelines.source.parts import Journals
from godwit_pipelines.source.rows import Reading, read_part
from tests.pipelines.journals import START, JournalWriter, checksum, message, write_messages

SCHEMA = stream_schema("messages")
FAULTS = {"fault": pa.string(), "fault_next": pa.int64(), "fault_bytes": pa.int64()}
WANTED = pa.schema([*(pa.field(field.name, field.type) for field in SCHEMA), *FAULTS.items()])
READING = Reading(SCHEMA, WANTED)


def read(data: Path, first: int = 0, next: int | None = None, rows_per_task: int = 64) -> list[dict[str, object]]:
    journals = Journals(str(data), "messages", rows_per_task=rows_per_task)
    journals.look()
    parts = journals.parts({"node-a": first}, {"node-a": next} if next else journals.nexts())
    return [row for part in parts for batch in read_part(part, READING) for row in each_of(batch)]


def each_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch; for lost ones, which one row stands for, one for each."""
    for row in batch.to_pylist():
        for offset in range(row["journal_offset"], row["fault_next"] or row["journal_offset"] + 1):
            yield {**row, "journal_offset": offset}


def without_fault(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in FAULTS}


def expected(data: Path, count: int) -> list[dict[str, object]]:
    writer = JournalWriter(data / "expected")
    return writer.batch([message(offset) for offset in range(count)]).to_pylist()


def test_every_row_comes_as_it_was_written(tmp_path: Path) -> None:
    write_messages(tmp_path, 400)
    rows = read(tmp_path)
    assert [without_fault(row) for row in rows] == expected(tmp_path, 400)
    assert {row["fault"] for row in rows} == {None}
    assert [row["journal_offset"] for row in read(tmp_path, 90, 333)] == list(range(90, 333))


def test_offsets_that_are_left_out_come_neither_sound_nor_damaged(tmp_path: Path) -> None:
    """Of sealed segments and of the open one, of one that is cut and so has lost rows."""
    writer = write_messages(tmp_path, 400)
    cut = writer.folder / writer.segments[1]["file"]
    cut.write_bytes(cut.read_bytes()[:500])
    gone = [(0, 3), (48, 52), (100, 101), (120, 130), (300, 350), (399, 500)]
    journals = Journals(str(tmp_path), "messages", rows_per_task=64)
    journals.look()
    parts = [leave_out(part, gone) for part in journals.parts({"node-a": 0}, journals.nexts())]
    rows = [row for part in parts for batch in read_part(part, READING) for row in each_of(batch)]
    kept = [at for at in range(400) if not any(first <= at < next for first, next in gone)]
    assert [row["journal_offset"] for row in rows] == kept
    assert {row["journal_offset"] for row in rows if row["fault"]} == {at for at in kept if 100 <= at < 200}


@pytest.mark.parametrize("stream", SCHEMAS)
def test_checksums_by_column_are_those_by_row(stream: str) -> None:
    schema, chance = stream_schema(stream), random.Random(stream)
    rows = []
    for offset in range(200):
        row = {field.name: some_value(field, chance, offset) for field in schema}
        rows.append(row)
    batch = pa.RecordBatch.from_pylist(rows, schema)
    assert checksums(batch).tolist() == [checksum(row, schema) for row in rows]
    assert checksums(batch.slice(50, 100)).tolist() == [checksum(row, schema) for row in rows[50:150]]


def some_value(field: pa.Field, chance: random.Random, offset: int) -> object:
    if field.nullable and chance.random() < 0.4:
        return None
    kind = field.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        text = "".join(chance.choices("aé水\0 z", k=chance.randrange(20)))
        return text if pa.types.is_string(kind) else text.encode()
    if pa.types.is_timestamp(kind):
        return START
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_floating(kind):
        return chance.uniform(-1e9, 1e9)
    if pa.types.is_list(kind):
        return [chance.randrange(1 << 40) for _ in range(chance.randrange(5))]
    return chance.randrange(-(1 << 31), 1 << 31)


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def flips(path: Path, count: int) -> Iterator[int]:
    """Flip one bit after the other, each put right again; random, but the same at every run."""
    whole, chance = path.read_bytes(), random.Random(7)
    for _ in range(count):
        at = chance.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :])
        yield at
    path.write_bytes(whole)


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize("count", [30, pytest.param(600, marks=pytest.mark.long)])
def test_a_flipped_bit_is_a_fault_of_its_row_and_never_a_silent_change(
    tmp_path: Path, is_sealed: bool, count: int
) -> None:
    writer = JournalWriter(tmp_path)
    writer.write([message(offset) for offset in range(120)])
    writer.write([message(offset) for offset in range(120, 240)])
    path = writer.seal() if is_sealed else tmp_path / "journal/messages" / f"{0:020}.arrows"
    writer.close()
    true = {row["journal_offset"]: row for row in expected(tmp_path, 240)}
    faulty = 0
    for _ in flips(path, count):
        try:
            rows = read(tmp_path, 0, 240 if is_sealed else None)
        except JournalBroken:  # the first message is damaged, and this journal has no manifest to say whose it is
            assert not is_sealed
            continue
        offsets = [row["journal_offset"] for row in rows]
        assert offsets == list(range(len(rows)))  # each once; an open segment may end earlier, as a torn tail does
        assert len(rows) == 240 or not is_sealed
        for row in rows:
            if row["fault"] is None:
                assert without_fault(row) == true[row["journal_offset"]]
            else:
                faulty += 1
    assert faulty > count / 3


def test_a_row_of_another_offset_is_a_fault(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    batch = writer.batch([message(offset) for offset in range(10)])
    rows = batch.to_pylist()
    rows[4]["journal_offset"] = 7
    rows[4]["crc"] = checksum(rows[4], SCHEMA)
    writer.write(pa.RecordBatch.from_pylist(rows, SCHEMA))
    found = read(tmp_path)
    assert [row["journal_offset"] for row in found] == list(range(10))
    assert [row["fault"] for row in found] == [None] * 4 + ["journal_offset: the row says 7"] + [None] * 5


def test_offsets_that_the_manifest_calls_lost_are_passed_over(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    writer.write([message(offset) for offset in range(10)])
    writer.next = 15
    writer.write([message(offset) for offset in range(15, 30)])
    writer.next = 1000  # as after a crash: it is unknown which offsets were reported
    writer.seal(missing=[(10, 15), (30, 1000)])
    assert [row["journal_offset"] for row in read(tmp_path)] == [*range(10), *range(15, 30)]
    assert [row["journal_offset"] for row in read(tmp_path, 12, 20)] == list(range(15, 20))
    writer.write([message(offset) for offset in range(1000, 1010)])
    assert [row["journal_offset"] for row in read(tmp_path, 28)] == [28, 29, *range(1000, 1010)]
    writer.seal()
    assert [row["journal_offset"] for row in read(tmp_path, 25)] == [*range(25, 30), *range(1000, 1010)]


def test_rows_behind_one_that_the_manifest_calls_damaged_keep_their_offsets(tmp_path: Path) -> None:
    """A node that makes a manifest anew finds a damaged row in a sealed file, which stays as it is."""
    writer = JournalWriter(tmp_path)
    for first in range(0, 30, 10):
        writer.write([message(offset) for offset in range(first, first + 10)])
    path = writer.seal(missing=[(14, 15)])
    content = bytearray(path.read_bytes())
    content[content.index(b'"n": 14')] ^= 1
    path.write_bytes(content)
    found = read(tmp_path)
    assert [row["journal_offset"] for row in found] == [*range(14), *range(15, 30)]
    assert not any(row["fault"] for row in found)
    assert [row["journal_offset"] for row in read(tmp_path, 12, 17)] == [12, 13, 15, 16]
    path.write_bytes(content[: len(content) - 400])
    assert [row["journal_offset"] for row in read(tmp_path)] == [*range(14), *range(15, 30)]


def test_a_segment_that_is_sealed_while_tasks_are_planned_is_still_read(tmp_path: Path) -> None:
    """It was looked at, and its file has another name when the tasks are made."""
    writer = write_messages(tmp_path, 400)
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    writer.seal()
    parts = journals.parts({"node-a": 0}, {"node-a": 400})
    assert parts[-1].is_open and parts[-1].time > 0
    rows = [row for part in parts for batch in read_part(part, READING) for row in each_of(batch)]
    assert [row["journal_offset"] for row in rows] == list(range(400))


def test_a_segment_that_was_sealed_after_planning_is_still_read(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 100, segments=1)
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    parts = journals.parts({}, {"node-a": 90})
    writer.seal()
    rows = [row for part in parts for batch in read_part(part, READING) for row in batch.to_pylist()]
    assert [row["journal_offset"] for row in rows] == list(range(90)) and not any(row["fault"] for row in rows)
    writer.retain(100)
    with pytest.raises(JournalMissing):
        list(read_part(parts[0], READING))


def test_who_may_lose_rows_passes_over_a_file_that_retention_removes_before_it_is_read(tmp_path: Path) -> None:
    writer = write_messages(tmp_path, 100, segments=1)
    writer.seal()
    journals = Journals(str(tmp_path), "messages")
    journals.look()
    parts = journals.parts({}, {"node-a": 100}, may_lose=True)
    writer.retain(100)
    assert [list(read_part(part, READING)) for part in parts] == [[] for _ in parts] != []
    opened = Journals(str(tmp_path), "messages")
    writer.write([message(offset) for offset in range(100, 120)])
    opened.look()
    parts = opened.parts({}, {"node-a": 120}, may_lose=True)
    writer.seal()
    writer.retain(120)
    assert [list(read_part(part, READING)) for part in parts] == [[] for _ in parts] != []


def test_a_segment_without_a_known_column_is_read_as_faults(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    writer.schema = SCHEMA.remove(SCHEMA.get_field_index("epoch"))
    writer.write(
        pa.RecordBatch.from_pylist(
            [{"journal_offset": offset, **message(offset)} for offset in range(5)], writer.schema
        )
    )
    writer.seal()
    rows = read(tmp_path)
    assert [row["journal_offset"] for row in rows] == list(range(5))
    assert all("epoch is not there" in str(row["fault"]) for row in rows)


def test_a_column_of_a_later_version_is_in_the_checksum_and_not_in_the_rows(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    crc = SCHEMA.get_field_index("crc")
    writer.schema = SCHEMA.insert(crc, pa.field("weight", pa.int64()))
    writer.write([message(offset, weight=offset) for offset in range(50)])
    writer.seal()
    rows = read(tmp_path)
    assert len(rows) == 50 and not any(row["fault"] for row in rows) and "weight" not in rows[0]


def test_a_list_is_read_whatever_its_writer_calls_the_elements(tmp_path: Path) -> None:
    schema = stream_schema("latency")
    element = pa.list_(pa.field("element", pa.int64(), nullable=False))
    writer = JournalWriter(tmp_path, "latency")
    writer.schema = pa.schema([field.with_type(element) if field.name == "buckets" else field for field in schema])
    row = {"run": "1f", "tenant": "", "time": START, "selector": "/a", "period_ms": 1000, "count": 3}
    writer.write([row | {"buckets": [1, 2]}])
    journals = Journals(str(tmp_path), "latency")
    journals.look()
    wanted = pa.schema([*schema, pa.field("fault", pa.string())])
    parts = journals.parts({}, journals.nexts())
    rows = [row for part in parts for batch in read_part(part, Reading(schema, wanted)) for row in batch.to_pylist()]
    assert [(row["buckets"], row["fault"]) for row in rows] == [([1, 2], None)]
