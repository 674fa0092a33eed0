"""Journals that continued twice from one run: to an audit each continuation is a node of its own.

A journal that was restored from a copy, or that lost its end in a power cut, continues from an earlier arrival than the one that landed.
Its next run then gives arrivals, and sequences of an epoch, that other messages have already. A *branch* is such a run with those
that follow it. Its messages are compared with what was delivered in it, together with the messages before the arrival from which it
continued, which several branches share. Invariant: no row is compared with messages of another branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .ranges import Range
from .runs import Row, link_runs, make_small

_SEPARATOR = "\0"
"""Between a node's name and the first run of a branch: no node has it in its name."""
_PLACES = "node string, run string, branch string, up_to bigint"


@dataclass(frozen=True)
class Branch:
    """A run that does not continue where the one before it ended, and the runs that follow it."""

    node: str
    run: str
    own: list[str] = field(default_factory=list)
    shared: dict[str, int | None] = field(default_factory=dict)
    """The runs before it, each with the last of its arrivals that the branch continued from; None: all."""

    @property
    def name(self) -> str:
        """What stands for the node where its rows are compared."""
        return f"{self.node}{_SEPARATOR}{self.run}"


def find_branches(said: Iterable[Row], ends: Iterable[Row]) -> list[Branch]:
    """The branches of all nodes, from what the journal says of its runs and the `last_arrival` of each run that is known."""
    reached: dict[tuple[str, str], int] = {}
    for row in ends:
        run = row["node"], row["run"]
        reached[run] = max(reached.get(run, 0), row["last_arrival"])
    found: list[Branch] = []
    for node, linked in link_runs(said).items():
        continuing = _list_continuing(linked, {run: last for (of, run), last in reached.items() if of == node})
        rows = {row["run"]: (row, follows) for row, follows in linked}
        branches: dict[str, Branch] = {}
        for row, follows in linked:
            run = row["run"]
            if follows is not None and run not in continuing:
                branches[run] = Branch(node, run, shared=_list_shared(run, rows))
                found.append(branches[run])
            elif follows in branches:
                branches[run] = branches[follows]
            if run in branches:
                branches[run].own.append(run)
    return found


def _list_continuing(linked: list[tuple[Row, str | None]], reached: Mapping[str, int]) -> set[str]:
    """The runs that continue the branch of the run they follow: of each run at most one that says from which arrival."""
    found, furthest = set[str](), dict[str, Row]()
    for row, follows in linked:
        if follows is None:
            continue
        if row["follows_run"] != follows or row["follows_arrival"] is None:
            found.add(row["run"])
        elif row["follows_arrival"] >= reached.get(follows, 0):
            known = furthest.setdefault(follows, row)
            if row["follows_arrival"] > known["follows_arrival"]:
                furthest[follows] = row
    return found | {row["run"] for row in furthest.values()}


def _list_shared(run: str, rows: Mapping[str, tuple[Row, str | None]]) -> dict[str, int | None]:
    shared: dict[str, int | None] = {}
    row, follows = rows[run]
    while follows is not None and follows not in shared:
        shared[follows] = row["follows_arrival"] if row["follows_run"] == follows else None
        row, follows = rows[follows]
    return shared


def split_own(frame: DataFrame, branches: list[Branch]) -> DataFrame:
    """Rows with the name of their branch as `node`: each row is of the branch that its run is of."""
    rows = [{"node": each.node, "run": run, "branch": each.name} for each in branches for run in each.own]
    return _name(frame, rows).select(frame.columns)


def split_messages(frame: DataFrame, branches: list[Branch]) -> DataFrame:
    """Messages, or stretches of successive `rows`, of each branch: those of its own runs, and those that it shares."""
    kept = _name(frame, _list_places(branches)).filter("up_to is null or arrival <= up_to")
    if "rows" in frame.columns:
        kept = kept.withColumn("rows", F.expr("if(up_to is null, rows, least(rows, up_to - arrival + 1))"))
    return kept.select(frame.columns)


def split_runs(said: Iterable[Row], branches: list[Branch]) -> list[Row]:
    """What the journal says of the runs of each branch. A run after which a branch began may have been cut short there."""
    places: dict[tuple[str, str], list[str]] = {}
    for place in _list_places(branches):
        places.setdefault((place["node"], place["run"]), []).append(place["branch"])
    first = {(each.node, each.run) for each in branches}
    found: list[Row] = []
    for row in said:
        names = places.get((row["node"], row["run"]), [row["node"]])
        found += [row | {"node": name} for name in names]
        if row["kind"] == "began" and row["follows_clean"] is False and (row["node"], row["run"]) in first:
            cut = row | {"run": row["follows_run"], "kind": "lost", "stream": "messages"}
            found += [cut | {"node": name} for name in places[row["node"], row["follows_run"]]]
    return found


def split_damaged(
    damaged: Mapping[tuple[str, str], Sequence[Range]], branches: list[Branch]
) -> dict[tuple[str, str], Sequence[Range]]:
    """Offsets of damaged messages by branch and run; those of which no run is known may be of any."""
    places: dict[tuple[str, str], list[str]] = {}
    for place in _list_places(branches):
        places.setdefault((place["node"], place["run"]), []).append(place["branch"])
    for each in branches:
        places.setdefault((each.node, ""), [each.node]).append(each.name)
    return {(name, run): ranges for (node, run), ranges in damaged.items() for name in places.get((node, run), [node])}


def join_branches(frame: DataFrame) -> DataFrame:
    """Rows of branches with the name of their node."""
    return frame.withColumn("node", F.substring_index("node", _SEPARATOR, 1))


def _list_places(branches: list[Branch]) -> list[Row]:
    """For each run of a branch, the node with which its rows are compared, and up to which arrival; other runs stay with their node."""
    own = {(each.node, run): each.name for each in branches for run in each.own}
    places: dict[tuple[str, str], list[Row]] = {}
    for each in branches:
        for run, up_to in [*((run, None) for run in each.own), *each.shared.items()]:
            about = {"node": each.node, "run": run}
            of = places.setdefault((each.node, run), [])
            if not of and (each.node, run) not in own:
                of.append({**about, "branch": each.node, "up_to": None})
            of.append({**about, "branch": each.name, "up_to": up_to})
    return [row for rows in places.values() for row in rows]


def _name(frame: DataFrame, places: list[Row]) -> DataFrame:
    small = F.broadcast(make_small(frame.sparkSession, places, _PLACES))
    named = frame.join(small, ["node", "run"], "left")
    return named.withColumn("node", F.coalesce("branch", "node"))
