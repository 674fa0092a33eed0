"""Columns in few words, for tables with many: `column("count", LONG, "What it counts.")`."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TEXT, LONG, INT, DOUBLE, BOOL = StringType(), LongType(), IntegerType(), DoubleType(), BooleanType()
TIME, BINARY, LONGS = TimestampType(), BinaryType(), ArrayType(LongType())
OFFSETS = MapType(StringType(), LongType())


def column(name: str, kind: DataType, about: str, *, null: bool = False) -> StructField:
    return StructField(name, kind, null, {"comment": about})


def table_of_columns(*columns: StructField) -> StructType:
    return StructType(list(columns))


NODE = column("node", TEXT, "The node.")
TENANT = column("tenant", TEXT, "The tenant; empty if there is none.")
AUTHORITY = column(
    "authority",
    TEXT,
    "The authority that authenticated the identity: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in older rows. Two "
    "authorities can use one name for two people.",
    null=True,
)
