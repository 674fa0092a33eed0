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

from .published import measure_subjects
from .runs import collect

WHOSE = ("node", "run", "connection", "selector", "tenant", "identity", "authority", "client")
SUBSCRIBER = WHOSE[:4]
_HOUR_US = 3_600_000_000
_NUMBER = f"xxhash64({', '.join(SUBSCRIBER)})"
"""A subscriber in one number: sorting by text would take longer than all the rest. Two with the same number are judged."""
_KEY = f"{_NUMBER} as key"
_LANE = "xxhash64(node, selector, {term}) as lane"
_NARROW = (
    *(_KEY, _LANE.format(term="epoch"), f"xxhash64({', '.join(reversed(WHOSE))}, epoch) as who"),
    *("journal_offset", "unix_micros(time) as at", "count", "conflated", "int(not confirmed) as ranges"),
    *("if(confirmed, to_sequence + 1, from_sequence) as lo", "to_sequence as hi"),
    "not (epoch is not null and gaps = 0 and (confirmed or to_sequence - from_sequence + 1 = count + conflated)) as mismatched",
)
_ORDERLY = "not mismatched and hi >= lo - 1 and (last is null or lo = last + 1)"
_ENDS = {
    **{"lo": "min", "hi": "max", "began": "min", "ended": "max", "first_journal_offset": "min"},
    **{"lane": "min", "who": "min", "last_who": "max"},
    **{"ranges": "sum", "messages": "sum", "conflated": "sum", "odd": "sum"},
}
_BROADCAST_MOST = 500_000
"""Subscribers, some 30 MB, that are handed to every task; if there are more, Spark sorts them and the ranges."""


@dataclass(frozen=True)
class Folded:
    """What came of folding: a row for each subscriber of a subject, and the deliveries that are to be judged, which are not picked yet."""

    subscribers: DataFrame
    """`is_plain`: all that it was handed is in order."""
    rest: DataFrame
    counts: bool
    """Whether messages must be counted to judge the rest (published.py)."""
    is_whole: bool
    """Whether there is nothing left to be judged."""
    picked: DataFrame
    """`rest`, and a row of each subscriber that is plain."""
    known: DataFrame
    """What `subscribers` is made of."""

    def pick(self) -> None:
        """Have the rows picked: whatever is made of them waits for it."""
        self.picked.count()

    def release(self) -> None:
        """Release what is cached in memory, once the audit's tables are written."""
        for frame in (self.known, self.picked):
            frame.unpersist()


def fold(deliveries: DataFrame, sums: DataFrame, again: DataFrame) -> Folded:
    """Fold what is in order. What was published (`sums` of published.py) is held against rows that are a hundred times fewer, and so is
    who subscribed `again`.
    """
    [patterns] = collect(deliveries.selectExpr("bool_or(is_pattern) as are_there"))
    known = sum_subscribers(sum_hours(deliveries.filter("not is_pattern")))
    told = known.join(list_lanes(sums), "lane", "left").join(again.selectExpr(_KEY, "true as again"), "key", "left")
    subscribers = told.selectExpr("*", f"{_PLAIN} as is_plain").drop(*_ASKED).persist()
    found = subscribers.selectExpr(
        "count(*) as all", "count_if(not is_plain) as odd", "count_if(skips) as skipping"
    ).first()
    assert found
    places = subscribers.select("key", "first_journal_offset", "is_plain")
    picked = pick(deliveries, F.broadcast(places) if found.all <= _BROADCAST_MOST else places).persist()
    # where nobody is odd Spark sees by itself that what judges subjects has nothing to do, and plans none of it
    rest = picked.filter("is_pattern or not is_plain" if found.odd else "is_pattern")
    names = picked.filter("journal_offset = first_journal_offset").select("key", *WHOSE, "epoch")
    return Folded(
        subscribers.join(names, "key", "left"),
        rest.select(deliveries.columns),
        bool(patterns["are_there"] or found.skipping),
        not (patterns["are_there"] or found.odd),
        picked,
        subscribers,
    )


_PLAIN = """odd = 0 and who = last_who and again is null and not coalesce(skips, false)
    and not coalesce(hi > published_to, false)"""
_ASKED = ("odd", "who", "last_who", "lane", "again", "published_to")


def pick(deliveries: DataFrame, places: DataFrame) -> DataFrame:
    """What is to be judged, and of who is plain the first row, which tells the names: in one pass."""
    keyed = deliveries.selectExpr("*", f"if(is_pattern, null, {_NUMBER}) as key")
    return keyed.join(places, "key", "left").filter(
        "is_pattern or not is_plain or journal_offset = first_journal_offset"
    )


def sum_hours(subjects: DataFrame) -> DataFrame:
    """Each subscriber's hours: from where to where, what was handed over, and how many ranges do not simply go on where
    the one before ended.
    """
    before = Window.partitionBy("key").orderBy("journal_offset")
    ranges = subjects.selectExpr(*_NARROW).withColumn("last", F.lag("hi").over(before))
    ends = (
        "min(lo) as lo",
        "max(hi) as hi",
        "min(at) as began",
        "max(at) as ended",
        "min(journal_offset) as first_journal_offset",
    )
    same = ("min(lane) as lane", "min(who) as who", "max(who) as last_who")
    sums = ("sum(count) as messages", "sum(conflated) as conflated", "sum(ranges) as ranges")
    return ranges.groupBy("key", F.expr(f"at div {_HOUR_US} as hour")).agg(
        *(F.expr(sql) for sql in (*ends, *same, *sums)),
        F.expr(f"count_if(not coalesce({_ORDERLY}, false)) as odd"),
    )


def sum_subscribers(hours: DataFrame) -> DataFrame:
    """A row for each key, its hours in a list; `lane` is what it was subscribed to, in one number."""
    each = F.struct("hour", "ranges", "messages", "conflated")
    return hours.groupBy("key").agg(
        *(F.expr(f"{how}({name}) as {name}") for name, how in _ENDS.items()),
        F.collect_list(each).alias("hours"),
    )


def list_lanes(sums: DataFrame) -> DataFrame:
    """What was published of each lane; of two with the same number, as if they skipped: who is subscribed to one is judged."""
    lanes = measure_subjects(sums).selectExpr(_LANE.format(term="term"), "published_to", "skips")
    return lanes.groupBy("lane").agg(
        F.max("published_to").alias("published_to"), F.expr("bool_or(skips) or count(*) > 1 as skips")
    )


def list_again(deliveries: DataFrame, access: DataFrame) -> DataFrame:
    """Who subscribed more than once, which is more than one chain, and when (`began`). Where rows of access are not there, so did who was
    handed anything before the one time that is known.
    """
    subscribed = (
        access.filter("kind = 'subscribed'")
        .groupBy(*SUBSCRIBER)
        .agg(F.sort_array(F.collect_list("time")).alias("began"))
    )
    if is_whole(access):
        return subscribed.filter("size(began) > 1")
    handed = deliveries.groupBy(*SUBSCRIBER).agg(F.min("time").alias("first"))
    return subscribed.join(handed, [*SUBSCRIBER]).filter("size(began) > 1 or began[0] > first").drop("first")


def is_whole(table: DataFrame) -> bool:
    """Whether a table has each offset of every node from 0 on, and none twice, as one journal's runs give them."""
    ends = ("min(journal_offset) as first", "max(journal_offset) + 1 as next", "count(*) as rows")
    spans = collect(table.groupBy("node", "run").agg(*map(F.expr, ends)))
    reached: dict[str, int] = {}
    for row in sorted(spans, key=lambda row: (row["node"], row["first"])):
        if row["first"] != reached.get(row["node"], 0) or row["rows"] != row["next"] - row["first"]:
            return False
        reached[row["node"]] = row["next"]
    return True


def list_plain_chains(folded: Folded) -> DataFrame:
    """The plain subscribers as audit.py's `sum_chains` has them."""
    return folded.subscribers.filter("is_plain").selectExpr(
        *(*SUBSCRIBER, "0L as chain", "1L as island", *WHOSE[4:], "false as is_pattern"),
        *("lo as from_place", "hi as to_place", "timestamp_micros(began) as first_time"),
        *(
            "timestamp_micros(ended) as last_time",
            "ranges",
            "messages",
            "conflated",
            "0L as gaps",
            "0L as declared",
            "0L as erased",
        ),
        *("0L as faults", "epoch", "true as in_order"),
    )


def list_plain_hours(folded: Folded) -> DataFrame:
    """The plain subscribers' hours, which audit.py's `reach_verdict` sums with those of the others."""
    hours = folded.subscribers.filter("is_plain").selectExpr(*WHOSE, "explode(hours) as each")
    return hours.selectExpr(
        *(f"timestamp_micros(each.hour * {_HOUR_US}) as hour", "node", "tenant", "selector", "false as is_pattern"),
        *("each.ranges as ranges", "each.messages as messages", "each.conflated as conflated", "0L as erased"),
        "xxhash64(connection, xxhash64(node, run, selector, false, 0)) as subscription",
    )
