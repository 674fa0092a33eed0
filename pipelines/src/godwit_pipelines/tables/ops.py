"""The ops tables: what the pipelines know of themselves."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from .table import Table


def _field(name: str, kind: LongType | StringType | TimestampType, about: str, *, null: bool = False) -> StructField:
    return StructField(name, kind, null, {"comment": about})


LANDING = Table(
    name="ops.landing",
    about="Results of each check of the bronze tables against the journals: one row for each stream and node, and one for each fault.",
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
            _field("first", LongType(), "The first offset of the range."),
            _field("next", LongType(), "The offset after the last of the range."),
            _field(
                "rows",
                LongType(),
                "Rows in the range that the bronze table holds; for erased, the erased rows in it.",
            ),
            _field("run", StringType(), "The node's run that wrote the first of them; null if unknown.", null=True),
            _field("bytes", LongType(), "For lost: bytes in their place. For tail: unread bytes.", null=True),
        ]
    ),
    key=("time", "stream", "node", "kind", "first"),
    job="reconcile",
    day="time",
)
ERASURES = Table(
    name="ops.erasures",
    about="Proof of erasures: when, from which table, and how many rows, without the name.",
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
                "The erasure in ops.erased that has these rows; null for erasures before that table existed.",
                null=True,
            ),
        ]
    ),
    key=("time", "person", "table_name", "erasure"),
    job="maintain",
    fresh_s=0,
    run_options="--option erase=IDENTITY",
)
ERASED = Table(
    name="ops.erased",
    about="Rows of the journals that were erased from the bronze tables: they are not missing and do not land again.",
    columns=StructType(
        [
            _field("erasure", StringType(), "The erasure's name, also in the commit that removed the rows."),
            _field("time", TimestampType(), "When it began; a range counts once its rows are removed."),
            _field("person", StringType(), "SHA-256 of the name that was erased."),
            _field("table_name", StringType(), "The table that the rows were in."),
            _field("stream", StringType(), "The stream of the rows."),
            _field("node", StringType(), "The node that wrote them."),
            _field("first", LongType(), "The first offset of the range."),
            _field("next", LongType(), "The offset after the last of the range."),
            _field("rows", LongType(), "Rows of the range that the table had."),
            _field("run", StringType(), "The node's run that wrote them.", null=True),
            _field("epoch", LongType(), "For messages: the epoch of their sequences.", null=True),
            _field(
                "arrival",
                LongType(),
                "For messages: the arrival of the first; the others follow without a break. Null if it was not recorded.",
                null=True,
            ),
        ]
    ),
    key=("erasure", "stream", "node", "run", "first"),
    job="maintain",
    fresh_s=0,
    run_options="--option erase=IDENTITY",
)
OPS = (LANDING, ERASURES, ERASED)
