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
            _field(
                "kind",
                StringType(),
                "whole (all there), behind (not landed yet), hole, repeat, quarantined, lost (damaged in the journal), tail or erased.",
            ),
            _field("first", LongType(), "The first offset that it is about."),
            _field("next", LongType(), "The offset after the last that it is about."),
            _field(
                "rows",
                LongType(),
                "Rows in the range that the bronze table holds; of erased, rows in it that were erased.",
            ),
            _field(
                "run", StringType(), "The node's run that wrote the first of them; null where none is known.", null=True
            ),
            _field("bytes", LongType(), "Of lost: bytes in their place. Of tail: bytes that are unread.", null=True),
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
            _field("table_name", StringType(), "The table."),
            _field("rows", LongType(), "Rows that were removed."),
            _field("version", LongType(), "The table's version without them."),
            _field(
                "erasure",
                StringType(),
                "Under which name ops.erased has these rows; null where it has none, as of erasures before it was kept.",
                null=True,
            ),
        ]
    ),
    key=("time", "person", "table_name", "erasure"),
    job="maintain",
    fresh_s=0,
    told="--option erase=IDENTITY",
)
ERASED = Table(
    name="ops.erased",
    about="Which rows of the journals were erased from the bronze tables: they are not missing, and they do not land again.",
    columns=StructType(
        [
            _field("erasure", StringType(), "The erasure's name, as the commit bears it that took the rows out."),
            _field("time", TimestampType(), "When it was begun; a range counts once its rows are out."),
            _field("person", StringType(), "SHA-256 of the name that was erased."),
            _field("table_name", StringType(), "The table that the rows were in."),
            _field("stream", StringType(), "The stream whose rows they are."),
            _field("node", StringType(), "The node that wrote them."),
            _field("first", LongType(), "The first offset of the range."),
            _field("next", LongType(), "The offset after the last of the range."),
            _field("rows", LongType(), "Rows of the range that the table had."),
            _field("run", StringType(), "The node's run that wrote them.", null=True),
            _field("epoch", LongType(), "Of messages: the epoch of their sequences.", null=True),
            _field(
                "arrival",
                LongType(),
                "Of messages: the arrival of the first, which those after it follow one by one; null where it was not kept.",
                null=True,
            ),
        ]
    ),
    key=("erasure", "stream", "node", "run", "first"),
    job="maintain",
    fresh_s=0,
    told="--option erase=IDENTITY",
)
OPS = (LANDING, ERASURES, ERASED)
