"""What is not there, held against what was handed over: how many such messages a range may be about.

Of messages that were erased, or never landed, it is known where they stood, by run, arrival and epoch, and not of which subject they were.
A range may be about none of them, or about all that are at its places, and about no more than there were messages. Places are held
against each other as stretches, never one by one: a million messages that are not there are a few rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .runs import TERM

GONE = ("gone_from", "gone_to", "gone_all")
"""Places of its lane that may have been erased, of each range: before it, up to its end, and in all."""


def list_stretches(erased: DataFrame, lines: DataFrame) -> DataFrame:
    """Where messages were that are not there, on the arrivals of each line of runs: from `place` up to, not including, `next`. None is in
    two stretches.
    """
    known = erased.filter("arrival is not null").join(F.broadcast(lines), ["node", "run"], "left")
    stretches = known.selectExpr("node", f"{TERM} as term", "arrival as place", "arrival + rows as next")
    before = Window.partitionBy("node", "term").orderBy("place").rowsBetween(Window.unboundedPreceding, -1)
    return stretches.withColumn("place", F.greatest("place", F.max("next").over(before))).filter("next > place")


def count_gone(points: DataFrame, erased: DataFrame, lines: DataFrame) -> DataFrame:
    """`gone_` of each range of a pattern, from the points that published.py lists of them. What was erased may have been of any pattern, so
    that each place is looked at once for all of them.
    """
    lane = ["node", "term"]
    places = points.selectExpr(*lane, "place", "cast(null as long) as next").distinct()
    up_to = Window.partitionBy(*lane).orderBy("place")  # with all that begins at the place
    summed = places.unionByName(list_stretches(erased, lines)).withColumns(
        {"rows": F.sum(F.expr("next - place")).over(up_to), "reached": F.max("next").over(up_to)}
    )
    counted = summed.filter("next is null").selectExpr(
        *lane, "place", "coalesce(rows - greatest(0L, reached - 1 - place), 0L) as gone"
    )
    ends = (F.max(F.when(F.col("end") == end, F.col("gone"))).alias(name) for end, name in enumerate(GONE))
    return points.join(counted, [*lane, "place"]).groupBy("node", "run", "journal_offset").agg(*ends)


def know_erased(ranges: DataFrame, erased: DataFrame | None, lines: DataFrame) -> DataFrame:
    """Ranges with what may have been erased (`gone_`): of a subject places that no message is known of, and no more than were erased of its
    epoch; of a pattern no more than were erased of its runs: `gone_most`, no more messages than that of any stretch. Those of a subject
    behind the last that is known cannot be told: they may be all of them.
    """
    if erased is None:
        return ranges.withColumn("gone_most", F.lit(0).cast("long"))
    most = F.broadcast(sum_erased(erased, lines))
    known = ranges.join(most, ["node", "is_pattern", "term"], "left").fillna(0, ["gone_most"])
    places = {
        "gone_from": "if(is_pattern, gone_from, from_place - 1 - least(lo - 1, published_to))",
        "gone_to": "if(is_pattern, gone_to, to_place - least(hi, published_to))",
    }
    absent = known.withColumns({name: F.expr(sql) for name, sql in places.items()})
    return absent.withColumn("gone_all", F.expr("if(is_pattern, gone_all, gone_to + gone_most)"))


def sum_erased(erased: DataFrame, lines: DataFrame) -> DataFrame:
    """`gone_most`: how many messages of an epoch, and of runs that follow each other, are not there."""
    of = ("node", "is_pattern", "term")
    epochs = erased.filter("epoch is not null").selectExpr("node", "false as is_pattern", "epoch as term", "rows")
    runs = erased.filter("(epoch is null) = (arrival is null)").join(F.broadcast(lines), ["node", "run"], "left")
    lanes = epochs.unionByName(runs.selectExpr("node", "true as is_pattern", f"{TERM} as term", "rows"))
    return lanes.groupBy(*of).agg(F.sum("rows").alias("gone_most"))
