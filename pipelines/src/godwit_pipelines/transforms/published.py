"""What was published, as a ruler for what was delivered.

A *lane* is a run of numbers that a range is measured on: the sequences of a subject in one epoch, or the arrivals
of one run that a pattern matches. Here ranges are put on rulers without holes, so that whatever judges them only
subtracts. Sequences are such a ruler already, by protocol; arrivals, and sequences that skip (Kafka's), are
counted: place n becomes the number of messages up to n.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from .selector import match_subjects

LANE = ("node", "selector", "is_pattern", "reign")
RANGE = (
    *("node", "run", "tenant", "connection", "identity", "client", "selector", "is_pattern", "reign", "offset", "time"),
    *("from_place", "to_place", "count", "conflated", "gaps", "gap_count", "confirmed", "bytes", "epoch"),
)
"""A delivered range whatever it is of; its places are sequences or arrivals."""


def reign_of(epoch: Column, mark_run: Column) -> Column:
    """What numbered a range: an epoch, or the run whose arrivals it counts in, as one number."""
    return F.coalesce(epoch, F.xxhash64(mark_run))


def place_ranges(deliveries: DataFrame) -> DataFrame:
    """Rows of the journal's `deliveries` as ranges of places. A confirmed row is the empty range behind its place."""
    to_place = F.coalesce("to_sequence", "to_arrival")
    from_place = F.when(F.col("confirmed"), to_place + 1).otherwise(F.coalesce("from_sequence", "from_arrival"))
    return deliveries.withColumns(
        {
            "reign": reign_of(F.col("epoch"), F.col("mark_run")),
            "from_place": from_place,
            "to_place": to_place,
            "gap_count": F.when(F.col("gaps") == 0, F.lit(0).cast("long")).otherwise(F.col("gap_count")),
        }
    ).select(*RANGE)


def measure_subjects(messages: DataFrame) -> DataFrame:
    """The lanes of subjects: the last place published, and whether the numbering skips."""
    lanes = messages.groupBy("node", F.col("subject").alias("selector"), F.col("epoch").alias("reign")).agg(
        F.min("sequence").alias("first"), F.max("sequence").alias("published_to"), F.count("*").alias("published")
    )
    skips = F.col("published") < F.col("published_to") - F.col("first") + 1
    return lanes.select(
        "node", "selector", F.lit(False).alias("is_pattern"), "reign", "published_to", skips.alias("skips")
    )


def list_pattern_places(messages: DataFrame, ranges: DataFrame) -> DataFrame:
    """The lanes of the patterns that ranges name, place by place."""
    patterns = ranges.filter("is_pattern").select("selector").distinct()
    matched = match_subjects(patterns, messages.select("subject").distinct())
    return messages.join(matched, "subject", "inner").select(
        "node",
        "selector",
        F.lit(True).alias("is_pattern"),
        F.xxhash64("run").alias("reign"),
        F.col("arrival").alias("place"),
    )


def list_skipping_places(messages: DataFrame, lanes: DataFrame) -> DataFrame:
    """The lanes of subjects whose numbering skips, place by place."""
    places = messages.select(
        *("node", F.col("subject").alias("selector"), F.lit(False).alias("is_pattern")),
        *(F.col("epoch").alias("reign"), F.col("sequence").alias("place")),
    )
    return places.join(F.broadcast(lanes.filter("skips").select(*LANE)), [*LANE], "left_semi")


def count_through(ranges: DataFrame, places: DataFrame) -> DataFrame:
    """`lo` and `hi` of each range: the first and last number of its messages, counted along its lane. One sort."""
    ends = F.explode(
        F.array(
            F.struct(F.lit(0).alias("end"), (F.col("from_place") - 1).alias("place")),
            F.struct(F.lit(1).alias("end"), F.col("to_place").alias("place")),
        )
    )
    points = ranges.select(*LANE, F.col("offset"), ends.alias("at")).select(*LANE, "offset", "at.end", "at.place")
    ruler = places.withColumns({"offset": F.lit(None).cast("long"), "end": F.lit(-1)}).select(points.columns)
    lane = Window.partitionBy(*LANE).orderBy("place", "end").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    counted = ruler.unionByName(points).withColumn("through", F.sum((F.col("end") == -1).cast("long")).over(lane))
    whole = Window.partitionBy(*LANE)
    counted = counted.withColumn("published_to", F.sum((F.col("end") == -1).cast("long")).over(whole))
    ends_of = (
        counted.filter("end >= 0")
        .groupBy("node", "offset")
        .agg(
            (F.max(F.when(F.col("end") == 0, F.col("through"))) + 1).alias("lo"),
            F.max(F.when(F.col("end") == 1, F.col("through"))).alias("hi"),
            F.max("published_to").alias("published_to"),
        )
    )
    return ranges.join(ends_of, ["node", "offset"], "inner")


def measure_ranges(deliveries: DataFrame, messages: DataFrame) -> DataFrame:
    """Every delivered range with `lo` and `hi` on a ruler without holes, and `published_to`, the end of its lane
    (null: nothing of it is known). A range that holds no message has hi = lo - 1.
    """
    ranges = place_ranges(deliveries)
    lanes = measure_subjects(messages)
    subjects = ranges.filter(~F.col("is_pattern")).join(lanes, [*LANE], "left")
    straight = subjects.filter("not coalesce(skips, false)").withColumns(
        {"lo": F.col("from_place"), "hi": F.col("to_place")}
    )
    skipping = subjects.filter("skips").select(*RANGE)
    places = list_pattern_places(messages, ranges).unionByName(list_skipping_places(messages, lanes))
    counted = count_through(ranges.filter("is_pattern").unionByName(skipping), places)
    columns = (*RANGE, "lo", "hi", "published_to")
    return straight.select(*columns).unionByName(counted.select(*columns))
