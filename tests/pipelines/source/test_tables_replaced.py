"""A reader of a table that was removed and made again ends; it never takes the new table's versions for the old one's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
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


def test_a_copy_that_went_on_otherwise_ends_its_reader(tmp_path: Path) -> None:
    """The same table by its identifier, and as many versions or more."""
    append(tmp_path / "t", 2)
    first = reader(tmp_path / "t")
    begun = first.initialOffset()
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    append(tmp_path / "t", 2)
    place = reader(tmp_path / "t").latestOffset(begun, ReadMaxRows(1000))
    assert place["version"] == 3 and len(place["digest"]) == 32
    shutil.rmtree(tmp_path / "t")
    shutil.copytree(tmp_path / "copy", tmp_path / "t")
    append(tmp_path / "t", 4)
    with pytest.raises(TableReplaced, match="version 3 .*--rebuild"):
        reader(tmp_path / "t").latestOffset(place, ReadMaxRows(1000))


def test_a_version_that_the_log_no_longer_has_is_known_by_its_table(tmp_path: Path) -> None:
    append(tmp_path / "t", 3)
    place = reader(tmp_path / "t").latestOffset({**reader(tmp_path / "t").initialOffset()}, ReadMaxRows(1000))
    DeltaTable(str(tmp_path / "t")).create_checkpoint()
    append(tmp_path / "t", 1)
    (tmp_path / "t/_delta_log" / f"{place['version']:020}.json").unlink()
    assert reader(tmp_path / "t").latestOffset(place, ReadMaxRows(1000))["version"] == 3
