"""What each tenant used, hour by hour: messages in and out, their bytes, connections made and refused. Sums equal
the bronze tables'.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .repeats import LATENESS, drop_repeats

COUNTS = ("in_messages", "in_bytes", "out_messages", "out_bytes", "connects", "refusals")


def usage(messages: DataFrame, deliveries: DataFrame, access: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """A row for each hour and tenant, from three streams of the journal."""

    def counted(stream: DataFrame, name: str, **counts: str) -> DataFrame:
        columns = (f"{counts.get(column, '0L')} as {column}" for column in COUNTS)
        return stream.selectExpr("node", "tenant", "offset", "time", f"'{name}' as stream", *columns)

    rows = (
        counted(messages, "messages", in_messages="1L", in_bytes="cast(octet_length(content) as bigint)")
        .unionByName(counted(deliveries, "deliveries", out_messages="count", out_bytes="bytes"))
        .unionByName(counted(access, "access", connects="int(kind = 'connected')", refusals="int(kind = 'refused')"))
    )
    once = drop_repeats(rows, lateness, ("node", "stream", "offset"))
    sums = once.groupBy(F.window("time", "1 hour"), "tenant").agg(*(F.sum(name).alias(name) for name in COUNTS))
    return sums.select(F.col("window.start").alias("hour"), "tenant", *COUNTS)
