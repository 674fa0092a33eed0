"""A row that comes twice is one row: it is known by its node, stream and offset."""

from __future__ import annotations

from pyspark.sql import DataFrame

LATENESS = "1 hour"
"""How late a row may come to a stream and still be counted; a batch counts all."""


def drop_repeats(rows: DataFrame, lateness: str = LATENESS, key: tuple[str, ...] = ("node", "offset")) -> DataFrame:
    """Each row once. In a stream a key is remembered for `lateness`."""
    if rows.isStreaming:
        return rows.withWatermark("time", lateness).dropDuplicatesWithinWatermark([*key])
    return rows.dropDuplicates([*key])
