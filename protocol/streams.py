"""What is made from events.toml: the journal's schema in Rust, the pipelines' schemas in Python, the pages of the reference.

Owns the reading of events.toml and what may change in it: rows outlive the program that wrote them, so a field keeps its name, type,
order and whether it may be null. Standard library only; pure, but for reading that one file.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

TYPES = {
    "string": ("String", "StringType()"),
    "binary": ("Binary", "BinaryType()"),
    "int32": ("Int32", "IntegerType()"),
    "int64": ("Int64", "LongType()"),
    "double": ("Double", "DoubleType()"),
    "boolean": ("Boolean", "BooleanType()"),
    "timestamp": ("Timestamp", "TimestampType()"),
    "list<int64>": ("Int64List", "ArrayType(LongType(), False)"),
}
"""By the type's name in events.toml: its name in Rust and its type in Spark."""


class Field(NamedTuple):
    """One field of a stream."""

    name: str
    type: str
    null: bool
    unit: str
    sentence: str


class Stream(NamedTuple):
    """One stream: its fields with those that every stream has, in the order of a row."""

    name: str
    sentence: str
    fields: tuple[Field, ...]


def read_streams(path: Path) -> list[Stream]:
    """The streams of events.toml, in its order."""
    tables = tomllib.loads(path.read_text("utf-8"))
    first, last = read_fields(tables["first"]), read_fields(tables["last"])
    streams = [
        Stream(name, table["sentence"], (*first, *read_fields(table), *last))
        for name, table in tables["stream"].items()
    ]
    for stream in streams:
        names = [field.name for field in stream.fields]
        if len(names) != len(set(names)):
            raise SystemExit(f"events.toml: {stream.name} has a field twice")
    return streams


def read_fields(table: dict[str, Any]) -> tuple[Field, ...]:
    for row in table["fields"]:
        if row["type"] not in TYPES:
            raise SystemExit(f"events.toml: {row['name']} has no known type: {row['type']}")
        if '"' in row["sentence"]:
            raise SystemExit(f"events.toml: the sentence of {row['name']} holds a quotation sign")
    return tuple(
        Field(row["name"], row["type"], row.get("null", False), row.get("unit", ""), row["sentence"])
        for row in table["fields"]
    )


def freeze(streams: list[Stream]) -> str:
    """What readers rely on, as it is kept in tests/architecture/events.json."""
    frozen = {stream.name: [[field.name, field.type, field.null] for field in stream.fields] for stream in streams}
    rows = [
        f"{json.dumps(name)}: [\n" + ",\n".join("  " + json.dumps(field) for field in fields) + "\n]"
        for name, fields in frozen.items()
    ]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def list_breaks(frozen: dict[str, list[list[Any]]], streams: list[Stream]) -> list[str]:
    """What of the frozen fields no longer holds: a sentence each that says who breaks; empty: nothing."""
    now = {stream.name: stream.fields for stream in streams}
    breaks = []
    for name, fields in frozen.items():
        if name not in now:
            breaks.append(f"stream {name} is gone: journals on disk have it, and pipelines that read it stop")
            continue
        breaks += list_field_breaks(name, fields, now[name])
    return breaks


def list_field_breaks(stream: str, frozen: list[list[Any]], fields: tuple[Field, ...]) -> list[str]:
    """The same for one stream. A new field may only stand behind the old ones (in front of crc), and must be allowed to be null."""
    breaks = []
    known = [name for name, _, _ in frozen]
    kept = {field.name: field for field in fields}
    for name, type_name, null in frozen:
        field = kept.get(name)
        if field is None:
            breaks.append(f"{stream}.{name} is gone or renamed: readers that name it fail on every segment")
        elif field.type != type_name:
            breaks.append(
                f"{stream}.{name} was {type_name} and is {field.type}: old and new segments no longer fit into one table"
            )
        elif field.null and not null:
            breaks.append(f"{stream}.{name} may now be null: readers that rely on a value fail")
        elif null and not field.null:
            breaks.append(f"{stream}.{name} may no longer be null: segments on disk that hold null cannot be read")
    order = [field.name for field in fields if field.name in known]
    if sorted(order) == sorted(known) and order != known:
        breaks.append(
            f"{stream}: the order of its fields has changed: the crc of every row on disk is made over the old order"
        )
    fresh = [field for field in fields if field.name not in known]
    behind = [field.name for field in fields][len(known) - 1 : -1]
    for field in fresh:
        if not field.null:
            breaks.append(f"{stream}.{field.name} is new and may not be null: segments on disk have no value for it")
        if field.name not in behind:
            breaks.append(
                f"{stream}.{field.name} is new and not behind the old fields: the crc of every row on disk has no place for it"
            )
    return breaks


def rust_schema(streams: list[Stream]) -> str:
    variants = "".join(f"    /// {stream.sentence}\n    {stream.name.capitalize()},\n" for stream in streams)
    names = "".join(f'            Self::{stream.name.capitalize()} => "{stream.name}",\n' for stream in streams)
    tables = "".join(f"            Self::{stream.name.capitalize()} => &{stream.name.upper()},\n" for stream in streams)
    listed = ", ".join(f"Self::{stream.name.capitalize()}" for stream in streams)
    types = "".join(f"    {rust},\n" for rust, _ in TYPES.values())
    fields = "\n".join(rust_fields(stream) for stream in streams)
    return f"""\
//! Every stream of the journal and its fields, in the order of a row.
//!
//! Generated from protocol/events.toml by `make generate`; change it there.

/// One of the journal's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stream {{
{variants}}}

impl Stream {{
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: [Self; {len(streams)}] = [{listed}];

    /// Its name, which is its folder's too.
    #[must_use]
    pub const fn name(self) -> &'static str {{
        match self {{
{names}        }}
    }}

    /// Its fields, in the order of a row.
    #[must_use]
    pub const fn fields(self) -> &'static [Field] {{
        match self {{
{tables}        }}
    }}
}}

/// What a field's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {{
{types}}}

/// One field of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {{
    pub name: &'static str,
    pub kind: Type,
    pub is_nullable: bool,
}}

const fn field(name: &'static str, kind: Type, is_nullable: bool) -> Field {{
    Field {{ name, kind, is_nullable }}
}}

{fields}"""


def rust_fields(stream: Stream) -> str:
    rows = "".join(
        f'    field("{field.name}", Type::{TYPES[field.type][0]}, {str(field.null).lower()}),\n'
        for field in stream.fields
    )
    return f"static {stream.name.upper()}: [Field; {len(stream.fields)}] = [\n{rows}];\n"


def python_schemas(streams: list[Stream]) -> str:
    tables = "\n".join(python_fields(stream) for stream in streams)
    used = sorted({"StructField", "StructType", *(spark_names(streams))})
    imports = "".join(f"    {name},\n" for name in used)
    listed = "".join(f'    "{stream.name}": {stream.name.upper()},\n' for stream in streams)
    return f'''\
"""The journal's streams as Spark reads them: every field with its type, whether it may be null, and what it means.

Generated from protocol/events.toml by `make generate`; change it there.
"""

from __future__ import annotations

from pyspark.sql.types import (
{imports})


def _field(name: str, kind: DataType, is_nullable: bool, comment: str) -> StructField:
    return StructField(name, kind, is_nullable, {{"comment": comment}})


{tables}
SCHEMAS: dict[str, StructType] = {{
{listed}}}
"""By the stream's name."""
'''


def spark_names(streams: list[Stream]) -> set[str]:
    text = " ".join(TYPES[field.type][1] for stream in streams for field in stream.fields)
    return {name for _, spark in TYPES.values() for name in spark_types(spark) if name in text} | {"DataType"}


def spark_types(spark: str) -> list[str]:
    return [
        part
        for part in spark.replace("(", " ").replace(")", " ").replace(",", " ").split()
        if part[0].isupper() and part != "False"
    ]


def python_fields(stream: Stream) -> str:
    rows = "".join(
        f'        _field("{field.name}", {TYPES[field.type][1]}, {field.null}, "{with_unit(field)}"),\n'
        for field in stream.fields
    )
    return f'{stream.name.upper()} = StructType(\n    [\n{rows}    ]\n)\n"""{stream.sentence}"""\n'


def with_unit(field: Field) -> str:
    return f"{field.sentence} Unit: {field.unit}." if field.unit else field.sentence


def describe_stream(stream: Stream) -> str:
    """The reference page of one stream."""
    rows = "".join(
        f"| `{field.name}` | {field.type.replace('<', '&lt;')} | {'yes' if field.null else ''} | {with_unit(field)} |\n"
        for field in stream.fields
    )
    return f"""# The table {stream.name}

{stream.sentence} Where its files are and how to read them is described in the [journal format](../journal.md).

| field | type | null | meaning |
|---|---|---|---|
{rows}"""
