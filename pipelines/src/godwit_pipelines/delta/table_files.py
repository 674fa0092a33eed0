"""A table as it stands: its live files, read by Spark's own Parquet reader.

Owns which files those are. Invariant: a read sees one version of the table, whatever is written meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from .commits import is_table


def read_table(spark: SparkSession, path: str, schema: StructType, *, is_partial: bool = False) -> DataFrame:
    """The rows of a table; none of its columns if it is not there. `is_partial`: without the files that are gone, which else is an
    error.
    """
    files = file_paths(path)
    if is_partial:
        files = [file for file in files if Path(file).is_file()]
    if not files:
        return spark.createDataFrame([], schema)
    # names are names: Spark would look for what *, ? and {} in them stand for
    return spark.read.schema(schema).option("basePath", path).option("__globPaths__", "false").parquet(*files)


def file_paths(path: str) -> list[str]:
    """Where the live files are."""
    return [str(path_of(path, file)) for file in live_files(path)]


def path_of(path: str, file: dict[str, Any]) -> Path:
    """Where a file of `live_files` is, as the system names it."""
    return Path(path, name_of(file))


def name_of(file: dict[str, Any]) -> str:
    """The path of a file of `live_files` within its table, as the system names it: in the log it is encoded, as a part of an address."""
    return unquote(file["path"])


def is_there(path: str, file: dict[str, Any]) -> bool:
    """Whether a file of `live_files` is in the table's folder."""
    return path_of(path, file).is_file()


def live_files(path: str, *, version: int | None = None) -> list[dict[str, Any]]:
    """What the log knows of each live file: path, size_bytes, num_records, min.COLUMN, max.COLUMN, partition.COLUMN."""
    if not is_table(path):
        return []
    actions = DeltaTable(path, version=version).get_add_actions(flatten=True)
    rows: list[dict[str, Any]] = pa.table(actions).to_pylist()
    return rows
