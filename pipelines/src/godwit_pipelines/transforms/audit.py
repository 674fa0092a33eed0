"""The audit: what was published against what was handed over, range by range.

Along one *chain* (a subscription of one connection, in the journal's order) ranges must follow each other on the
ruler that published.py lays out. `judge_ranges` says how each stands to what came before it, in one sort; faults.py
names what is wrong; here are also the sums. Invariant: a journal of a node that kept its promises yields no
undeclared fault, whatever happened to its clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..beside import threads_of
from ..tables.proof import FAULTS
from .branches import find_branches, join_branches, split_damaged, split_messages, split_own, split_runs
from .faults import find_faults
from .folding import SUBSCRIBER, Folded, fold, list_again, list_plain_chains, list_plain_hours
from .lost import Damaged
from .published import Published, know_published, measure_ranges, sum_messages
from .runs import Told, collect, list_ends, list_erased_ends, list_runs, make_small
from .torn import tear_chains

_EPOCH, _HOUR = datetime(1970, 1, 1, tzinfo=UTC), timedelta(hours=1)
FindTorn = Callable[[], DataFrame | None]
CHAIN = ("node", "run", "connection", "selector", "chain")


@dataclass(frozen=True)
class Audit:
    """The result of an audit: the subscriptions, the reported and unreported faults, and a verdict for each hour and selector."""

    ranges: DataFrame
    faults: DataFrame
    verdict: DataFrame


@contextmanager
def audited(
    deliveries: DataFrame,
    messages: DataFrame,
    access: DataFrame,
    runs: DataFrame,
    erased: DataFrame | None = None,
    find_torn: FindTorn | None = None,
    damaged: Damaged | None = None,
) -> Iterator[Audit]:
    """The audit of what was handed over, from the journal's tables, and where messages stood that were `erased` (published.py) or are
    `damaged` (lost.py). Whether rows are missing (torn.py) is asked of `find_torn` while others are judged, and counts where something is
    wrong. What is kept in memory is let go of at the end.
    """
    with ExitStack() as kept:
        sums = sum_messages(messages)
        kept.callback(sums.unpersist)
        said, ends = collect(list_runs(runs)), collect(list_ends(sums))
        if branches := find_branches(said, [*ends, *([] if erased is None else list_erased_ends(erased))]):
            deliveries, access = split_own(deliveries, branches), split_own(access, branches)
            messages, said = split_messages(messages, branches), split_runs(said, branches)
            erased = None if erased is None else split_messages(erased, branches)
            damaged = split_damaged(damaged or {}, branches)
            sums = sum_messages(messages)
            kept.callback(sums.unpersist)
            ends = collect(list_ends(sums))
        again = list_again(deliveries, access)
        folded = fold(deliveries, sums, again)
        kept.callback(folded.release)
        # before rows are picked: its queries are small, and would wait for that behind them
        published = None if folded.is_whole else know_published(messages, sums, said, ends, erased, damaged)
        beside = kept.enter_context(
            threads_of(deliveries.sparkSession, 2)
        )  # rows are worked on while what is next is planned
        picking = beside.submit(folded.pick)
        if published is None:
            found = conclude_folded(folded)
            picking.result()
            yield found
            return

        def find(torn: DataFrame | None = None) -> tuple[Audit, int]:
            judged = judge(folded.rest, published, again, counts=folded.counts, torn=torn).persist()
            kept.callback(judged.unpersist)
            faults = find_faults(judged).persist()  # the other tables are made of them, too
            kept.callback(faults.unpersist)
            undeclared = beside.submit(count_undeclared, faults)
            found = conclude(judged, faults, folded)
            picking.result()
            return found, undeclared.result()

        tearing = beside.submit(find_torn) if find_torn else None
        found, undeclared = find()
        torn = tearing.result() if tearing else None
        torn = split_own(torn, branches) if torn is not None and branches else torn
        yield find(torn)[0] if torn is not None and undeclared else found


def count_undeclared(faults: DataFrame) -> int:
    """The faults that no client received a report of. All are counted: to look for one takes one core after the other. Rows that are
    not there may look like any kind: where a reported gap is spent on what is missing ahead of a row, what is
    missing inside is left for a hole.
    """
    return int(collect(faults.selectExpr("count_if(not declared) as undeclared"))[0]["undeclared"])


def whole_since(deliveries: DataFrame, since: datetime) -> datetime:
    """The last full hour up to `since` at which no connection was under way that handed over anything later: from there on every
    hour and every subscription is there whole.
    """
    spans = deliveries.groupBy("node", "run", "connection").agg(
        F.min("time").alias("first"), F.max("time").alias("last")
    )
    hours = spans.selectExpr(*(f"unix_micros(date_trunc('hour', {name})) as {name}" for name in ("first", "last")))
    found = _EPOCH + (since - _EPOCH) // _HOUR * _HOUR
    for span in hours.distinct().orderBy(F.desc("last")).collect():
        if _EPOCH + timedelta(microseconds=span.last) < found:
            break
        found = min(found, _EPOCH + timedelta(microseconds=span.first))
    return found


def judge(
    deliveries: DataFrame,
    published: Published,
    again: DataFrame,
    *,
    counts: bool = True,
    torn: DataFrame | None = None,
) -> DataFrame:
    """Every range as it stands to those before it. All tables of an audit are made of it: worth keeping in memory.
    `again` as folding.py lists it, `counts` as in `measure_ranges`, `torn` as torn.py finds it.
    """
    ranges = number_chains(measure_ranges(deliveries, published, counts=counts), again)
    chains = ranges.withColumn("torn_by", F.lit(0).cast("long")) if torn is None else tear_chains(ranges, torn)
    return judge_ranges(excuse_runs(chains, published.runs))


def conclude(judged: DataFrame, faults: DataFrame, folded: Folded | None = None) -> Audit:
    """The tables of an audit from its judged ranges, their faults, and the subscriptions that were folded as they are in order."""
    ranges, hours = sum_chains(judged, faults), sum_hours(judged)
    if folded:
        ranges = ranges.unionByName(list_plain_chains(folded))
        hours = hours.unionByName(list_plain_hours(folded))
    ranges, hours, faults = (join_branches(each) for each in (ranges, hours, faults))
    return Audit(ranges, faults, reach_verdict(hours, faults))


def conclude_folded(folded: Folded) -> Audit:
    """The tables of an audit where every subscription was folded: nothing is to be judged, and no plan is made for it."""
    faults = make_small(folded.subscribers.sparkSession, [], FAULTS.columns)
    ranges, hours = join_branches(list_plain_chains(folded)), join_branches(list_plain_hours(folded))
    return Audit(ranges, faults, reach_verdict(hours, faults))


def number_chains(ranges: DataFrame, again: DataFrame) -> DataFrame:
    """`chain`: which subscription of its connection to its selector a range belongs to. A second subscribe replaces the first and stands
    elsewhere. Its time is in no whole millisecond, after all that was handed over under the first, and not after what is its own. Nodes
    that gave no such order wrote whole milliseconds: there the row that names where it stands is the first of the new chain, all else of
    that instant is the old one's.
    """
    # In SQL: a lambda of Python's gets another name each time, so that what Java made of the stage before is of no use.
    is_its_own = "confirmed or unix_micros(each) % 1000 > 0"
    earlier = f"filter(began, each -> each < time or (each = time and ({is_its_own})))"
    numbered = ranges.join(F.broadcast(again), [*SUBSCRIBER], "left")
    return numbered.withColumn("chain", F.expr(f"coalesce(size({earlier}), 0)")).drop("began")


def excuse_runs(ranges: DataFrame, runs: Told) -> DataFrame:
    """Each range with what the journal says of its run: `lost_rows`, `cut_short`, `landed_to`."""
    told = ranges.join(F.broadcast(runs.excuses), ["node", "run"], "left").join(
        F.broadcast(runs.landed), "node", "left"
    )
    return told.fillna(False, ["lost_rows", "cut_short"])


def judge_ranges(ranges: DataFrame) -> DataFrame:
    """How each range stands to those before it in its chain. A chain is cut into islands where another term
    begins.

    `reached`: how far the island had come (null at its first range); `began`: where it began; `before`: messages
    between there and this range; `inside`: messages of the range that are not accounted for (below zero: too many);
    Of a pattern whose messages are merged these may hold what was handed over before the range, which is no repeat.
    `across`: at the first range of a later island, messages of either term that nobody was handed; `regressed`: it
    went back to a term it had left. `gone_inside`: messages of the range that may have been erased; `erased`: with those of the places
    before it that its chain had not come to, and those by which it is torn.
    """
    key = F.xxhash64("node", "run", "selector", "is_pattern", "chain")
    # The rows of a group are written by several cores, each when it looks.
    order = ("if(connection < 0, to_place, journal_offset)", "if(connection < 0, from_place, 0L)")
    chain = Window.partitionBy("connection", "chain_key").orderBy(*map(F.expr, order))
    earlier = chain.rowsBetween(Window.unboundedPreceding, -1)
    # "you are ahead of me": told, and set back to where the node stands
    behind = ranges.withColumn("chain_key", key).withColumn(
        "ahead", F.lag(F.struct("confirmed", "term", "hi")).over(chain)
    )
    marked = behind.selectExpr(
        *("*", "ahead is null or ahead.term != term as other"),
        "coalesce(ahead.confirmed and gaps > 0 and lo <= ahead.hi, false) as set_back",
    ).selectExpr("*", "other or set_back as changed")
    islands = marked.withColumn("island", F.sum(F.expr("int(changed)")).over(chain))
    seen = islands.withColumns(
        {
            "last": F.max(F.struct("island", "hi", "published_to", "to_place", "gone_to", "gone_all")).over(earlier),
            "opened": F.max(F.expr("struct(island, if(changed, if(confirmed, 1L, lo), null) as lo)")).over(earlier),
            "left": F.collect_set(F.expr("if(changed, term, null)")).over(earlier),
        }
    )
    followed = seen.selectExpr("*", *(f"{sql} as {name}" for name, sql in _FOLLOWED.items()))
    return followed.selectExpr("*", *(f"{sql} as {name}" for name, sql in _STANDING.items())).drop(*_PASSING)


_FOLLOWED = {
    "reached": "if(changed, null, last.hi)",
    "began": "if(changed, null, opened.lo)",
    "place_before": "last.to_place",
    "regressed": "other and last is not null and array_contains(left, term)",
}
_LACKING = "(hi - lo + 1 - count - conflated)"
_STANDING = {
    "before": "greatest(0L, coalesce(lo - reached - 1, 0L))",
    "inside": f"if(confirmed, 0L, if(is_pattern and {_LACKING} < 0, least(0L, {_LACKING} + conflated), {_LACKING}))",
    "gone_inside": "least(gone_most, greatest(0L, gone_to - gone_from))",
    "erased": """torn_by + case when other and last is not null and not regressed
            then least(gone_most, gone_to) + greatest(0L, last.gone_all - last.gone_to)
        else least(gone_most, greatest(0L, gone_to - if(changed, gone_from, least(gone_from, last.gone_to)))) end""",
    "across": """if(other and last is not null and not regressed,
        greatest(0L, coalesce(last.published_to - last.hi, 0L)) + greatest(0L, lo - 1), 0L)""",
}
_PASSING = ("last", "opened", "left", "changed", "other", "set_back", "ahead")


def sum_chains(judged: DataFrame, faults: DataFrame) -> DataFrame:
    """A row for each subscription and term: from where to where, what was handed over, and whether all of it is in
    order.
    """
    island = [*CHAIN, "island"]
    sums = judged.groupBy(*island).agg(
        *(F.first(name).alias(name) for name in ("tenant", "identity", "authority", "client", "is_pattern")),
        F.min("from_place").alias("from_place"),
        F.max("to_place").alias("to_place"),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
        F.sum((~F.col("confirmed")).cast("long")).alias("ranges"),
        F.sum("count").alias("messages"),
        F.sum("conflated").alias("conflated"),
        F.sum("gaps").alias("gaps"),
        F.sum("erased").alias("erased"),
        F.max("term").alias("term"),
    )
    wrong = faults.groupBy(*island).agg(
        F.sum(F.when(F.col("declared"), F.col("messages")).otherwise(0)).alias("declared"),
        F.count(F.when(~F.col("declared"), 1)).alias("faults"),
    )
    whole = sums.join(wrong, island, "left").fillna(0, ["declared", "faults"])
    return whole.selectExpr("*", "if(is_pattern, null, term) as epoch", "faults = 0 as in_order").drop("term")


def sum_hours(judged: DataFrame) -> DataFrame:
    """What each range adds to the sums of its hour."""
    return judged.selectExpr(
        *("date_trunc('hour', time) as hour", "node", "tenant", "selector", "is_pattern"),
        *("int(not confirmed) as ranges", "count as messages", "conflated", "erased"),
        "xxhash64(connection, chain_key) as subscription",
    )


def reach_verdict(handed: DataFrame, faults: DataFrame) -> DataFrame:
    """An hour of a selector in one row. `verdict`: proven (all that was published was handed over, in order, once),
    reported (clients received gaps for all missing messages, or the journal lost rows), unproven (it may be about what was erased or never
    landed), or broken. What was handed over and is not known to have been published yet is none of it missing.
    """
    place = ["hour", "node", "tenant", "selector", "is_pattern"]
    sums = handed.groupBy(*place).agg(
        *(F.sum(name).alias(name) for name in ("ranges", "messages", "conflated", "erased")),
        F.approx_count_distinct("subscription").alias("subscriptions"),
    )
    hour = F.date_trunc("hour", "time").alias("hour")
    wrong = faults.select("*", hour).groupBy(*place).agg(*(F.expr(f"{sql} as {name}") for name, sql in _SUMS.items()))
    filled = sums.join(wrong, place, "left").fillna(0, [*_SUMS])
    verdict = """case when faults > 0 then 'broken' when erased > 0 then 'unproven' when reported + excused > 0 then 'reported'
        else 'proven' end as verdict"""
    return filled.selectExpr("*", verdict)


_SUMS = {
    **{
        f"{kind}s": f"sum(if(kind = '{kind}' and not declared, messages, 0L))"
        for kind in ("gap", "hole", "repeat", "reorder")
    },
    "regressions": "count_if(kind = 'epoch_regress')",
    "others": "count_if(kind in ('miscount', 'unpublished') and not declared)",
    "reported": "sum(if(cause = 'reported', messages, 0L))",
    "excused": "sum(if(declared and kind != 'unpublished' and cause != 'reported', messages, 0L))",
    "faults": "count_if(not declared)",
}
