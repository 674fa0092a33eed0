"""Offsets that a table leaves out: on both sides of each hole stands a row.

A node's rows of a stream have offsets that follow each other. Rows are looked at one by one only where sums say that some are not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .runs import Row, collect, make_small

_BUCKET = 1 << 16
"""Offsets that are counted together."""


def find_holes(table: DataFrame, nodes: list[str], sides: Sequence[str]) -> Iterator[tuple[str, Row, Row]]:
    """Node by node the rows on both sides of each hole: `journal_offset`, and the columns of `sides`. Buckets of offsets are counted,
    and those that lack some are read.
    """
    held = table.filter(F.col("node").isin(nodes)).withColumn("bucket", F.expr(f"journal_offset div {_BUCKET}"))
    row = f"struct({', '.join(('journal_offset', *sides))})"
    ends = [F.expr(f"min({row}) as first"), F.expr(f"max({row}) as last")]
    whole, odd = list[Row](), list[Row]()
    for each in collect(held.groupBy("node", "bucket").agg(*ends, F.expr("count(distinct journal_offset) as rows"))):
        is_whole = each["last"]["journal_offset"] - each["first"]["journal_offset"] < each["rows"]
        (whole if is_whole else odd).append(each)
    if odd:
        named = make_small(table.sparkSession, odd, "node string, bucket bigint")
        rank = "journal_offset - dense_rank() over (partition by node, bucket order by journal_offset) as start"
        rows = held.join(F.broadcast(named), ["node", "bucket"], "left_semi").selectExpr("*", rank)
        whole += collect(rows.groupBy("node", "bucket", "start").agg(*ends))
    whole.sort(key=lambda each: (each["node"], each["first"]["journal_offset"]))
    for before, after in pairwise(whole):
        if before["node"] == after["node"] and before["last"]["journal_offset"] + 1 < after["first"]["journal_offset"]:
            yield before["node"], before["last"], after["first"]
