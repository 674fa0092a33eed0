"""What a node's work costs, fitted to what its own statistics say, and when there is most of it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

INDICATORS = {
    "connections": "connections",
    "cpu": "cpu",
    "memory_bytes": "memory_bytes",
    "published": "messages_in_per_second",
    "delivered": "messages_out_per_second",
}
"""Our columns and the metrics of /v1/stats that they are."""


def loads(stats: DataFrame) -> DataFrame:
    """Each node minute by minute: the mean of each metric, of the rows of the window `now`."""
    minute = F.date_trunc("minute", "time").alias("minute")
    rows = stats.filter("scope = 'node' and window_name = 'now' and value is not null").groupBy("node", minute)
    return rows.agg(
        *(F.expr(f"avg(if(metric = '{given}', value, null)) as {name}") for name, given in INDICATORS.items())
    )


def fit_costs(minutes: DataFrame) -> DataFrame:
    """Each node's costs by least squares: memory over connections, CPU over deliveries a second; `*_fit` is r
    squared. Null where nothing varied.
    """
    return minutes.groupBy("node").agg(
        F.count("*").alias("minutes"),
        F.regr_slope("memory_bytes", "connections").alias("bytes_per_connection"),
        F.regr_intercept("memory_bytes", "connections").alias("memory_base_bytes"),
        F.regr_r2("memory_bytes", "connections").alias("memory_fit"),
        (F.regr_slope("cpu", "delivered") * 1_000_000).alias("cpu_us_per_delivery"),
        F.regr_intercept("cpu", "delivered").alias("cpu_base"),
        F.regr_r2("cpu", "delivered").alias("cpu_fit"),
        *(F.max(name).alias(f"{name}_max") for name in ("connections", "delivered", "cpu", "memory_bytes")),
    )


def forecast(minutes: DataFrame) -> DataFrame:
    """What each hour of the week has been like: means and maxima over all weeks that are known. Monday 0 h is hour
    0.
    """
    hour = F.expr("weekday(minute) * 24 + hour(minute)").alias("hour_of_week")
    return minutes.groupBy("node", hour).agg(
        F.countDistinct(F.date_trunc("week", "minute")).alias("weeks"),
        *(F.avg(name).alias(name) for name in ("connections", "delivered", "cpu")),
        *(F.max(name).alias(f"{name}_max") for name in ("connections", "delivered", "cpu")),
    )


def nodes_needed(
    costs: DataFrame, connections: int, delivered: int, cores: float, memory_bytes: int, fill: float = 0.7
) -> DataFrame:
    """How many nodes of `cores` and `memory_bytes` would carry so many connections and deliveries a second, filled
    to `fill` at most.
    """
    memory_left = f"greatest(1D, {fill} * {memory_bytes} - coalesce(memory_base_bytes, 0D))"
    cores_left = f"greatest(0.01D, {fill} * {cores} - coalesce(cpu_base, 0D))"
    by_memory = f"greatest(0D, bytes_per_connection) * {connections} / {memory_left}"
    by_cpu = f"greatest(0D, cpu_us_per_delivery) / 1e6 * {delivered} / {cores_left}"
    return costs.selectExpr(
        "node",
        f"bigint(greatest(1, ceil({by_memory}), ceil({by_cpu}))) as nodes",
        f"{by_memory} as by_memory",
        f"{by_cpu} as by_cpu",
    )
