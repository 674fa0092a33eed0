"""What each tenant used, hour by hour: messages in and out, their bytes, connections made and refused. Sums equal
the bronze tables'.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .repeats import LATENESS, bring_together

COUNTS = ("in_messages", "in_bytes", "out_messages", "out_bytes", "connects", "refusals")


def usage(
    messages: DataFrame, deliveries: DataFrame, access: DataFrame, lateness: str = LATENESS, *, may_repeat: bool = True
) -> DataFrame:
    """A row for each hour and tenant, from three streams of the journal; `may_repeat` as `bring_together` has it."""

    def counted(stream: DataFrame, name: str, **counts: str) -> DataFrame:
        columns = (f"{counts.get(column, '0L')} as {column}" for column in COUNTS)
        return stream.selectExpr("node", "tenant", "run", "journal_offset", "time", f"'{name}' as stream", *columns)

    rows = bring_together(
        counted(messages, "messages", in_messages="1L", in_bytes="cast(octet_length(content) as bigint)"),
        counted(deliveries, "deliveries", out_messages="count", out_bytes="bytes"),
        counted(access, "access", connects="int(kind = 'connected')", refusals="int(kind = 'refused')"),
        lateness=lateness,
        may_repeat=may_repeat,
    )
    sums = rows.groupBy(F.window("time", "1 hour"), "tenant").agg(*(F.sum(name).alias(name) for name in COUNTS))
    return sums.select(F.col("window.start").alias("hour"), "tenant", *COUNTS)
