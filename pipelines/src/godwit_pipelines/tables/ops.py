"""The ops tables: what the pipelines know of themselves."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from .table import Table


def _field(name: str, kind: LongType | StringType | TimestampType, about: str, *, null: bool = False) -> StructField:
    return StructField(name, kind, null, {"comment": about})


LANDING = Table(
    name="ops.landing",
    about="What each check found between the journals and the bronze tables: one row for each stream and node, and one for each fault.",
    columns=StructType(
        [
            _field("time", TimestampType(), "When it was checked."),
            _field("stream", StringType(), "The stream."),
            _field("node", StringType(), "The node."),
            _field("kind", StringType(), "whole (all there), behind (not landed yet), hole, repeat or quarantined."),
            _field("first", LongType(), "The first offset that it is about."),
            _field("next", LongType(), "The offset after the last that it is about."),
            _field("rows", LongType(), "Rows in the range that the bronze table holds."),
        ]
    ),
    key=("time", "stream", "node", "kind", "first"),
    job="reconcile",
    day="time",
)
ERASURES = Table(
    name="ops.erasures",
    about="Who was erased from which table, when, and how many rows that took: the proof that it was done, without the name.",
    columns=StructType(
        [
            _field("time", TimestampType(), "When it was done."),
            _field("person", StringType(), "SHA-256 of the name that was erased."),
            _field("table", StringType(), "The table."),
            _field("rows", LongType(), "Rows that were removed."),
            _field("version", LongType(), "The table's version without them."),
        ]
    ),
    key=("time", "person", "table"),
    job="maintain",
    fresh_s=0,
    told="--option erase=IDENTITY",
)
OPS = (LANDING, ERASURES)
