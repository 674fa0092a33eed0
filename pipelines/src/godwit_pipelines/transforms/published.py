"""What was published, as a ruler for what was delivered.

A *lane* is a run of numbers that a range is measured on: the sequences of a subject in one epoch, or the arrivals
of one run that a pattern matches. Here ranges are put on rulers without holes, so that whatever judges them only
subtracts. Sequences are such a ruler already, by protocol; arrivals, and sequences that skip (Kafka's, and where
messages are not there), are counted: place n becomes the number of messages up to n. Of a subject the places before
the first message that is known, and behind the last, count as they are: of these nothing says that any was skipped.

Arrivals go on where a run follows another: the ruler of a pattern is that of all the runs which follow each other, so
that who resumes across a restart stands on the same. What an unclean end cut off the journal may have been handed
over all the same; where it lay, the next run gives the same arrivals again: a run's ranges end where the journal does.

Messages that are not there are on no ruler: gone.py says beside each range how many of them it may be about (`gone_`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from .gone import GONE, count_gone, know_erased
from .lost import Damaged, add_lost
from .runs import TERM, Row, Told, know_runs
from .selector import match_subjects

LANE = ("node", "selector", "is_pattern", "term")
RANGE = (
    *(
        "node",
        "run",
        "tenant",
        "connection",
        "identity",
        "authority",
        "client",
        "selector",
        "is_pattern",
        "term",
        "journal_offset",
        "time",
    ),
    *("from_place", "to_place", "count", "conflated", "gaps", "gap_count", "confirmed", "bytes", "epoch", "held_to"),
)
"""A delivered range whatever it is of; its places are sequences or arrivals."""


def term_of(epoch: Column, arrival_run: Column) -> Column:
    """What numbered a range: an epoch, or the run whose arrivals it counts in, as one number."""
    return F.coalesce(epoch, F.xxhash64(arrival_run))


def place_ranges(deliveries: DataFrame, lines: DataFrame) -> DataFrame:
    """Rows of the journal's `deliveries` as ranges of places. A confirmed row is the empty range behind its place."""
    runs = F.broadcast(lines.select("node", F.col("run").alias("arrival_run"), "line", "held_to"))
    deliveries = deliveries.join(runs, ["node", "arrival_run"], "left")
    to_place = F.coalesce("to_sequence", "to_arrival")
    from_place = F.when(F.col("confirmed"), to_place + 1).otherwise(F.coalesce("from_sequence", "from_arrival"))
    return deliveries.withColumns(
        {
            "term": term_of(F.col("epoch"), F.coalesce("line", "arrival_run")),
            "from_place": from_place,
            "to_place": to_place,
            "gap_count": F.when(F.col("gaps") == 0, F.lit(0).cast("long")).otherwise(F.col("gap_count")),
        }
    ).select(*RANGE)


@dataclass(frozen=True)
class Published:
    """What is known of the messages, worked out once: an audit asks for it in some twenty places, and a plan that held it in each
    would go through all messages so many times.
    """

    messages: DataFrame
    sums: DataFrame
    """The result of `sum_messages`."""
    runs: Told
    erased: DataFrame | None = None
    """Where messages stood that were erased: `node`, `run`, `epoch`, `journal_offset` and `arrival` of the first of successive ones, and
    how many `rows`; and of those that are not there for another reason what lost.py knows of that."""


def sum_messages(messages: DataFrame) -> DataFrame:
    """A row for each run, subject and epoch, in one pass over the messages; kept in memory from when it is first asked for."""
    return (
        messages.groupBy("node", "run", "subject", "epoch")
        .agg(
            *(F.expr(f"min({name}) as first_{name}") for name in ("journal_offset", "arrival")),
            *(F.expr(f"max({name}) as last_{name}") for name in ("journal_offset", "arrival", "time")),
            *(F.expr("min(sequence) as first"), F.expr("max(sequence) as last"), F.expr("count(*) as published")),
        )
        .persist()
    )


def know_published(
    messages: DataFrame,
    sums: DataFrame,
    said: list[Row],
    ends: list[Row],
    erased: DataFrame | None = None,
    damaged: Damaged | None = None,
) -> Published:
    """What the messages, their `sums`, what the journal `said` of its runs, their `ends`, what was `erased` and is `damaged` tell; some
    more queries where messages are not there.
    """
    gone = add_lost(messages, sums, ends, said, erased, damaged)
    return Published(messages, sums, know_runs(messages.sparkSession, ends, said, gone), gone)


def leave_out_unknown(
    ranges: DataFrame, ends: DataFrame, lines: DataFrame, erased: DataFrame | None = None
) -> DataFrame:
    """Ranges of patterns without those that reach back to before the first message of their line that is known: retention let
    go of messages sooner than of what was handed over, so what such a range should have held cannot be known. Where all before it were
    erased or are damaged nothing was let go. Lines before the first of which a message is known,
    or was erased or is damaged at its beginning, are not known at all.
    """
    told = F.broadcast(lines.select("node", "run", "number", F.expr(TERM).alias("term")))
    known = ends.join(told, ["node", "run"], "left").withColumn("term", F.expr("coalesce(term, xxhash64(run))"))
    known = known.groupBy("node", "term").agg(
        F.min(F.struct("first_journal_offset", "first_arrival")).alias("first"), F.min("number").alias("number")
    )
    numbered = known.select("node", "number")
    if erased is not None:
        numbered = numbered.unionByName(
            erased.filter("journal_offset = 0").join(told, ["node", "run"]).select("node", "number")
        )
    least = numbered.groupBy("node").agg(F.min("number").alias("least"))
    begun = known.select("node", "term", "first.first_journal_offset", "first.first_arrival")
    if erased is not None:
        first = begun.join(erased.join(told, ["node", "run"], "inner"), ["node", "term"])
        before = F.sum(
            F.expr("greatest(0L, least(journal_offset + rows, first_journal_offset) - journal_offset)")
        ).alias("erased_before")
        begun = begun.join(first.groupBy("node", "term").agg(before), ["node", "term"], "left")
        begun = begun.filter("coalesce(erased_before, 0L) < first_journal_offset")
    begun = begun.filter("first_journal_offset > 0").select("node", "term", "first_arrival")
    numbers = told.select("node", "term", F.col("number").alias("its_number")).distinct()
    found = ranges.join(F.broadcast(begun), ["node", "term"], "left").join(F.broadcast(least), "node", "left")
    found = found.join(F.broadcast(numbers), ["node", "term"], "left")
    is_before = "from_place < first_arrival or its_number < least"
    return found.filter(f"not coalesce({is_before}, false)").select(*RANGE)


def measure_subjects(sums: DataFrame) -> DataFrame:
    """The lanes of subjects: the first and last place that is known to have been published, and whether the numbering skips."""
    lanes = sums.groupBy("node", F.col("subject").alias("selector"), F.col("epoch").alias("term")).agg(
        F.min("first").alias("first"), F.max("last").alias("published_to"), F.sum("published").alias("published")
    )
    skips = F.col("published") < F.col("published_to") - F.col("first") + 1
    return lanes.select(
        "node", "selector", F.lit(False).alias("is_pattern"), "term", "first", "published_to", skips.alias("skips")
    )


def list_pattern_places(messages: DataFrame, sums: DataFrame, ranges: DataFrame, lines: DataFrame) -> DataFrame:
    """The lanes of the patterns that their ranges name, place by place."""
    patterns = ranges.select("selector").distinct()
    matched = match_subjects(patterns, sums.select("subject").distinct())
    known = messages.join(F.broadcast(lines.select("node", "run", "line")), ["node", "run"], "left")
    return known.join(matched, "subject", "inner").select(
        "node",
        "selector",
        F.lit(True).alias("is_pattern"),
        F.expr(TERM).alias("term"),
        F.col("arrival").alias("place"),
    )


def list_skipping_places(messages: DataFrame, lanes: DataFrame) -> DataFrame:
    """The lanes of subjects whose numbering skips, place by place."""
    places = messages.select(
        *("node", F.col("subject").alias("selector"), F.lit(False).alias("is_pattern")),
        *(F.col("epoch").alias("term"), F.col("sequence").alias("place")),
    )
    return places.join(F.broadcast(lanes.filter("skips").select(*LANE)), [*LANE], "left_semi")


def list_points(ranges: DataFrame) -> DataFrame:
    """Places that are counted for each range (`run` and `journal_offset`), by `end`: before it, its last, and the last of its lane; where
    the journal holds them.
    """
    held = F.coalesce("held_to", F.lit(_END))
    ends = F.explode(
        F.array(
            F.struct(F.lit(0).alias("end"), F.least(F.col("from_place") - 1, held).alias("place")),
            F.struct(F.lit(1).alias("end"), F.least(F.col("to_place"), held).alias("place")),
            F.struct(F.lit(2).alias("end"), held.alias("place")),
        )
    )
    return ranges.select(*LANE, "run", "journal_offset", ends.alias("at")).select(
        *LANE, "run", "journal_offset", "at.end", "at.place"
    )


def count_through(ranges: DataFrame, places: DataFrame) -> DataFrame:
    """`lo` and `hi` of each range: the first and last number of its messages, counted along its lane, where the
    journal holds them. One sort. Of a subject `first` and `last` say where it is known (else null).
    """
    points = list_points(ranges)
    ruler = places.selectExpr(
        *LANE, "cast(null as string) as run", "cast(null as long) as journal_offset", f"{_MESSAGE} as end", "place"
    )
    lane = Window.partitionBy(*LANE).orderBy("place", "end").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    through = F.sum((F.col("end") == _MESSAGE).cast("long")).over(lane)
    ends_of = (
        ruler.unionByName(points)
        .withColumn("through", through)
        .filter("end >= 0")
        .groupBy("node", "run", "journal_offset")
        .agg(
            (F.max(F.when(F.col("end") == 0, F.col("through"))) + 1).alias("lo"),
            F.max(F.when(F.col("end") == 1, F.col("through"))).alias("hi"),
            F.max(F.when(F.col("end") == 2, F.col("through"))).alias("published_to"),
        )
    )
    counted = ranges.join(ends_of, ["node", "run", "journal_offset"], "inner").withColumns(
        {name: F.expr(sql) for name, sql in _OUTSIDE.items()}
    )
    return counted.withColumn("hi", F.expr(_BEYOND))


_END = (1 << 63) - 1
_MESSAGE = -1
_BEYOND = "if(to_place > held_to and not confirmed, lo - 1 + greatest(hi - lo + 1, count + conflated), hi)"
"""Past what the journal held, whatever was handed over counts as published there."""
_UNKNOWN = "if(first is null, 0L, least({place}, first - 1) + greatest(0L, {place} - last))"
_OUTSIDE = {
    "lo": f"lo + {_UNKNOWN.format(place='from_place - 1')}",
    "hi": f"hi + {_UNKNOWN.format(place='to_place')}",
    "published_to": "published_to + coalesce(first - 1, 0L)",
}
"""Places of a subject of which nothing is known, as they are."""


def measure_ranges(deliveries: DataFrame, published: Published, *, counts: bool = True) -> DataFrame:
    """Every delivered range with `lo` and `hi` on a ruler without holes, and `published_to`, the end of its lane
    (null: nothing of it is known). A range that holds no message has hi = lo - 1. `counts` is false where no range is of a
    pattern or of a subject that skips, so that no message has to be counted. `gone_` as gone.py says it.
    """
    lanes, lines = measure_subjects(published.sums), published.runs.lines
    ranges = place_ranges(deliveries, lines)
    subjects = ranges.filter("not is_pattern")
    straight = subjects.join(lanes, [*LANE], "left").filter("not coalesce(skips, false)")
    straight = straight.selectExpr(
        *RANGE, "from_place as lo", "to_place as hi", "published_to", *(f"0L as {name}" for name in GONE)
    )
    if not counts:
        return know_erased(straight, published.erased, lines)
    # a look-up of its own: where no lane skips, which is nearly always, the ranges are not looked at again
    known = lanes.filter("skips").select(*LANE, "first", F.col("published_to").alias("last"))
    skipping = subjects.join(F.broadcast(known), [*LANE])
    patterns = leave_out_unknown(ranges.filter("is_pattern"), published.runs.ends, lines, published.erased)
    unbounded = patterns.selectExpr("*", *(f"cast(null as bigint) as {name}" for name in ("first", "last")))
    places = list_pattern_places(published.messages, published.sums, patterns, lines)
    places = places.unionByName(list_skipping_places(published.messages, lanes))
    counted = count_through(unbounded.unionByName(skipping), places)
    if published.erased is None:
        counted = counted.selectExpr("*", *(f"0L as {name}" for name in GONE))
    else:
        gone = count_gone(list_points(patterns), published.erased, lines)
        counted = counted.join(gone, ["node", "run", "journal_offset"], "left").fillna(0, [*GONE])
    return know_erased(straight.unionByName(counted.select(*straight.columns)), published.erased, lines)
