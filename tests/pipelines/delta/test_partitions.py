"""Rows that the sink refuses because they would make a table unreadable, and partition values of every type, both ways against delta-rs."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructField, StructType

from godwit_pipelines.delta.appended import read_file, snapshot_files
from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.commits import commit_files, open_or_create
from godwit_pipelines.delta.files import write_files
from godwit_pipelines.delta.format import Target
from godwit_pipelines.errors import ConfigInvalid, TableMismatch

TEXTS = st.text(min_size=1, max_size=300)
MOMENTS = st.datetimes(min_value=datetime.min + timedelta(days=1), max_value=datetime.max - timedelta(days=1)).map(
    lambda found: found.replace(fold=0)
)
KINDS: list[tuple[spark_types.DataType, st.SearchStrategy[Any]]] = [
    (spark_types.StringType(), TEXTS),
    (spark_types.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (spark_types.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (spark_types.BooleanType(), st.booleans()),
    (spark_types.DoubleType(), st.floats(allow_nan=True)),
    (spark_types.FloatType(), st.floats(width=32)),
    (spark_types.DateType(), st.dates(min_value=date(1, 1, 2))),
    (spark_types.TimestampType(), MOMENTS.map(lambda found: found.replace(tzinfo=UTC))),
    (spark_types.TimestampNTZType(), MOMENTS),
    (spark_types.DecimalType(20, 6), st.integers(-(10**19), 10**19).map(lambda n: Decimal(n).scaleb(-6))),
]


def schema_of(kind: spark_types.DataType) -> StructType:
    return StructType([StructField("k", kind), StructField("v", spark_types.LongType())])


def write(path: Path, schema: StructType, keys: list[Any], partitions: tuple[str, ...] = ("k",)) -> None:
    kept = arrow_schema(schema)
    rows = pa.table(
        [pa.array(keys, kept.field("k").type), pa.array(range(len(keys)), kept.field("v").type)], schema=kept
    )
    files = write_files(rows.to_batches(), path, kept, partitions)
    commit_files(str(path), schema, partitions, files)


def ours(path: Path, schema: StructType) -> list[tuple[Any, int]]:
    files = snapshot_files(str(path), DeltaTable(str(path)).version())
    batches = [batch for file in files for batch in read_file(path, file, arrow_schema(schema))]
    return pairs(pa.Table.from_batches(batches, arrow_schema(schema)))


def pairs(table: pa.Table) -> list[tuple[Any, int]]:
    keys, rows = table.column("k").to_pylist(), table.column("v").to_pylist()
    return sorted(zip(map(shown, keys), rows, strict=True), key=lambda each: each[1])


def shown(key: Any) -> str:
    """As text: NaN is not equal to itself, and there are several objects for UTC."""
    return key.replace(tzinfo=key.tzinfo and UTC).isoformat() if isinstance(key, datetime) else repr(key)


def delta_rs_fails_on(key: Any) -> bool:
    """It takes the decimal -1.000001 for "-1.0000-1", and writes floats at full length, as folders whose names are too long."""
    return key < 0 if isinstance(key, Decimal) else is_long(key)


def is_long(key: Any) -> bool:
    return isinstance(key, float) and (len(f"{key:f}") > 40 or 0 < abs(key) < 1e-30)


def read_by_delta_rs(path: Path, schema: StructType) -> list[tuple[Any, int]]:
    return pairs(DeltaTable(str(path)).to_pyarrow_table().select(["k", "v"]).cast(arrow_schema(schema)))


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=lambda found: str(found)[:20])
def test_partition_values_of_every_type_come_back_as_they_were(
    kind: spark_types.DataType, values: st.SearchStrategy[Any]
) -> None:
    schema = schema_of(kind)

    @given(st.lists(st.none() | values, min_size=1, max_size=6))
    def check(keys: list[Any]) -> None:
        keys = [0.0 if key == 0 and isinstance(key, float) else key for key in keys]  # -0.0 is 0.0 to Delta's readers
        is_left_to_us = any(delta_rs_fails_on(key) for key in keys)
        expected = [(shown(key), row) for row, key in enumerate(keys)]
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder, "a", "b", "table"), schema, keys)
            assert is_left_to_us or read_by_delta_rs(Path(folder, "a", "b", "table"), schema) == expected
            assert ours(Path(folder, "a", "b", "table"), schema) == expected
            inside = list(Path(folder, "a", "b", "table").rglob("*.parquet"))
            assert inside and sorted(inside) == sorted(Path(folder).rglob("*.parquet"))
        if is_left_to_us:
            return
        with tempfile.TemporaryDirectory() as folder:
            kept = arrow_schema(schema)
            rows = pa.table([pa.array(keys, kept.field("k").type), pa.array(range(len(keys)))], schema=kept)
            write_deltalake(folder, rows, partition_by=["k"])
            assert ours(Path(folder), schema) == expected

    check()


@given(st.lists(TEXTS, min_size=1, max_size=3))
@example(["/x/../../../../outside"])
@example([".", "..", "a=b/c", "%2F", "__HIVE_DEFAULT_PARTITION__", "ü" * 200])
def test_no_value_leads_out_of_the_folder_of_the_table(keys: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a", "b", "c", "table")
        write(path, schema_of(spark_types.StringType()), keys)
        files = [file.resolve() for file in Path(folder).rglob("*.parquet")]
        assert files and all(file.parent.parent == path.resolve() for file in files)
        assert all(len(file.parent.name.encode()) <= 200 for file in files)


@pytest.mark.parametrize("key", ["", b"x", [1], {"a": 1}])
def test_a_partition_that_delta_cannot_hold_is_refused_by_the_name_of_its_column(tmp_path: Path, key: Any) -> None:
    long = spark_types.LongType()
    kinds = {
        str: spark_types.StringType(),
        bytes: spark_types.BinaryType(),
        list: spark_types.ArrayType(long),
        dict: StructType([StructField("a", long)]),
    }
    with pytest.raises(ConfigInvalid, match="partitions: 'k'"):
        write(tmp_path / "table", schema_of(kinds[type(key)]), [key])
    assert not list(tmp_path.rglob("*.parquet"))


NUMBERS = schema_of(spark_types.IntegerType())


@pytest.mark.parametrize(
    ("columns", "partitions", "expected"),
    [
        (
            {"k": spark_types.StringType(), "v": spark_types.LongType()},
            (),
            r"k is integer, not k string; .*v long.*v long",
        ),
        ({"k": spark_types.LongType(), "v": spark_types.LongType()}, (), "k is integer, not k long"),
        ({"k": spark_types.IntegerType(), "V": spark_types.LongType()}, (), "v is long, not V long"),
        ({"k": spark_types.IntegerType(), "v": spark_types.LongType()}, ("k",), "partitioned by nothing; expected k"),
    ],
)
def test_rows_that_would_make_a_table_unreadable_are_refused(
    tmp_path: Path, columns: dict[str, spark_types.DataType], partitions: tuple[str, ...], expected: str
) -> None:
    write(tmp_path, NUMBERS, [1], ())
    other = StructType([StructField(name, kind) for name, kind in columns.items()])
    with pytest.raises(TableMismatch, match=expected):
        Target({"path": str(tmp_path), "partitions": ",".join(partitions)}, other)
    with pytest.raises(TableMismatch, match=expected):
        commit_files(str(tmp_path), other, partitions, [])
    assert ours(tmp_path, NUMBERS) == [("1", 0)]


def test_a_column_that_is_never_null_is_not_written_to(tmp_path: Path) -> None:
    fields = [pa.field("k", pa.int32(), False), pa.field("v", pa.int64())]
    write_deltalake(str(tmp_path), pa.table([pa.array([1], pa.int32()), [0]], schema=pa.schema(fields)))
    with pytest.raises(TableMismatch, match="k "):
        Target({"path": str(tmp_path)}, NUMBERS)


@pytest.mark.parametrize("names", [("a", "A"), ("a b",), ("a=b",), ("",)])
def test_names_that_readers_refuse_are_refused_before_there_is_a_table(tmp_path: Path, names: tuple[str, ...]) -> None:
    schema = StructType([StructField(name, spark_types.LongType()) for name in names])
    with pytest.raises(ConfigInvalid, match="schema"):
        Target({"path": str(tmp_path)}, schema)
    with pytest.raises(ConfigInvalid, match="schema"):
        open_or_create(str(tmp_path), schema, ())
    assert not DeltaTable.is_deltatable(str(tmp_path))


@pytest.mark.parametrize(
    "kind",
    [
        spark_types.NullType(),
        StructType([]),
        StructType([StructField("a", spark_types.NullType())]),
        spark_types.DayTimeIntervalType(),
    ],
)
def test_a_type_that_other_readers_do_not_know_is_refused_before_there_is_a_table(
    tmp_path: Path, kind: spark_types.DataType
) -> None:
    schema = StructType([StructField("k", kind), StructField("v", spark_types.LongType())])
    with pytest.raises(ConfigInvalid, match="'k' is .*, which a Delta table cannot hold"):
        Target({"path": str(tmp_path)}, schema)
    assert not DeltaTable.is_deltatable(str(tmp_path))


@pytest.mark.parametrize("options", [{"app": "job"}, {"batch": "3"}, {"app": "job", "batch": "-1"}, {"batch": "one"}])
def test_a_write_that_may_be_repeated_has_both_a_name_and_a_number(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ConfigInvalid, match="batch"):
        Target({"path": str(tmp_path), **options}, NUMBERS)
    with pytest.raises(ConfigInvalid, match="batch"):
        commit_files(str(tmp_path), NUMBERS, (), [], app="job")
