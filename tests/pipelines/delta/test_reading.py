"""A reader takes partition values and columns from the log of a table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType

from godwit_pipelines.delta import read_table
from godwit_pipelines.delta.appended import Appended, read_file, snapshot_files
from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.tail import TailReader
from godwit_pipelines.errors import TableMismatch
from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import Runs
from tests.pipelines.delta.test_partitions import write
from tests.pipelines.journals import JournalWriter, message

SCHEMA = StructType().add("k", StringType()).add("v", LongType())


def make(path: Path, keys: list[str | None]) -> None:
    rows = pa.table({"k": pa.array(keys, pa.string()), "v": range(len(keys))})
    write_deltalake(str(path), rows, partition_by=["k"])


def move_files(path: Path) -> None:
    """Give every file a folder that says nothing of its values, as a table has that was cloned or whose names are random."""
    log = path / "_delta_log" / f"{1:020}.json"
    lines = []
    for number, line in enumerate(log.read_text("utf-8").splitlines()):
        action: dict[str, Any] = json.loads(line)
        if "add" in action:
            file = next(path.rglob(Path(action["add"]["path"]).name))
            (path / f"x{number}").mkdir()
            file.rename(path / f"x{number}" / file.name)
            action["add"]["path"] = f"x{number}/{file.name}"
        lines.append(json.dumps(action))
    log.write_text("\n".join(lines), "utf-8")


def pairs(rows: list[Any]) -> list[tuple[str | None, int]]:
    return sorted(((row["k"], row["v"]) for row in rows), key=lambda each: each[1])


def test_partition_values_are_those_of_the_log_whatever_the_folders_are_called(
    tmp_path: Path, spark: SparkSession
) -> None:
    keys = ["a", "b/c", None, "__HIVE_DEFAULT_PARTITION__", "%20", "007", "ü" * 200]
    write(tmp_path / "t", SCHEMA, keys)
    expected = [(key, at) for at, key in enumerate(keys)]
    for move in (lambda _: None, move_files):
        move(tmp_path / "t")
        assert pairs(read_table(spark, str(tmp_path / "t"), SCHEMA).collect()) == expected
        files = snapshot_files(str(tmp_path / "t"), DeltaTable(str(tmp_path / "t")).version())
        batches = [batch for file in files for batch in read_file(tmp_path / "t", file, arrow_schema(SCHEMA))]
        assert pairs(pa.Table.from_batches(batches).to_pylist()) == expected


def test_a_column_that_the_table_does_not_have_is_an_error_for_every_reader(
    tmp_path: Path, spark: SparkSession
) -> None:
    make(tmp_path / "t", ["a"])
    wanted = StructType().add("k", StringType()).add("w", LongType())
    with pytest.raises(TableMismatch, match="w long.*k string, v long"):
        read_table(spark, str(tmp_path / "t"), wanted)
    tail = TailReader({"path": str(tmp_path / "t")}, wanted)
    with pytest.raises(TableMismatch):
        tail.latestOffset(tail.initialOffset(), ReadMaxRows(10))
    with pytest.raises(TableMismatch, match="v .*long.* v date"):
        read_table(spark, str(tmp_path / "t"), StructType().add("v", DateType()))


def test_a_file_without_a_column_that_the_table_gained_reads_null(tmp_path: Path, spark: SparkSession) -> None:
    make(tmp_path / "t", ["a", "b"])
    more = pa.table({"k": ["c"], "v": [7], "w": [8]})
    write_deltalake(str(tmp_path / "t"), more, mode="append", schema_mode="merge")
    wanted = StructType([*SCHEMA, StructField("w", LongType())])
    rows = read_table(spark, str(tmp_path / "t"), wanted).orderBy("k").collect()
    assert [(row["k"], row["w"]) for row in rows] == [("a", None), ("b", None), ("c", 8)]


def test_a_time_of_96_bits_as_spark_writes_it_is_read_as_what_it_is(tmp_path: Path) -> None:
    """Also one that no number of nanoseconds holds, which Arrow would read as another."""
    schema = pa.schema([pa.field("time", pa.timestamp("us", "UTC"))])
    times = [datetime(year, 1, 2, 3, 4, 5, 6, tzinfo=UTC) for year in (1970, 2026, 2300, 9999)]
    pq.write_table(pa.table({"time": times}, schema), tmp_path / "file", use_deprecated_int96_timestamps=True)
    (rows,) = read_file(tmp_path, Appended("file", len(times), ()), schema)
    assert rows.column("time").to_pylist() == times


def test_a_table_of_ours_is_given_the_columns_that_it_gained_before_a_job_reads_it(
    tmp_path: Path, lake: Lake, run_job: Runs
) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    writer.write([message(offset) for offset in range(4)])
    run_job("land", streams="messages")
    path = lake.path("bronze.messages")
    older = [name for name in DeltaTable(path).to_pyarrow_table().column_names if name != "properties"]
    rows = DeltaTable(path).to_pyarrow_table().select(older)
    write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite", partition_by=["date"])
    assert lake.read("bronze.messages").where(F.col("properties").isNull()).count() == 4
    assert "properties" in [field.name for field in DeltaTable(path).schema().fields]
