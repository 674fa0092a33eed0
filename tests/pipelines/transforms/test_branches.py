"""Journals that continued twice from one run: what each continuation delivered is compared with its own messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, MESSAGES, RUNS
from godwit_pipelines.transforms.audit import audited
from godwit_pipelines.transforms.branches import Branch, find_branches, split_damaged, split_runs
from tests.pipelines.transforms.checker import MICROS
from tests.pipelines.transforms.rows import frame

Row = dict[str, Any]


def began(run: str, at: int, follows: str | None = None, arrival: int | None = None, *, clean: bool = True) -> Row:
    fields = {"follows_run": follows, "follows_arrival": arrival, "follows_clean": None if follows is None else clean}
    return {"node": "n", "run": run, "kind": "began", "journal_offset": at, "time": MICROS + at, "epoch": 1, **fields}


def reached(**arrivals: int) -> list[Row]:
    return [{"node": "n", "run": run, "last_arrival": arrival} for run, arrival in arrivals.items()]


def test_of_two_runs_that_follow_one_the_one_that_continues_later_is_its_branch() -> None:
    said = [began("a", 0), began("b", 1, "a", 10), began("c", 2, "b", 20)]
    assert find_branches(said, reached(a=10, b=20, c=30)) == []
    said += [began("f", 1, "a", 4), began("g", 2, "f", 12)]
    fork = Branch("n", "f", ["f", "g"], {"a": 4})
    assert find_branches(said, reached(a=10, b=20, c=30)) == [fork]
    assert find_branches([*reversed(said)], []) == [fork]
    said += [began("h", 2, "f", 9)]
    assert find_branches(said, []) == [fork, Branch("n", "h", ["h"], {"f": 9, "a": 4})]


def test_a_run_that_follows_one_of_which_more_landed_is_a_branch() -> None:
    """The node came back without its last rows, and they had landed."""
    said = [began("a", 0), began("b", 1, "a", 10)]
    assert find_branches(said, reached(a=12)) == [Branch("n", "b", ["b"], {"a": 10})]
    assert find_branches([*said, began("c", 2, "missing", 9)], reached(a=10, b=99)) == []


def test_what_is_known_of_a_shared_run_is_known_in_each_branch() -> None:
    said = [began("a", 0), began("b", 1, "a", 10), began("f", 1, "a", 4, clean=False)]
    (fork,) = branches = find_branches(said, [])
    fields = [(row["node"], row["run"], row["kind"]) for row in split_runs(said, branches)]
    assert fields == [
        *(("n", "a", "began"), (fork.name, "a", "began"), ("n", "b", "began"), (fork.name, "f", "began")),
        *(("n", "a", "lost"), (fork.name, "a", "lost")),
    ]
    damaged = {("n", "a"): [(0, 3)], ("n", "f"): [(7, 9)], ("n", ""): [(4, 5)], ("m", "a"): [(0, 1)]}
    assert split_damaged(damaged, branches) == {
        **{("n", "a"): [(0, 3)], (fork.name, "a"): [(0, 3)], (fork.name, "f"): [(7, 9)]},
        **{("n", ""): [(4, 5)], (fork.name, ""): [(4, 5)], ("m", "a"): [(0, 1)]},
    }


def published(run: str, epoch: int, arrivals: Iterable[int], offset: int) -> list[Row]:
    about = {"node": "n", "run": run, "subject": "/x", "epoch": epoch, "time": MICROS}
    return [
        {**about, "sequence": at + 1, "arrival": arrival, "journal_offset": offset + at}
        for at, arrival in enumerate(arrivals)
    ]


def pattern(run: str, of: str, first: int, last: int, count: int) -> Row:
    place = {"arrival_run": of, "from_arrival": first, "to_arrival": last, "selector": "/*", "is_pattern": True}
    return {"node": "n", "run": run, "connection": 1, "gap_count": 0, "count": count, "time": MICROS, **place}


def subject(run: str, epoch: int, first: int, last: int) -> Row:
    place = {"epoch": epoch, "from_sequence": first, "to_sequence": last, "selector": "/x", "count": last - first + 1}
    return {"node": "n", "run": run, "connection": 2, "gap_count": 0, "time": MICROS, **place}


def find(spark: SparkSession, messages: list[Row], handed: list[Row], said: list[Row]) -> list[tuple[Any, ...]]:
    """Run, kind and messages of each undeclared fault; every table names the node as the journal does."""
    rows = [{**row, "journal_offset": offset} for offset, row in enumerate(handed)]
    tables = (DELIVERIES, rows), (MESSAGES, messages), (ACCESS, []), (RUNS, said)
    with audited(*(frame(spark, schema, of) for schema, of in tables)) as found:
        faults = [row for row in found.faults.collect() if not row.declared]
        ranges, verdicts = found.ranges.collect(), found.verdict.collect()
    assert {row.node for row in (*faults, *ranges, *verdicts)} == {"n"}
    assert len({(row.hour, row.selector) for row in verdicts}) == len(verdicts)
    return sorted((row.run, row.kind, row.messages) for row in faults)


SAID = [began("a", 0), began("b", 1, "a", 10), began("f", 1, "a", 4)]
MESSAGES_OF = [
    *published("a", 1, range(1, 11), 0),
    *published("b", 2, range(11, 21), 10),
    *published("f", 2, range(5, 13), 4),
]


def test_what_a_branch_delivered_is_compared_with_what_it_held(spark: SparkSession) -> None:
    handed = [
        *(pattern("a", "a", 1, 10, 10), subject("a", 1, 1, 10)),
        *(pattern("b", "b", 11, 20, 10), subject("b", 2, 1, 10)),
        *(pattern("f", "a", 3, 4, 2), pattern("f", "f", 5, 12, 8), subject("f", 2, 1, 8)),
    ]
    assert find(spark, MESSAGES_OF, handed, SAID) == []


def test_a_fault_of_a_branch_is_not_hidden_by_another(spark: SparkSession) -> None:
    handed = [
        *(pattern("b", "b", 11, 20, 9), subject("b", 2, 1, 10)),
        *(pattern("f", "a", 3, 4, 2), pattern("f", "f", 5, 12, 10), subject("f", 2, 1, 10)),
    ]
    assert find(spark, MESSAGES_OF, handed, SAID) == [
        *(("b", "hole", 1), ("f", "repeat", 2), ("f", "unpublished", 2)),
    ]


def test_rows_that_landed_and_that_the_node_lost_are_not_compared_with_what_followed(spark: SparkSession) -> None:
    said = [began("a", 0), began("b", 1, "a", 6, clean=False)]
    messages = [*published("a", 1, range(1, 11), 0), *published("b", 2, range(7, 13), 6)]
    handed = [pattern("a", "a", 1, 11, 11), pattern("b", "a", 5, 6, 2), pattern("b", "b", 7, 12, 6)]
    assert find(spark, messages, handed, said) == []
