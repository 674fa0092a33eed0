"""What a journal says of its runs: which follows which, how far each reaches, what it lost.

Runs are few, one for each start of a node: what is told of them is collected and worked out here in plain Python, and goes back to
Spark as small tables without a plan of their own, which it can broadcast at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

Row = dict[str, Any]

TERM = "xxhash64(coalesce(line, run))"
"""In SQL, what numbers the arrivals of a run: the line that it is of, or itself where nobody says of which, as one number."""
_LINES = "node string, run string, line string, held_to bigint, number bigint"
_ENDS = "node string, run string, first_journal_offset bigint, first_arrival bigint, last_arrival bigint, last_time timestamp"
_EXCUSES = "node string, run string, lost_rows boolean, cut_short boolean"
_LANDED = "node string, landed_to timestamp"


@dataclass(frozen=True)
class Told:
    """Small tables, of the nodes' runs."""

    lines: DataFrame
    """Each run's `line`, the first of the runs that follow each other up to it, and `held_to`, the last of its arrivals that
    the journal held when the next began, or that has landed. `number` counts the lines of a node."""
    ends: DataFrame
    """Of each run the first row, the first and last arrival and the last time of its messages that are known."""
    excuses: DataFrame
    """`lost_rows` where the node's disk made it lose rows of deliveries or access, `cut_short` where the run did not end in order: what
    it accepted last may not be in the journal."""
    landed: DataFrame
    """The newest message of each node that is known."""


def know_runs(spark: SparkSession, ends: list[Row], said: list[Row], erased: DataFrame | None = None) -> Told:
    """From the ends of the messages that are known and what the journal says of its runs. What was `erased` had landed, too."""
    lines = end_where_landed(list_lines(said), [*ends, *([] if erased is None else list_erased_ends(erased))])

    def table(rows: Iterable[Row], schema: str) -> DataFrame:
        return make_small(spark, rows, schema)

    return Told(
        table(lines, _LINES), table(ends, _ENDS), table(list_excuses(said), _EXCUSES), table(list_landed(ends), _LANDED)
    )


def collect(frame: DataFrame) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def make_small(spark: SparkSession, rows: Iterable[Row], schema: str | StructType) -> DataFrame:
    """A few rows as a table that the driver holds."""
    fields = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(fields, StructType)
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), to_arrow_schema(fields, timezone="UTC")), fields)


def list_ends(sums: DataFrame) -> DataFrame:
    """The table of `ends`, with the last row and how many there are, from the sums of the messages (published.py)."""
    return sums.groupBy("node", "run").agg(
        *(F.expr(f"min({name}) as {name}") for name in ("first_journal_offset", "first_arrival")),
        *(F.expr(f"max({name}) as {name}") for name in ("last_journal_offset", "last_arrival", "last_time")),
        F.sum("published").alias("published"),
    )


def list_runs(runs: DataFrame) -> DataFrame:
    """What the journal says of its runs."""
    return runs.select(
        "node", "run", "journal_offset", "kind", "follows_run", "follows_arrival", "follows_clean", "stream"
    )


def list_erased_ends(erased: DataFrame) -> list[Row]:
    """Of each run the last arrival of a message that was erased."""
    return collect(erased.groupBy("node", "run").agg(F.expr("max(arrival + rows) - 1 as last_arrival")))


def list_began(runs: Iterable[Row]) -> dict[str, list[Row]]:
    """How each run began, in order, by node."""
    by_node: dict[str, list[Row]] = {}
    for row in sorted(runs, key=lambda row: row["journal_offset"]):
        if row["kind"] == "began":
            by_node.setdefault(row["node"], []).append(row)
    return by_node


def list_lines(runs: Iterable[Row]) -> list[Row]:
    """The runs that say how they began, in their lines; `held_to` as the run that follows says it."""
    lines: list[Row] = []
    for node, began in list_began(runs).items():
        number, line = 0, None
        held = [after["follows_arrival"] if after["follows_run"] is not None else None for _, after in pairwise(began)]
        for row, held_to in zip(began, [*held, None], strict=True):
            if row["follows_run"] is None:
                number, line = number + 1, row["run"]
            line = line or row["run"]
            lines.append({"node": node, "run": row["run"], "line": line, "held_to": held_to, "number": number})
    return lines


def end_where_landed(lines: Iterable[Row], ends: Iterable[Row]) -> list[Row]:
    """The lines, a run that no other follows held to the last of its messages that has landed: what was handed over
    may land before what was published.
    """
    reached: dict[tuple[str, str], int] = {}
    for row in ends:
        run = row["node"], row["run"]
        reached[run] = max(reached.get(run, row["last_arrival"]), row["last_arrival"])
    whole = [
        row | {"held_to": reached.get((row["node"], row["run"])) if row["held_to"] is None else row["held_to"]}
        for row in lines
    ]
    told = {(row["node"], row["run"]) for row in whole}
    untold = {"line": None, "number": None}
    return whole + [
        {"node": node, "run": run, "held_to": held_to, **untold}
        for (node, run), held_to in reached.items()
        if (node, run) not in told
    ]


def list_excuses(runs: Iterable[Row]) -> list[Row]:
    """Runs for which the journal itself excuses something."""
    excused: dict[tuple[str, str], Row] = {}
    for row in runs:
        if row["kind"] == "lost":
            excuse = excused.setdefault((row["node"], row["run"]), {"lost_rows": False, "cut_short": False})
            excuse["lost_rows"] |= row["stream"] in ("deliveries", "access")
            excuse["cut_short"] |= row["stream"] == "messages"
        elif row["kind"] == "began" and row["follows_clean"] is False:
            place = (row["node"], row["follows_run"])
            excused.setdefault(place, {"lost_rows": False})["cut_short"] = True
    return [{"node": node, "run": run, **excuse} for (node, run), excuse in excused.items()]


def list_landed(ends: Iterable[Row]) -> list[Row]:
    landed: dict[str, Any] = {}
    for row in ends:
        landed[row["node"]] = max(landed.get(row["node"], row["last_time"]), row["last_time"])
    return [{"node": node, "landed_to": newest} for node, newest in landed.items()]
