"""Offsets that a table leaves out: on both sides of each hole stands a row.

In one journal a node's rows of a stream have offsets that follow each other, from run to run. A journal that began anew, or continued
from a copy, has offsets again: rows are held against those of their run, and runs against those they follow. Rows are looked at one by
one only where sums say that some are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .runs import Bounds, Row, collect, find_before, make_small

_BUCKET = 1 << 16
"""Offsets that are counted together."""


Follows = Mapping[str, Mapping[str, str | None]]
"""By node which run each run follows (runs.py)."""


def list_holed(spans: Iterable[Row], follows: Follows) -> list[str]:
    """The nodes with fewer rows than offsets, from the bounds and `rows` of each run: of a run, or between two runs of one journal. A row
    that landed twice, as `reconcile` says, may hide one that is missing.
    """
    by_node: dict[str, dict[str, Bounds]] = {}
    holed = set[str]()
    for row in spans:
        bounds = Bounds(row["first_journal_offset"], row["last_journal_offset"])
        by_node.setdefault(row["node"], {})[row["run"]] = bounds
        if row["rows"] <= bounds.last - bounds.first:
            holed.add(row["node"])
    for node, runs in by_node.items():
        for run, bounds in runs.items():
            before = find_before(run, follows.get(node, {}), runs)
            if before is not None and runs[before].last + 1 < bounds.first:
                holed.add(node)
    return sorted(holed)


def find_holes(
    table: DataFrame, nodes: list[str], sides: Sequence[str], follows: Follows
) -> Iterator[tuple[str, Row, Row]]:
    """Node by node the rows on both sides of each hole: `run`, `journal_offset`, and the columns of `sides`. The rows of a run are held
    against each other, and its first against the last of the run before it in the same journal. Buckets of offsets are counted, and those
    that lack some are read.
    """
    held = table.filter(F.col("node").isin(nodes)).withColumn("bucket", F.expr(f"journal_offset div {_BUCKET}"))
    row = f"struct({', '.join(('journal_offset', 'run', *sides))})"
    ends = [F.expr(f"min({row}) as first"), F.expr(f"max({row}) as last")]
    whole, odd, of = list[Row](), list[Row](), ("node", "run", "bucket")
    for each in collect(held.groupBy(*of).agg(*ends, F.expr("count(distinct journal_offset) as rows"))):
        is_whole = each["last"]["journal_offset"] - each["first"]["journal_offset"] < each["rows"]
        (whole if is_whole else odd).append(each)
    if odd:
        named = make_small(table.sparkSession, odd, "node string, run string, bucket bigint")
        rank = "journal_offset - dense_rank() over (partition by node, run, bucket order by journal_offset) as start"
        rows = held.join(F.broadcast(named), [*of], "left_semi").selectExpr("*", rank)
        whole += collect(rows.groupBy(*of, "start").agg(*ends))
    pieces: dict[str, dict[str, list[Row]]] = {}
    for each in sorted(whole, key=lambda each: (each["node"], each["run"], each["first"]["journal_offset"])):
        pieces.setdefault(each["node"], {}).setdefault(each["run"], []).append(each)
    for node, runs in pieces.items():
        yield from ((node, *hole) for hole in _holes_of(runs, follows.get(node, {})))


def _holes_of(runs: dict[str, list[Row]], follows: Mapping[str, str | None]) -> Iterator[tuple[Row, Row]]:
    """The holes of a node, from the pieces of each of its runs."""
    bounds = {
        run: Bounds(of[0]["first"]["journal_offset"], of[-1]["last"]["journal_offset"]) for run, of in runs.items()
    }
    found = list[tuple[Row, Row]]()
    for run, of in runs.items():
        before = find_before(run, follows, bounds)
        ahead = [runs[before][-1]] if before is not None else []
        for left, right in pairwise([*ahead, *of]):
            if left["last"]["journal_offset"] + 1 < right["first"]["journal_offset"]:
                found.append((left["last"], right["first"]))
    yield from sorted(found, key=lambda hole: (hole[0]["journal_offset"], hole[0]["run"]))
