"""A table's columns in Spark's, Arrow's and Delta's words. Pure."""

from __future__ import annotations

import pyarrow as pa
from deltalake import Field, Schema
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """As files hold it: every column may be null, so that a column can be added to a table that has rows."""
    fields = [pa.field(field.name, _micros(field.type), True) for field in to_arrow_schema(schema, timezone="UTC")]
    return pa.schema(fields)


def _micros(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind


def delta_schema(schema: StructType) -> Schema:
    """As the table's log holds it, with the columns' comments."""
    plain = Schema.from_arrow(arrow_schema(schema))
    comments = {field.name: field.metadata for field in schema}
    fields = [
        Field(field.name, field.type, nullable=True, metadata={"comment": comments[field.name].get("comment", "")})
        for field in plain.fields
    ]
    return Schema(fields)
