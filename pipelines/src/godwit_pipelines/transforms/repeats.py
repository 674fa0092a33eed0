"""Rows as they come to a sum: each once, and none late because of another stream, or of a clock that is wrong. A row that comes twice is
one row: it is known by its node, stream, run and offset.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

LATENESS = "1 hour"
"""How late a row may come to a stream and still be counted; a batch counts all."""
AHEAD = "ahead"
"""The name under which the number of rows dated more than a day ahead is reported, with the stream's number."""
_IS_AHEAD = "time > current_timestamp() + interval 1 day"


def drop_repeats(
    rows: DataFrame, lateness: str = LATENESS, key: tuple[str, ...] = ("node", "run", "journal_offset")
) -> DataFrame:
    """Each row once. In a stream a key is remembered for `lateness`."""
    return bring_together(rows, lateness=lateness, key=key)


def bring_together(
    *streams: DataFrame,
    lateness: str = LATENESS,
    key: tuple[str, ...] = ("node", "stream", "run", "journal_offset"),
    may_repeat: bool = True,
) -> DataFrame:
    """The rows of them all. Time goes on with the stream that is furthest behind: where there is much to catch up with, one of few
    rows is at its end before another has begun. `may_repeat`: whether the same row may come twice; to find that out, a stream
    remembers every row for `lateness`.
    """
    is_streaming = any(stream.isStreaming for stream in streams)
    come = [timed(stream, lateness, number) if is_streaming else stream for number, stream in enumerate(streams)]
    rows = reduce(DataFrame.unionByName, come)
    if not may_repeat:
        return rows
    return rows.dropDuplicatesWithinWatermark([*key]) if is_streaming else rows.dropDuplicates([*key])


def timed(stream: DataFrame, lateness: str, number: int = 0) -> DataFrame:
    """A stream that closes its windows. Rows whose time is more than a day from now are left out and told (`AHEAD`): one of them would
    make all that come after it late.
    """
    told = stream.observe(f"{AHEAD} {number}", F.count_if(F.expr(_IS_AHEAD)).alias("rows"))
    return told.filter(f"not ({_IS_AHEAD})").withWatermark("time", lateness)
