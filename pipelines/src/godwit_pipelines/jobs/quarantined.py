"""Which rows of the journals are in quarantine, as ranges of offsets. They are in no other table, and not missing from any."""

from __future__ import annotations

from pyspark.sql import Window
from pyspark.sql import functions as F

from ..lake import Lake
from ..transforms.ranges import Range, merged
from ..transforms.runs import collect

QUARANTINE = "bronze.quarantine"
_STRETCHES_MAX = 1000
"""The most stretches of a run: a disk that damages every other row leaves more than a process should hold. Later ones are left out."""


def damaged_ranges(lake: Lake, stream: str) -> dict[tuple[str, str], list[Range]]:
    """The damaged offsets of a stream by node and run. If the run is unknown, it is ""."""
    if not lake.exists(QUARANTINE):
        return {}
    rows = lake.read(QUARANTINE, is_partial=True).where(F.col("stream") == stream)
    place = ("journal_offset as first", "coalesce(next, journal_offset + 1) as next")
    order = Window.partitionBy("node", "run").orderBy("first", "next")
    earlier = F.max("next").over(order.rowsBetween(Window.unboundedPreceding, -1))
    apart = rows.selectExpr("node", "coalesce(run, '') as run", *place).withColumn("earlier", earlier)
    numbered = apart.withColumn("stretch", F.sum(F.expr("int(coalesce(first > earlier, true))")).over(order))
    stretches = numbered.filter(F.col("stretch") <= _STRETCHES_MAX).groupBy("node", "run", "stretch")
    found: dict[tuple[str, str], list[Range]] = {}
    for row in collect(stretches.agg(F.min("first").alias("first"), F.max("next").alias("next"))):
        found.setdefault((row["node"], row["run"]), []).append((row["first"], row["next"]))
    return {of: merged(ranges) for of, ranges in found.items()}
