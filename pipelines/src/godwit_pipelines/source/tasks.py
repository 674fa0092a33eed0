"""A stream of the journals as the ranges that its tasks read, and the rows of these ranges.

Rows that are written unchanged need not pass through Java: Spark moves one row for each task, and the writing task reads
the journal itself. Owns the form of a range in such a row. Invariant: the rows are those that the source would have
returned, damaged ones with their fault.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from .columns import stream_columns, stream_schema
from .extents.lost import Lost
from .rows import Part, Reading, read_part

TASKS = StructType(
    [
        StructField("task", StringType(), True, {"comment": "Where the rows are, as JSON."}),
        StructField("rows", LongType(), True, {"comment": "Offsets of the range."}),
    ]
)


def describe_task(part: Part) -> pa.RecordBatch:
    """The one row that represents a range."""
    schema = to_arrow_schema(TASKS, timezone="UTC")
    return pa.RecordBatch.from_arrays(
        [pa.array([json.dumps(asdict(part))]), pa.array([part.next - part.first])], schema=schema
    )


def read_tasks(
    batches: Iterator[pa.RecordBatch], stream: str, ranges: list[tuple[str, str, int, int]], *, verify: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of the ranges, as the source returns them. Their node, run, first offset and the offset after the last are
    added to `ranges`, except for rows that may be lost between two attempts.
    """
    reading = Reading(stream_schema(stream), to_arrow_schema(stream_columns(stream), timezone="UTC"), verify)
    for batch in batches:
        for task in batch.column("task").to_pylist():
            part = _part_of(task)
            runs = () if part.may_lose else part.runs or (("", part.first, part.next),)
            ranges += [(part.node, *span) for span in runs]
            yield from read_part(part, reading)


def _part_of(task: str) -> Part:
    table = json.loads(task)
    for name in ("missing", "ranges", "left_out", "runs", "last_rows"):
        table[name] = tuple(tuple(each) for each in table[name])
    return Part(**{**table, "lost": tuple(Lost(*each) for each in table["lost"])})
