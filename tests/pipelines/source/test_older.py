"""Journals of older nodes, whose rows lack newer columns: they are read with nulls."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from godwit_pipelines.schemas import SCHEMAS
from godwit_pipelines.source.columns import stream_schema
from godwit_pipelines.source.parts import Journals
from godwit_pipelines.source.recovery import fits
from godwit_pipelines.source.rows import read_part
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.test_rows import READING, SCHEMA, each_of

OLDER = Path(__file__).parent / "older"
"""What a node wrote before messages had publisher_id and publisher_number."""
GAINED = ("publisher_id", "publisher_number")


def read_of(data: Path) -> list[dict[str, Any]]:
    journals = Journals(str(data), "messages")
    journals.look()
    parts = journals.parts({}, journals.nexts())
    return [row for part in parts for batch in read_part(part, READING) for row in each_of(batch)]


def test_what_an_older_node_wrote_is_read(tmp_path: Path) -> None:
    shutil.copytree(OLDER, tmp_path / "journal/messages")
    rows = read_of(tmp_path)
    assert [row["journal_offset"] for row in rows] == list(range(30)) and {row["fault"] for row in rows} == {None}
    assert {row[name] for row in rows for name in GAINED} == {None}
    assert {row["run"] for row in rows} == {"a1", "a2"} and all(row["content"] is not None for row in rows)


@pytest.mark.parametrize("gone", [field.name for field in SCHEMA if field.nullable])
def test_a_column_that_may_be_null_may_be_lacking(tmp_path: Path, gone: str) -> None:
    """Of a sealed segment, of one that is damaged after it was sealed, and of an open one."""
    writer = JournalWriter(tmp_path)
    writer.schema = pa.schema([field for field in SCHEMA if field.name != gone])
    for first in (0, 20, 40):
        writer.write([without(message(offset), gone) for offset in range(first, first + 20)])
        if first < 40:
            path = writer.seal()
    writer.close()
    path.write_bytes(path.read_bytes()[:-40])
    rows = read_of(tmp_path)
    assert [row["journal_offset"] for row in rows] == list(range(60))
    assert {row["fault"] for row in rows} == {None} and {row[gone] for row in rows} == {None}


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in row.items() if each != name}


@pytest.mark.parametrize("stream", SCHEMAS)
def test_a_schema_of_another_version_fits_and_one_with_a_damaged_name_does_not(stream: str) -> None:
    ours = stream_schema(stream)
    fields = [*ours]
    newer = pa.schema([*fields[:-1], pa.field("later", pa.int64(), True), fields[-1]])
    assert fits(ours, ours) and fits(newer, ours)
    for index, field in enumerate(fields[:-1]):
        older = pa.schema([*fields[:index], *fields[index + 1 :]])
        renamed = pa.schema([*fields[:index], field.with_name(field.name + "x"), *fields[index + 1 :]])
        twice = pa.schema([*fields[:index], field.with_name(fields[index - 1].name), *fields[index + 1 :]])
        assert fits(older, ours) == field.nullable
        assert not fits(renamed, ours) and not fits(twice, ours)
