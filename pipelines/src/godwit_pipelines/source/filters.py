"""Filters that Spark hands down: which rows, and with the manifest which segments, need not be read at all.

Owns taking them apart and applying them as Arrow expressions; a filter that is not understood stays with Spark. Invariant: a
segment is left out only if no row of it can pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds

from .segments import OpenSegment, Segment

_OPERATORS: dict[type[ds.Filter], str] = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_COMPUTE: dict[str, Callable[[pa.Array, Any], pa.Array]] = {
    "=": pc.equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    "starts": lambda column, value: pc.starts_with(column, pattern=value),
    "in": lambda column, values: pc.is_in(column, value_set=pa.array(values, column.type)),
}
_BOUNDED = {"offset": ("first", "last"), "time": ("time_min", "time_max"), "arrival": ("arrival_min", "arrival_max")}
_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


class Filter(NamedTuple):
    """One condition on a column; all of them together hold for a row that is wanted."""

    column: str
    operation: str
    value: Any


def take_filters(given: Iterable[ds.Filter], columns: Iterable[str]) -> tuple[list[Filter], list[ds.Filter]]:
    """What is done here, and what Spark has to do."""
    taken: list[Filter] = []
    left: list[ds.Filter] = []
    known = set(columns)
    for each in given:
        found = _take(each)
        if found is not None and found.column in known:
            taken.append(found)
        else:
            left.append(each)
    return taken, left


def _take(given: ds.Filter) -> Filter | None:
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    value: Any = getattr(given, "value", None)
    if len(attribute) != 1:
        return None
    column = attribute[0]
    if isinstance(given, ds.In):
        values = tuple(value)
        return Filter(column, "in", values) if values and not any(map(_is_strange, values)) else None
    if isinstance(given, ds.StringStartsWith):
        return Filter(column, "starts", value)
    if type(given) in _OPERATORS and not _is_strange(value):
        return Filter(column, _OPERATORS[type(given)], value)
    return None


def _is_strange(value: Any) -> bool:
    """A value that Arrow and Spark might compare differently."""
    return (
        value is None
        or not isinstance(value, str | int | bytes | datetime)
        or (isinstance(value, date) and not isinstance(value, datetime))
    )


def filter_batch(batch: pa.RecordBatch, filters: Iterable[Filter]) -> pa.RecordBatch:
    """The rows for which all filters hold."""
    mask = None
    for column, operation, value in filters:
        values = batch.column(column)
        if isinstance(value, datetime):
            value = pa.scalar(_utc(value), values.type)
        found = _COMPUTE[operation](values, value)
        mask = found if mask is None else pc.and_(mask, found)
    return batch if mask is None else batch.filter(mask)


def may_hold(segment: Segment | OpenSegment, filters: Iterable[Filter]) -> bool:
    """Whether a segment can have a row for which all filters hold, as far as the manifest knows."""
    return all(_may_hold(segment, found) for found in filters)


def _may_hold(segment: Segment | OpenSegment, found: Filter) -> bool:
    if found.column not in _BOUNDED:
        return True
    if found.column == "offset":
        low, high = segment.first, segment.next - 1
    elif isinstance(segment, OpenSegment):
        return True
    else:
        low, high = (getattr(segment, name) for name in _BOUNDED[found.column])
        if low is None or high is None:
            return True
    values = [_number(value) for value in (found.value if found.operation == "in" else (found.value,))]
    if found.operation in ("=", "in"):
        return any(low <= value <= high for value in values)
    if found.operation in (">", ">="):
        return bool(_COMPARE[found.operation](high, values[0]))
    return bool(_COMPARE[found.operation](low, values[0]))


def _number(value: Any) -> int:
    """A number, or a time as microseconds since 1970."""
    if isinstance(value, datetime):
        return round((_utc(value) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
    return int(value)


def _utc(value: datetime) -> datetime:
    """Spark hands times over without a zone, in the session's, which is UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value
