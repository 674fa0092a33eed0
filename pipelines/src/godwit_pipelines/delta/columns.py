"""A table's columns in Spark's, Arrow's and Delta's words, and whether two sets of columns fit. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from deltalake import Field, Schema
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid, TableMismatch

_NULLS = ("nullable", "containsNull", "valueContainsNull", "metadata")
_REFUSED_CHARACTERS = frozenset(" ,;{}()\n\t=")
"""Delta on Spark reads no table whose columns have these in their names."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema of files: every column may be null, so that a column can be added to a table that has rows."""
    fields = [pa.field(field.name, _micros(field.type), True) for field in to_arrow_schema(schema, timezone="UTC")]
    return pa.schema(fields)


def _micros(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def delta_schema(schema: StructType) -> Schema:
    """The schema for the table's log, with the columns' comments. Raises ConfigInvalid for a type that Delta does not have."""
    check_names(schema.names)
    plain = Schema([_delta_field(field) for field in arrow_schema(schema)])
    comments = {field.name: field.metadata for field in schema}
    fields = [
        Field(field.name, field.type, nullable=True, metadata={"comment": comments[field.name].get("comment", "")})
        for field in plain.fields
    ]
    return Schema(fields)


def _is_empty(kind: pa.DataType) -> bool:
    """True if a type, or a part of it, has no values but null."""
    parts = [kind.field(index).type for index in range(kind.num_fields)]
    return pa.types.is_null(kind) or (pa.types.is_struct(kind) and not parts) or any(_is_empty(part) for part in parts)


def _delta_field(field: pa.Field) -> Field:
    try:
        if _is_empty(field.type):
            raise ValueError(field.type)  # delta-rs takes it, and others cannot read the table
        found: Field = Schema.from_arrow(pa.schema([field])).fields[0]
    except Exception as error:  # what delta-rs raises has no narrower kind
        raise ConfigInvalid("schema", field.name, f"is {field.type}, which a Delta table cannot hold") from error
    return found


def check_names(names: Iterable[str]) -> None:
    """Raise ConfigInvalid for names that a reader of Delta tables would refuse, or take for the same."""
    seen = set[str]()
    for name in names:
        if not name or _REFUSED_CHARACTERS & set(name):
            raise ConfigInvalid(
                "schema", name, "is not a valid column name: expected none of ' ,;{}()=' and no line end"
            )
        if name.lower() in seen:
            raise ConfigInvalid("schema", name, "is there twice: expected names that differ by more than case")
        seen.add(name.lower())


def check_columns(path: str, wanted: Schema, present: Schema) -> list[Field]:
    """The columns that the table does not have. Raises TableMismatch where one is of another type or differs by case only."""
    by_name = {field.name.lower(): field for field in present.fields}
    gained = [field for field in wanted.fields if field.name.lower() not in by_name]
    for field in wanted.fields:
        there = by_name.get(field.name.lower())
        if there is not None and (there.name != field.name or _kind(there) != _kind(field)):
            raise TableMismatch(
                f"{path}: column {there.name} is {_kind_text(there)}, not {field.name} {_kind_text(field)}; "
                f"the table has {describe(present.fields)}; expected {describe(wanted.fields)}"
            )
    return gained


def describe(fields: Iterable[Field]) -> str:
    return "(" + ", ".join(f"{field.name} {_kind_text(field)}" for field in fields) + ")"


def _kind(field: Field) -> Any:
    return _without_nulls(json.loads(field.type.to_json()))


def _kind_text(field: Field) -> str:
    kind = _kind(field)
    return kind if isinstance(kind, str) else json.dumps(kind, separators=(",", ":"))


def _without_nulls(kind: Any) -> Any:
    """A type without what it says of nulls, which changes nothing in how a file is read."""
    if isinstance(kind, dict):
        return {name: _without_nulls(value) for name, value in kind.items() if name not in _NULLS}
    return [_without_nulls(each) for each in kind] if isinstance(kind, list) else kind
