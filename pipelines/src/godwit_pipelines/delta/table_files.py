"""Reads a table as it is now: its live files, with Spark's own Parquet reader.

Owns which files these are. Invariants: a read sees one version of the table, also while others write; partition values come from the log,
never from the names of folders; a column that the table does not have is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ..errors import TableBroken, TableMismatch
from .columns import delta_schema, describe
from .commits import check_table, is_table
from .log import open_table
from .partitions import folder_of, value_text

Values = tuple[tuple[str, str | None], ...]
"""A file's partition columns with their values, as the log holds them."""


def read_table(spark: SparkSession, path: str, schema: StructType, *, is_partial: bool = False) -> DataFrame:
    """The rows of a table; an empty frame if it does not exist. `is_partial` ignores files that no longer exist, which is otherwise an
    error. Raises TableMismatch for a column that the table does not have.
    """
    if not is_table(path):
        return spark.createDataFrame([], schema)
    table = open_table(path)
    check_readable(table, path, schema)
    files = live_files(path, version=table.version())
    if is_partial:
        files = [file for file in files if is_there(path, file)]
    else:
        check_sizes(path, files)
    if not files:
        return spark.createDataFrame([], schema)
    if all(is_by_folder(file) for file in files):
        return _read(spark, path, [str(path_of(path, file)) for file in files], schema)
    partitions = table.metadata().partition_columns
    groups: dict[Values, list[str]] = {}
    for file in files:
        groups.setdefault(values_of(file), []).append(str(path_of(path, file)))
    parts = [_read_group(spark, found, schema, partitions, dict(values)) for values, found in groups.items()]
    return reduce(DataFrame.unionByName, parts)


def check_readable(table: DeltaTable, path: str, schema: StructType) -> None:
    """Raises TableMismatch if the table lacks a requested column, or has it with another type. A file may lack it: its rows are null."""
    if missing := check_table(table, path, delta_schema(schema)):
        raise TableMismatch(f"{path}: has no column {describe(missing)}; it has {describe(table.schema().fields)}")


def is_by_folder(file: dict[str, Any]) -> bool:
    """True if a live file is in a folder whose name has its partition values and no others, from which Spark can read them."""
    return str(PurePosixPath(name_of(file)).parent) == (folder_of(dict(values_of(file))) or ".")


def values_of(file: dict[str, Any]) -> Values:
    """The partition values of a live file."""
    named = {name.removeprefix("partition."): value for name, value in file.items() if name.startswith("partition.")}
    return tuple((name, value_text(name, value) if value != "" else None) for name, value in named.items())


def _read(spark: SparkSession, root: str, files: Sequence[str], schema: StructType) -> DataFrame:
    # names are names: Spark would look for what *, ? and {} in them stand for
    reader = spark.read.schema(schema).option("__globPaths__", "false")
    return (reader.option("basePath", root) if root else reader).parquet(*files)


def _read_group(
    spark: SparkSession,
    files: Sequence[str],
    schema: StructType,
    partitions: Sequence[str],
    values: dict[str, str | None],
) -> DataFrame:
    """Files of the same partition values."""
    inside = StructType([field for field in schema if field.name not in partitions])
    rows = _read(spark, "", files, inside)
    return rows.select(*(_value(field, values) if field.name in partitions else F.col(field.name) for field in schema))


def _value(field: StructField, values: dict[str, str | None]) -> Any:
    return F.lit(values.get(field.name)).cast(field.dataType).alias(field.name)


def file_paths(path: str) -> list[str]:
    """The paths of the live files."""
    return [str(path_of(path, file)) for file in live_files(path)]


def path_of(path: str, file: dict[str, Any]) -> Path:
    """The path of a live file in the file system."""
    return Path(path, name_of(file))


def name_of(file: dict[str, Any]) -> str:
    """The path of a live file within its table. The log has it percent-encoded."""
    return unquote(file["path"])


def is_there(path: str, file: dict[str, Any]) -> bool:
    """True if a live file exists and has the length that the log says. A file that was cut has no readable row."""
    return size_of(path, file) == int(file["size_bytes"])


def size_of(path: str, file: dict[str, Any]) -> int | None:
    """The length of a live file in bytes; None if it does not exist."""
    found = path_of(path, file)
    return found.stat().st_size if found.is_file() else None


def check_sizes(path: str, files: Sequence[dict[str, Any]]) -> None:
    """Raises TableBroken for a file whose length differs from the log. Spark would read an empty file as one without rows."""
    for file in files:
        size = size_of(path, file)
        if size is not None and size != file["size_bytes"]:
            raise TableBroken(
                f"{path_of(path, file)} has {size} bytes, and the log of its table says {file['size_bytes']}: it was cut, as by a power "
                "cut. `godwit-pipelines run reconcile` names the rows that are missing"
            )


def live_files(path: str, *, version: int | None = None) -> list[dict[str, Any]]:
    """The live files as the log has them: path, size_bytes, num_records, min.COLUMN, max.COLUMN, partition.COLUMN."""
    if not is_table(path):
        return []
    actions = open_table(path, version=version).get_add_actions(flatten=True)
    rows: list[dict[str, Any]] = pa.table(actions).to_pylist()
    return rows
