"""How much was delivered of what, how fast, to how many: ten-second windows by selector, and roll-ups that are made
by merging.

Every column merges: counts add up, latencies are histograms (in powers of two of microseconds, as the node takes
them) whose buckets add up exactly, connections are a HyperLogLog. Percentiles are read from the merged histogram
when they are wanted, never averaged.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .repeats import LATENESS, bring_together

BUCKETS = 40
"""Buckets of a histogram in the journal: bucket 0 is below 1 microsecond, bucket i from 2^(i-1) up to 2^i."""
KEY = ("window_start", "node", "tenant", "selector")
COUNTS = ("messages", "bytes", "conflated", "gaps", "missed", "timed")
_BUCKETS_SUM = f"array({', '.join(f'sum(coalesce(get(buckets, {at}), 0L))' for at in range(BUCKETS))}) as buckets"


def delivery_windows(
    deliveries: DataFrame,
    latency: DataFrame,
    width: str = "10 seconds",
    lateness: str = LATENESS,
    *,
    may_repeat: bool = True,
) -> DataFrame:
    """A row for each window, node, tenant and selector, from two streams of the journal; `may_repeat` as `bring_together` has it.
    Confirmed rows delivered nothing.
    """
    counts = deliveries.filter("not confirmed").selectExpr(
        *(
            "node",
            "tenant",
            "run",
            "journal_offset",
            "time",
            "selector",
            "'deliveries' as stream",
            "count as messages",
            "bytes",
            "conflated",
            "gaps",
        ),
        *("coalesce(gap_count, 0L) as missed", "0L as timed", "cast(null as array<bigint>) as buckets"),
        "if(connection < 0, null, xxhash64(node, run, connection)) as connection",  # a group is none
    )
    times = latency.selectExpr(
        *(
            "node",
            "tenant",
            "run",
            "journal_offset",
            "time",
            "selector",
            "'latency' as stream",
            "0L as messages",
            "0L as bytes",
            "0L as conflated",
        ),
        *("0L as gaps", "0L as missed", "count as timed", "buckets", "cast(null as bigint) as connection"),
    )
    rows = bring_together(counts, times, lateness=lateness, may_repeat=may_repeat)
    sums = rows.groupBy(F.window("time", width), "node", "tenant", "selector").agg(
        *(F.sum(name).alias(name) for name in COUNTS),
        F.expr(_BUCKETS_SUM),
        F.hll_sketch_agg("connection").alias("connections"),
    )
    return sums.select(F.col("window.start").alias("window_start"), *KEY[1:], *COUNTS, "buckets", "connections")


def roll_up(windows: DataFrame, width: str) -> DataFrame:
    """The same rows for wider windows, by merging: of any rows that this or `delivery_windows` made."""
    return (
        windows.groupBy(F.window("window_start", width), *KEY[1:])
        .agg(
            *(F.sum(name).alias(name) for name in COUNTS),
            F.expr(_BUCKETS_SUM),
            F.hll_union_agg("connections").alias("connections"),
        )
        .select(F.col("window.start").alias("window_start"), *KEY[1:], *COUNTS, "buckets", "connections")
    )


def percentile_sql(q: float, buckets: str = "buckets") -> str:
    """The q-quantile of a histogram in microseconds, linear within its bucket; null of an empty one. At most a
    factor of two off.
    """
    total = f"aggregate({buckets}, 0L, (sum, each) -> sum + each)"
    through = (
        f"transform(sequence(1, {BUCKETS}), n -> aggregate(slice({buckets}, 1, n), 0L, (sum, each) -> sum + each))"
    )
    at = f"size(filter({through}, each -> each < {q} * {total}))"
    low = f"if({at} = 0, 0D, pow(2D, {at} - 1))"
    before = f"if({at} = 0, 0L, element_at({through}, {at}))"
    within = f"try_divide({q} * {total} - {before}, element_at({buckets}, {at} + 1))"
    return f"if({total} = 0, null, {low} + (pow(2D, {at}) - {low}) * {within})"


def read_latency(windows: DataFrame) -> DataFrame:
    """`p50_us`, `p95_us` and `p99_us` beside each row, and how many connections it was for."""
    quantiles = (f"{percentile_sql(q)} as p{q * 100:.0f}_us" for q in (0.5, 0.95, 0.99))
    return windows.selectExpr("*", *quantiles, "hll_sketch_estimate(connections) as reach")


def burn_rates(windows: DataFrame, target_us: int = 65_536, objective: float = 0.999) -> DataFrame:
    """How fast each tenant's error budget burns: 1 uses it up exactly. A delivery is good when the kernel had it
    within `target_us` (rounded up to a power of two) of its acceptance; a message told missing is a bad one. By
    minute, over the 5 minutes, hour and 6 hours to its end.

    A node times what it delivers of a selector, whosever it is: each tenant has the share of good ones that its selectors had, and of one
    that nothing was timed of in its minute all are good.
    """
    good_to = max(1, (target_us - 1).bit_length()) + 1
    lanes = windows.groupBy(F.window("window_start", "1 minute"), "node", "selector", "tenant").agg(
        F.expr(f"sum(aggregate(slice(buckets, 1, {good_to}), 0L, (sum, each) -> sum + each)) as fast"),
        *(F.sum(name).alias(name) for name in ("timed", "messages", "missed")),
    )
    lanes = lanes.withColumn("minute", F.col("window.start"))
    of_lane = "over (partition by minute, node, selector)"
    share = f"coalesce(try_divide(sum(fast) {of_lane}, sum(timed) {of_lane}), 1D) as share"
    minutes = (
        lanes.selectExpr("minute", "tenant", "messages", "missed", share)
        .groupBy("minute", "tenant")
        .agg(F.expr("cast(round(sum(messages * share)) as bigint) as good"), F.expr("sum(messages + missed) as total"))
        .filter("total > 0")
    )
    spans = {"burn_5m": 5 * 60, "burn_1h": 3_600, "burn_6h": 6 * 3_600}
    rates = []
    for name, seconds in spans.items():
        over = f"over (partition by tenant order by unix_seconds(minute) range between {seconds - 60} preceding and current row)"
        bad = f"try_divide(sum(total - good) {over}, sum(total) {over})"
        rates.append(f"coalesce({bad}, 0D) / {1 - objective:.9f}D as {name}")
    return minutes.selectExpr("*", *rates)
