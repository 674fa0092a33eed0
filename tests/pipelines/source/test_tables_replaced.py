"""A reader of a table that was removed and made again ends; it never takes the new table's versions for the old one's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import LongType, StructType

from godwit_pipelines.delta.tail import TailReader
from godwit_pipelines.errors import TableReplaced

SCHEMA = StructType().add("n", LongType())


def append(path: Path, commits: int) -> None:
    for _ in range(commits):
        write_deltalake(str(path), pa.table({"n": [1, 2]}), mode="append")


def reader(path: Path) -> TailReader:
    return TailReader({"path": str(path)}, SCHEMA)


@pytest.mark.parametrize(
    ("commits", "why"), [(2, "is at version 1, and version 3 was read"), (9, "is the table .* was read")]
)
def test_a_table_that_was_made_again_ends_its_reader(tmp_path: Path, commits: int, why: str) -> None:
    append(tmp_path / "t", 3)
    first = reader(tmp_path / "t")
    begun = first.initialOffset()
    append(tmp_path / "t", 1)
    place = reader(tmp_path / "t").latestOffset(begun, ReadMaxRows(1000))
    assert place["version"] == 3 and place["table"]
    assert reader(tmp_path / "t").latestOffset(place, ReadMaxRows(1000)) == place
    shutil.rmtree(tmp_path / "t")
    append(tmp_path / "t", commits)
    with pytest.raises(TableReplaced, match=why):
        reader(tmp_path / "t").latestOffset(place, ReadMaxRows(1000))
