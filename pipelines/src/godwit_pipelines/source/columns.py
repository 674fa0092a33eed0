"""The columns of a journal's streams, for Spark and for Arrow. Pure; the fields themselves are generated (schemas.py)."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ..errors import ConfigInvalid
from ..schemas import SCHEMAS

FAULT = "fault"
"""Null for an intact row, else the fault."""
FAULT_NEXT = "fault_next"
"""Null for one row; otherwise the offset after the last of the lost rows that this row represents."""
FAULT_BYTES = "fault_bytes"
"""Null if unknown; otherwise the number of bytes of the file in place of the lost rows."""
_ARROW: dict[type[DataType], pa.DataType] = {
    StringType: pa.string(),
    BinaryType: pa.binary(),
    LongType: pa.int64(),
    IntegerType: pa.int32(),
    DoubleType: pa.float64(),
    BooleanType: pa.bool_(),
    TimestampType: pa.timestamp("us", "UTC"),
}


def stream_columns(stream: str) -> StructType:
    """The columns that the source yields for a stream: the fields of protocol/events.toml, the fault and its extent. Any may be null, for
    what is left of a damaged row.
    """
    if stream not in SCHEMAS:
        raise ConfigInvalid("stream", stream, f"must be one of {', '.join(SCHEMAS)}")
    fault = StructField(FAULT, StringType(), True, {"comment": "Null for an intact row, else the fault."})
    fields = [StructField(field.name, _nullable(field.dataType), True, field.metadata) for field in SCHEMAS[stream]]
    next = StructField(FAULT_NEXT, LongType(), True, {"comment": "Where the lost rows end that a row stands for."})
    size = StructField(FAULT_BYTES, LongType(), True, {"comment": "Bytes of the file in place of the lost rows."})
    return StructType([*fields, fault, next, size])


def _nullable(kind: DataType) -> DataType:
    return ArrayType(_nullable(kind.elementType), True) if isinstance(kind, ArrayType) else kind


def stream_schema(stream: str) -> pa.Schema:
    """The fields of a stream as its segments have them."""
    return pa.schema([pa.field(field.name, _arrow(field.dataType), field.nullable) for field in SCHEMAS[stream]])


def _arrow(kind: DataType) -> pa.DataType:
    return pa.list_(_arrow(kind.elementType)) if isinstance(kind, ArrayType) else _ARROW[type(kind)]
