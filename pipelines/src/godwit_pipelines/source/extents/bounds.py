"""Skips files of a journal that cannot match a condition in SQL: an option of one reader, never of a query.

Owns finding bounds in a condition, and the files outside of them. Spark filters the rows anyway, so a condition that is
not understood is only slower. Invariant: a row for which the condition holds is never left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from ..parts import Journals
from ..rows import Part

_OPERATORS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KINDS = {
    "node": ("string",),
    "journal_offset": ("int", "bigint"),
    "arrival": ("int", "bigint"),
    "time": ("timestamp",),
}
"""The columns that distinguish files, and the type that a bound must have."""
_BEYOND = 1 << 63


class Bound(NamedTuple):
    """A comparison that is true for every requested row."""

    column: str
    operator: str
    value: int | str


def find_bounds(spark: SparkSession, where: str) -> str:
    """The comparisons that a condition joins with AND, as JSON. Spark reports a condition that is not valid."""
    try:
        parsed = spark._jsparkSession.sessionState().sqlParser().parseExpression(where)
    except Exception:  # what the parser raises has no narrower kind
        return "[]"
    return json.dumps(list(_bounds_of(parsed)))


def _bounds_of(expression: Any) -> Iterable[Bound]:
    kind = expression.getClass().getSimpleName()
    if kind == "And":
        yield from _bounds_of(expression.left())
        yield from _bounds_of(expression.right())
    elif kind in _OPERATORS:
        left, right = expression.left(), expression.right()
        names = [each.getClass().getSimpleName() for each in (left, right)]
        if names == ["UnresolvedAttribute", "Literal"]:
            yield from _bound(left, _OPERATORS[kind], right)
        elif names == ["Literal", "UnresolvedAttribute"]:
            yield from _bound(right, _TURNED[_OPERATORS[kind]], left)


def _bound(attribute: Any, operator: str, literal: Any) -> Iterable[Bound]:
    column = str(attribute.name()).lower()
    if literal.dataType().simpleString() in _KINDS.get(column, ()):
        value = literal.value()
        yield Bound(column, operator, value if isinstance(value, int) else str(value.toString()))


def read_bounds(text: str) -> list[Bound]:
    return [Bound(*each) for each in json.loads(text)]


def range_of(bounds: Iterable[Bound], column: str) -> tuple[int, int]:
    """The lowest possible value of a column, and the one after the highest."""
    low, high = -_BEYOND, _BEYOND
    for bound in bounds:
        if bound.column == column and isinstance(bound.value, int):
            if bound.operator in ("=", ">", ">="):
                low = max(low, bound.value + (bound.operator == ">"))
            if bound.operator in ("=", "<", "<="):
                high = min(high, bound.value + (bound.operator != "<"))
    return low, high


def parts_within(journals: Journals, bounds: list[Bound]) -> list[Part]:
    """The tasks of a stream, as it is now, whose rows may be within the bounds."""
    low, high = range_of(bounds, "journal_offset")
    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for node, folder in journals.folders.items():
        if all(_may_be(node, bound) for bound in bounds if bound.column == "node"):
            starts[node] = max(folder.first, min(low, folder.next))
            ends[node] = max(starts[node], min(high, folder.next))
    return [part for part in journals.parts(starts, ends) if _is_within(journals, part, bounds)]


def _may_be(node: str, bound: Bound) -> bool:
    return bound.operator != "=" or bound.value == node


def _is_within(journals: Journals, part: Part, bounds: list[Bound]) -> bool:
    """True if a sealed file's times and arrivals meet the bounds, or if they are not known, as for a file that grows."""
    segment = next((each for each in journals.folders[part.node].sealed if each.file == part.file), None)
    return segment is None or all(
        _meets(least, most, range_of(bounds, column))
        for column, least, most in (
            ("time", segment.time_min, segment.time_max),
            ("arrival", segment.arrival_min, segment.arrival_max),
        )
    )


def _meets(least: int | None, most: int | None, wanted: tuple[int, int]) -> bool:
    return least is None or most is None or (least < wanted[1] and most >= wanted[0])
