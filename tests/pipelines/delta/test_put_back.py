"""A batch is in a table once, and nothing is taken for it that is not it: a checkpoint that was put back is noticed at each commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.commits import commit_files
from godwit_pipelines.delta.files import write_files
from godwit_pipelines.delta.log import count_rows, tell_ranges
from godwit_pipelines.errors import CheckpointOlder

SCHEMA = StructType().add("n", LongType())


def commit(path: Path, batch: int, ranges: str = "", rows: int = 2) -> bool:
    path.mkdir(exist_ok=True)
    schema = arrow_schema(SCHEMA)
    files = write_files(pa.table({"n": range(rows)}, schema).to_batches(), path, schema, ())
    return commit_files(str(path), SCHEMA, (), files, app="q", batch=batch, ranges=ranges)


def test_a_batch_before_one_that_the_table_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    assert commit(path, 3) and commit(path, 5) and not commit(path, 5)
    for batch in (0, 3, 4):
        with pytest.raises(CheckpointOlder, match=f"batch 5 .*batch {batch}"):
            commit(path, batch)
    assert count_rows(str(path), "q", -1) == 4 and count_rows(str(path), "q", 3) == 2
    assert count_rows(str(path), "another", -1) == 0


def test_a_batch_that_is_repeated_with_other_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first = tell_ranges([("a", "r1", 10, 20), ("a", "r1", 20, 30), ("b", "r2", 0, 5)])
    assert commit(path, 0, first)
    assert not commit(path, 0, first)
    assert not commit(path, 0, tell_ranges([("a", "r1", 10, 25)])), "what retention took since is no other row"
    assert not commit(path, 0), "a writer that does not say"
    for ranges, left in (
        ([("a", "r1", 10, 31)], "rows 30 to 30 of run r1 of node a"),
        ([("a", "r3", 10, 20)], "rows 10 to 19 of run r3 of node a"),
        ([("c", "r1", 10, 20)], "rows 10 to 19 of run r1 of node c"),
    ):
        with pytest.raises(CheckpointOlder, match=left):
            commit(path, 0, tell_ranges(ranges))
