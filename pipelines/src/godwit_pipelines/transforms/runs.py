"""What a journal says of its runs: which follows which, how far each reaches, what it lost.

Runs are few, one for each start of a node: what is told of them is collected and worked out here in plain Python, and goes back to
Spark as small tables without a plan of their own, which it can broadcast at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """For each run, the first row, the first and last arrival, and the last time of its known messages."""
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
        *("node", "run", "journal_offset", "time", "kind", "stream"), "follows_run", "follows_arrival", "follows_clean"
    )


def list_erased_ends(erased: DataFrame) -> list[Row]:
    """For each run, the last arrival of an erased message."""
    return collect(erased.groupBy("node", "run").agg(F.expr("max(arrival + rows) - 1 as last_arrival")))


def list_began(runs: Iterable[Row]) -> dict[str, list[Row]]:
    """How each run began, each after the one that it follows, by node."""
    return {node: [row for row, _ in linked] for node, linked in link_runs(runs).items()}


def link_runs(runs: Iterable[Row]) -> dict[str, list[tuple[Row, str | None]]]:
    """By node how each run began and which run it follows, where it follows any. Offsets do not tell: a journal that began anew, or
    continued from a copy, has them again. Only for a run that follows one of which nothing is known it is the one before it.
    """
    by_node: dict[str, list[Row]] = {}
    for row in sorted(runs, key=lambda row: (row["journal_offset"], *_time_of(row))):
        if row["kind"] == "began":
            by_node.setdefault(row["node"], []).append(row)
    return {node: list(_in_order(began)) for node, began in by_node.items()}


def _in_order(began: list[Row]) -> Iterator[tuple[Row, str | None]]:
    known, after = {row["run"] for row in began}, dict[str | None, list[Row]]()
    for index, row in enumerate(began):
        follows = row["follows_run"]
        if follows is not None and follows not in known:
            before = (began[at] for at in range(index - 1, -1, -1))
            follows = next((each["run"] for each in before if each["journal_offset"] < row["journal_offset"]), None)
        after.setdefault(follows, []).append(row)
    waiting: list[tuple[Row, str | None]] = []
    done = set[str]()
    roots = sorted(after.pop(None, []), key=_time_of)
    waiting += [(row, None) for row in reversed(roots)]
    while waiting:
        row, follows = waiting.pop()
        if row["run"] not in done:
            done.add(row["run"])
            yield row, follows
            waiting += [(each, row["run"]) for each in reversed(after.get(row["run"], []))]
    yield from ((row, None) for row in began if row["run"] not in done)  # a circle, which no node writes


def _time_of(row: Row) -> tuple[bool, Any]:
    time = row.get("time")
    return time is not None, time


def list_lines(runs: Iterable[Row]) -> list[Row]:
    """The runs that say how they began, in their lines; `held_to` as the run that follows says it."""
    lines: list[Row] = []
    for node, linked in link_runs(runs).items():
        number = 0
        of: dict[str, Row] = {}
        for row, follows in linked:
            number += row["follows_run"] is None
            told = {"line": row["run"], "number": number} if follows is None else of[follows]
            begin = (row["follows_arrival"] or 0) if row["follows_run"] == follows else 0
            line = {"node": node, "run": row["run"], "line": told["line"], "held_to": None, "number": told["number"]}
            line["began_at"] = begin
            lines.append(of.setdefault(row["run"], line))
            if follows is not None and row["follows_run"] is not None:
                reached = max(of[follows]["held_to"] or 0, row["follows_arrival"] or 0)
                of[follows]["held_to"] = reached
    return lines


class Bounds(NamedTuple):
    """The first and the last offset of a run's rows in a table."""

    first: int
    last: int


def find_before(run: str, follows: Mapping[str, str | None], bounds: Mapping[str, Bounds]) -> str | None:
    """The run whose rows stand before those of a run of that node, in one journal: of those that have rows the next that it follows. Of a
    run that does not say what it follows it is the one whose offsets end before.
    """
    if run not in follows:
        before = [other for other, each in bounds.items() if other != run and each.last < bounds[run].first]
        return max(before, key=lambda other: bounds[other].last, default=None)
    seen, at = {run}, follows[run]
    while at is not None and at not in bounds and at not in seen:
        seen.add(at)
        at = follows.get(at)
    return None if at is None or at in seen or bounds[at].last >= bounds[run].first else at


def list_between(before: str, after: str, follows: Mapping[str, str | None]) -> list[str]:
    """The runs from one to another of the same journal, in order, both included."""
    found = [after]
    while found[-1] != before:
        at = follows.get(found[-1])
        if at is None or at in found:
            return [before, after]
        found.append(at)
    return found[::-1]


def list_follows(runs: Iterable[Row]) -> dict[str, dict[str, str | None]]:
    """By node which run each run follows, of those that say how they began."""
    return {node: {row["run"]: follows for row, follows in linked} for node, linked in link_runs(runs).items()}


def end_where_landed(lines: Iterable[Row], ends: Iterable[Row]) -> list[Row]:
    """The lines, a run that no other follows held to the last of its messages that has landed, or to where it began: what was handed over
    may land before what was published.
    """
    reached: dict[tuple[str, str], int] = {}
    for row in ends:
        run = row["node"], row["run"]
        reached[run] = max(reached.get(run, row["last_arrival"]), row["last_arrival"])
    whole = [
        row
        | {
            "held_to": reached.get((row["node"], row["run"]), row["began_at"])
            if row["held_to"] is None
            else row["held_to"]
        }
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
