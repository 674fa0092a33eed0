"""Orderly subscriptions, folded before anything else is asked of them.

Nearly every subscription to a subject is handed range after range, each where the one before it ended. Whether that is
so shows in the ranges alone, in one sort with nothing joined: `fold` makes one row of each such subscription and leaves the
ranges of all others, of every pattern too, to be judged one by one (audit.py). Invariant: what it folds is what judging
would have found no fault in, so that the audit's tables are the same with it and without.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .published import Published, measure_subjects

WHOSE = ("node", "run", "connection", "selector", "tenant", "identity", "client")
SUBSCRIBER = WHOSE[:4]
_HOUR_US = 3_600_000_000
_KEY = "xxhash64(node, run, connection, selector) as key"
"""A subscriber in one number: sorting by text would take longer than all the rest. Two with the same number are judged."""
_NARROW = (
    *(_KEY, "offset", "unix_micros(time) as at", "epoch", "count", "conflated", "gaps", "confirmed"),
    *("if(confirmed, to_sequence + 1, from_sequence) as lo", "to_sequence as hi"),
)
_ORDERLY = """epoch is not null and gaps = 0 and hi >= lo - 1 and (last is null or lo = last + 1)
    and (confirmed or hi - lo + 1 = count + conflated)"""
_SUMS = {"ranges": "sum", "messages": "sum", "conflated": "sum"}
_ENDS = {"lo": "min", "hi": "max", "began": "min", "ended": "max", "epoch": "min", "last_epoch": "max", "odd": "sum"}


@dataclass(frozen=True)
class Folded:
    """What came of folding: a row for each subscriber of a subject, and the deliveries that are to be judged."""

    subscribers: DataFrame
    """Kept in memory until `release`. `is_plain`: all that it was handed is in order."""
    rest: DataFrame

    def release(self) -> None:
        """Let go of what is kept in memory, once the audit's tables are written."""
        self.subscribers.unpersist()


def fold(deliveries: DataFrame, published: Published, access: DataFrame) -> Folded:
    """Fold what is in order. What was published is held against rows that are a hundred times fewer."""
    subjects = deliveries.filter("not is_pattern")
    known = sum_subscribers(sum_hours(subjects)).join(name_keys(subjects), "key", "inner")
    lanes = measure_subjects(published.sums).selectExpr("node", "selector", "reign as epoch", "published_to", "skips")
    told = known.join(lanes, ["node", "selector", "epoch"], "left").join(
        list_again(access), [*SUBSCRIBER], "left"
    )  # a lane of which nothing is known has no end that could be passed
    subscribers = told.selectExpr("*", f"{_PLAIN} as is_plain").drop(*_ASKED).persist()
    odd = subscribers.filter("not is_plain").selectExpr("key", "true as is_odd").distinct()
    if odd.isEmpty():  # Spark sees by itself that what judges subjects has nothing to do, and plans none of it
        return Folded(subscribers, deliveries.filter("is_pattern"))
    keyed = deliveries.selectExpr("*", _KEY).join(odd, "key", "left")
    return Folded(subscribers, keyed.filter("is_pattern or is_odd").drop("key", "is_odd"))


_PLAIN = """odd = 0 and names = 1 and epoch = last_epoch and again is null and not coalesce(skips, false)
    and not coalesce(hi > published_to, false)"""
_ASKED = ("odd", "names", "last_epoch", "again", "skips", "published_to")


def sum_hours(subjects: DataFrame) -> DataFrame:
    """Each subscriber's hours: from where to where, what was handed over, and how many ranges do not simply go on where
    the one before ended.
    """
    before = Window.partitionBy("key").orderBy("offset")
    ranges = subjects.selectExpr(*_NARROW).withColumn("last", F.lag("hi").over(before))
    return ranges.groupBy("key", F.expr(f"at div {_HOUR_US} as hour")).agg(
        *(F.min("lo").alias("lo"), F.max("hi").alias("hi"), F.min("at").alias("began"), F.max("at").alias("ended")),
        *(F.min("epoch").alias("epoch"), F.max("epoch").alias("last_epoch")),
        *(F.sum("count").alias("messages"), F.sum("conflated").alias("conflated")),
        F.expr("count_if(not confirmed) as ranges"),
        F.expr(f"count_if(not coalesce({_ORDERLY}, false)) as odd"),
    )


def sum_subscribers(hours: DataFrame) -> DataFrame:
    """A row for each key, its hours in a list."""
    each = F.struct("hour", "ranges", "messages", "conflated")
    return hours.groupBy("key").agg(
        *(F.expr(f"{how}({name}) as {name}") for name, how in (_ENDS | _SUMS).items()),
        F.collect_list(each).alias("hours"),
    )


def name_keys(subjects: DataFrame) -> DataFrame:
    """Who stands behind each key; `names`: how many do."""
    found = subjects.selectExpr(_KEY, *WHOSE).distinct()
    return found.groupBy("key").agg(*(F.first(name).alias(name) for name in WHOSE), F.count("*").alias("names"))


def list_again(access: DataFrame) -> DataFrame:
    """Subscribers that subscribed more than once, which is more than one chain."""
    subscribed = access.filter(F.col("kind") == "subscribed").groupBy(*SUBSCRIBER).agg(F.count("*").alias("times"))
    return subscribed.filter("times > 1").selectExpr(*SUBSCRIBER, "true as again")


def list_plain_chains(folded: Folded) -> DataFrame:
    """The plain subscribers as audit.py's `sum_chains` has them."""
    return folded.subscribers.filter("is_plain").selectExpr(
        *(*SUBSCRIBER, "0L as chain", "1L as island", "tenant", "identity", "client", "false as is_pattern"),
        *("lo as from_place", "hi as to_place", "timestamp_micros(began) as first_time"),
        *("timestamp_micros(ended) as last_time", "ranges", "messages", "conflated", "0L as gaps", "0L as declared"),
        *("0L as faults", "epoch", "true as in_order"),
    )


def list_plain_hours(folded: Folded) -> DataFrame:
    """The plain subscribers' hours, which audit.py's `reach_verdict` sums with those of the others."""
    hours = folded.subscribers.filter("is_plain").selectExpr(*WHOSE, "explode(hours) as each")
    return hours.selectExpr(
        *(f"timestamp_micros(each.hour * {_HOUR_US}) as hour", "node", "tenant", "selector", "false as is_pattern"),
        *("each.ranges as ranges", "each.messages as messages", "each.conflated as conflated"),
        "xxhash64(connection, xxhash64(node, run, selector, false, 0)) as subscription",
    )
