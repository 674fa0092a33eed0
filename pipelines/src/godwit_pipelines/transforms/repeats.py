"""Rows as they come to a sum: each once, and none late because of another stream. A row that comes twice is one row: it is known by
its node, stream and offset.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame

LATENESS = "1 hour"
"""How late a row may come to a stream and still be counted; a batch counts all."""


def drop_repeats(rows: DataFrame, lateness: str = LATENESS, key: tuple[str, ...] = ("node", "offset")) -> DataFrame:
    """Each row once. In a stream a key is remembered for `lateness`."""
    return bring_together(rows, lateness=lateness, key=key)


def bring_together(
    *streams: DataFrame,
    lateness: str = LATENESS,
    key: tuple[str, ...] = ("node", "stream", "offset"),
    may_repeat: bool = True,
) -> DataFrame:
    """The rows of them all. Time goes on with the stream that is furthest behind: where there is much to catch up with, one of few
    rows is at its end before another has begun. `may_repeat`: whether the same row may come twice; to find that out, a stream
    remembers every row for `lateness`.
    """
    is_streaming = any(stream.isStreaming for stream in streams)
    timed = [stream.withWatermark("time", lateness) if is_streaming else stream for stream in streams]
    rows = reduce(DataFrame.unionByName, timed)
    if not may_repeat:
        return rows
    return rows.dropDuplicatesWithinWatermark([*key]) if is_streaming else rows.dropDuplicates([*key])
