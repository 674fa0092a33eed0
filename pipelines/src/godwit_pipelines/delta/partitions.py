"""The values of partition columns: their text in a table's log, and the folder of the files that have them. Pure.

Owns which columns can partition a table. The log holds a value in the form that the Delta protocol gives its type. A folder's name
only helps people who look: values come from publishers, so a folder never leaves the table, and readers take values from the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ConfigInvalid

NULL = "__HIVE_DEFAULT_PARTITION__"  # the folder of null, as every reader of such folders knows it
_NAME_BYTES_MAX = 200
"""A folder's name. Most file systems stop at 255."""
_KINDS = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
)


def check_partitions(schema: pa.Schema, partitions: tuple[str, ...]) -> None:
    """Raise ConfigInvalid where the columns cannot partition a table of this schema."""
    for name in partitions:
        if schema.names.count(name) != 1:
            raise ConfigInvalid("partitions", name, f"must be one column of {', '.join(schema.names)}")
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _KINDS):
            raise ConfigInvalid(
                "partitions", name, f"is {kind}: expected a number, a boolean, a date, a time or a text"
            )
    if len(set(partitions)) < len(partitions):
        raise ConfigInvalid("partitions", ",".join(partitions), "must name each column once")
    if partitions and len(partitions) == len(schema):
        raise ConfigInvalid("partitions", ",".join(partitions), "must leave a column for the files")


def split(
    batch: pa.RecordBatch, partitions: tuple[str, ...]
) -> Iterator[tuple[tuple[str | None, ...], pa.RecordBatch]]:
    """The rows by the texts of the partition columns' values, without these columns."""
    if not partitions:
        yield (), batch
        return
    kept = [name for name in batch.schema.names if name not in partitions]
    # numbers stand for values: NaN is not equal to itself, so rows are never selected by value
    columns = [pc.dictionary_encode(batch.column(name), null_encoding="encode") for name in partitions]
    numbers = pa.table([column.indices for column in columns], names=[str(index) for index in range(len(columns))])
    keys = numbers.group_by(numbers.column_names).aggregate([]).to_pylist()
    for key in keys:
        found = [key[name] for name in numbers.column_names]
        values = tuple(
            value_text(name, column.dictionary[number].as_py())
            for name, column, number in zip(partitions, columns, found, strict=True)
        )
        if len(keys) == 1:
            yield values, batch.select(kept)
            continue
        mask = pc.equal(columns[0].indices, found[0])
        for column, number in zip(columns[1:], found[1:], strict=True):
            mask = pc.and_(mask, pc.equal(column.indices, number))
        yield values, batch.filter(mask).select(kept)


def value_text(name: str, value: Any) -> str | None:
    """A value in the protocol's form for its type. Delta reads an empty text as null, so it is refused."""
    if value is None:
        return None
    if value == "":
        raise ConfigInvalid(
            "partitions", name, "has an empty string as a value, which a Delta table cannot distinguish from null"
        )
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(" ", "microseconds")
        return value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds") + "Z"
    return value.isoformat() if isinstance(value, date) else str(value)


def parse_value(text: str | None, kind: pa.DataType) -> Any:
    """A value of that type from the protocol's form. A time without a zone is of UTC, as other writers put it down."""
    if text is None or text == "":
        return None
    if pa.types.is_timestamp(kind):
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=found.tzinfo or UTC) if kind.tz else found.replace(tzinfo=None)
    return pa.scalar(text, pa.string()).cast(kind).as_py()


def folder_of(named: Mapping[str, str | None]) -> str:
    """The folder for these values within the table: empty without any. Names that would be too long are random."""
    return "/".join(_name(name, value) for name, value in named.items())


def _name(column: str, value: str | None) -> str:
    escaped = NULL if value is None else quote(value, safe=" ").replace(NULL, NULL.replace("_", "%5F", 1))
    name = f"{quote(column, safe=' ')}={escaped}"
    return name if len(name) <= _NAME_BYTES_MAX else f"part-{uuid4().hex}"
