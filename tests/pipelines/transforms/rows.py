"""Rows of the journal for tests, with defaults for all columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

NOTHING: dict[str, Any] = {
    "string": "",
    "long": 0,
    "integer": 0,
    "binary": b"",
    "boolean": False,
    "double": 0.0,
    "timestamp": 0,
    "array": [],
}


def frame(spark: SparkSession, schema: StructType, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """A frame of these rows. Times may be given as microseconds since 1970; columns left out are null, or nothing."""
    whole = [
        {
            field.name: row.get(field.name, None if field.nullable else NOTHING[field.dataType.typeName()])
            for field in schema
        }
        for row in rows
    ]
    columns = to_arrow_schema(schema, timezone="UTC")
    return spark.createDataFrame(pa.Table.from_pylist(whole, schema=columns), schema)
