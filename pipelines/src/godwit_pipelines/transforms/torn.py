"""Subscriptions of which rows may be missing: torn in two where they do not simply go on.

Rows of deliveries that the journal had and that no table has (retention let go of them before they landed, or they are damaged) leave a gap
in each subscription that they were of, or a repeat where they said that it was set back; rows of access may have said that it began anew.
What such a subscription was handed in between nobody knows: behind it another chain begins, of which nothing is held against what came
before, and `torn_by` says of how many messages that may be. Where a row goes on at the place where the one before it ended, nothing of it
is missing. Looked for only where an audit has found something wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .holes import Follows, find_holes, list_holed
from .ranges import Range, merged, widened, without
from .runs import collect, list_between, list_follows, list_runs, make_small

Erased = Mapping[str, Mapping[str, list[Range]]]
"""Offsets by node and run; those of which no run is known have none."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_MOST = 1000
"""Stretches of a run that every row which does not simply go on is held against; those next to each other become one if there are more."""
_STRETCHES = "array<struct<first: bigint, next: bigint>>"
TORN = f"node string, run string, not_landed {_STRETCHES}, unheard {_STRETCHES}"
"""For each run, the offsets of missing rows of deliveries, and the times, in microseconds since 1970, of missing rows of access."""


def find_torn(
    deliveries: DataFrame, access: DataFrame, runs: DataFrame, erased: Erased, erased_access: Erased
) -> DataFrame | None:
    """What is missing of whole tables and was not erased, by the offsets; None where nothing is."""
    follows = list_follows(collect(list_runs(runs)))
    not_landed = dict(find_stretches(deliveries, erased, "journal_offset", follows))
    unheard = dict(find_stretches(access, erased_access, "time", follows))
    rows = [
        {"node": of[0], "run": of[1], "not_landed": not_landed.get(of, []), "unheard": unheard.get(of, [])}
        for of in sorted({*not_landed, *unheard})
    ]
    return make_small(deliveries.sparkSession, rows, TORN) if rows else None


def find_stretches(
    table: DataFrame, erased: Erased, by: str, follows: Follows
) -> Iterator[tuple[tuple[str, str], list[dict[str, int]]]]:
    """By node and run the stretches in which rows are missing: of offsets, or of times, ends included. One over several runs is of each."""
    ends = ("min(journal_offset) as first_journal_offset", "max(journal_offset) as last_journal_offset")
    spans = collect(table.groupBy("node", "run").agg(*map(F.expr, (*ends, "count(*) as rows"))))
    holed = list_holed(spans, follows)
    found: dict[tuple[str, str], list[Range]] = {}
    for node, before, after in find_holes(table, holed, ("time",), follows) if holed else ():
        runs = list_between(before["run"], after["run"], follows.get(node, {}))
        left_out = [erased.get(node, {}).get(run, []) for run in ("", *runs)]
        gone = without([(before["journal_offset"] + 1, after["journal_offset"])], chain(*left_out))
        if gone and by == "time":
            low, high = sorted((each["time"] - _EPOCH) // _MICROSECOND for each in (before, after))
            gone = [(low, high + 1)]
        for run in runs:
            found[node, run] = found.get((node, run), []) + gone
    for of, ranges in found.items():
        if ranges:
            yield of, [{"first": first, "next": next} for first, next in widened(merged(ranges), _MOST)]


def tear_chains(ranges: DataFrame, torn: DataFrame) -> DataFrame:
    """Ranges with another chain behind each tear. Chains of a connection and selector stay in order, and each has its own number."""
    key = F.xxhash64("node", "run", "selector", "is_pattern")
    before = Window.partitionBy("connection", "key").orderBy("journal_offset")
    known = ranges.join(F.broadcast(torn), ["node", "run"], "left").withColumn("key", key)
    known = known.withColumn("ahead", F.lag(F.struct("chain", "term", "hi", "journal_offset", "time")).over(before))
    marked = known.withColumn("is_torn", F.expr(f"coalesce({_IS_TORN}, false)"))
    told = marked.withColumn("tears", F.sum(F.expr("int(is_torn)")).over(before))
    kept = [name for name in ranges.columns if name != "chain"]
    return told.selectExpr(*kept, "chain + tears as chain", f"if(is_torn, {_TORN_BY}, 0L) as torn_by")


_IS_TORN = """ahead.chain = chain and not (ahead.term = term and lo = ahead.hi + 1) and (
    exists(not_landed, each -> each.first < journal_offset and each.next > ahead.journal_offset + 1)
    or exists(unheard, each -> each.first <= unix_micros(time) and each.next > unix_micros(ahead.time)))"""
_TORN_BY = """greatest(1L, case when ahead.term != term then count
    when lo > ahead.hi then lo - ahead.hi - 1 else hi - lo + 1 end)"""
