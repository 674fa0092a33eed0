"""The order of runs, how far each is audited, and the gaps that the journal explains; without Spark, except for the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from godwit_pipelines.schemas import MESSAGES, RUNS
from godwit_pipelines.transforms.published import sum_messages
from godwit_pipelines.transforms.runs import (
    collect,
    end_where_landed,
    know_runs,
    list_ends,
    list_excuses,
    list_landed,
    list_lines,
    list_runs,
)
from tests.pipelines.transforms.checker import MICROS
from tests.pipelines.transforms.rows import frame

Row = dict[str, Any]


def began(run: str, offset: int, follows: str | None = None, arrival: int | None = None, **more: Any) -> Row:
    records = {"follows_run": follows, "follows_arrival": arrival, "follows_clean": None if follows is None else True}
    return {"node": "n", "run": run, "journal_offset": offset, "kind": "began", "stream": None, **records, **more}


def lost(run: str, stream: str) -> Row:
    return began(run, 0, kind="lost", stream=stream)


def lines(*runs: Row) -> list[tuple[Any, ...]]:
    return [(row["run"], row["line"], row["held_to"], row["number"]) for row in list_lines(runs)]


def test_a_line_is_the_runs_that_follow_each_other() -> None:
    records = (began("a", 0), began("b", 1, "a", 6), began("c", 2, "b", 9), began("d", 3), began("e", 4, "d", 2))
    assert lines(*records) == [
        *(("a", "a", 6, 1), ("b", "a", 9, 1), ("c", "a", None, 1)),
        *(("d", "d", 2, 2), ("e", "d", None, 2)),
    ]
    assert lines(*reversed(records)) == lines(*records)  # as the node's offsets have it, not as they are read


def test_the_runs_of_a_journal_that_began_anew_or_continued_from_a_copy_are_in_lines_of_their_own() -> None:
    """Their rows have offsets that the rows of the others have, too."""
    records = [began("a", 0), began("b", 1, "a", 6), began("c", 0), began("d", 1, "c", 2), began("e", 2, "d", 5)]
    records += [began("f", 1, "a", 4), began("g", 2, "f", 7)]
    found = {run: (line, held_to) for run, line, held_to, _ in lines(*records)}
    assert found == {
        **{"a": ("a", 6), "b": ("a", None), "f": ("a", 7), "g": ("a", None)},
        **{"c": ("c", 2), "d": ("c", 5), "e": ("c", None)},
    }
    numbers = {run: number for run, _, _, number in lines(*records)}
    assert numbers == dict.fromkeys("abfg", 1) | dict.fromkeys("cde", 2)


def test_runs_that_follow_each_other_in_a_circle_are_each_there_once() -> None:
    assert sorted(row[0] for row in lines(began("a", 0, "b", 1), began("b", 1, "a", 1))) == ["a", "b"]


def test_a_run_whose_predecessor_is_not_known_follows_the_one_before_it() -> None:
    assert lines(began("a", 0), began("c", 2, "b", 9)) == [("a", "a", 9, 1), ("c", "a", None, 1)]


def test_a_line_whose_first_run_is_no_longer_known_begins_with_the_first_that_is() -> None:
    assert lines(began("b", 1, "a", 6), began("c", 2, "b", 9)) == [("b", "b", 9, 0), ("c", "b", None, 0)]


def test_each_node_has_lines_of_its_own() -> None:
    found = list_lines([began("a", 0), began("x", 0, node="m"), began("b", 1, "a", 6), began("y", 1, "x", 3, node="m")])
    assert [(row["node"], row["line"], row["held_to"]) for row in found] == [
        *(("n", "a", 6), ("n", "a", None), ("m", "x", 3), ("m", "x", None)),
    ]


def test_the_last_run_is_held_to_what_has_landed_of_it_and_a_run_without_a_beginning_too() -> None:
    ends = [{"node": "n", "run": run, "last_arrival": arrival} for run, arrival in (("a", 8), ("b", 12), ("z", 5))]
    found = end_where_landed(list_lines([began("a", 0), began("b", 1, "a", 6)]), ends)
    assert [(row["run"], row["line"], row["held_to"]) for row in found] == [
        *(("a", "a", 6), ("b", "a", 12), ("z", None, 5)),
    ]


def test_the_journal_excuses_lost_rows_and_runs_that_were_cut_short() -> None:
    runs = [
        *(lost("a", "deliveries"), lost("b", "messages"), lost("c", "stats"), began("d", 0)),
        *(began("e", 1, "d", 3, follows_clean=False), began("f", 2, "e", 4)),
    ]
    assert [(row["run"], row["lost_rows"], row["cut_short"]) for row in list_excuses(runs)] == [
        *(("a", True, False), ("b", False, True), ("c", False, False), ("d", False, True)),
    ]


def test_the_newest_message_of_a_node_is_that_of_its_newest_run() -> None:
    at = [datetime(2026, 11, 22, hour, tzinfo=UTC) for hour in range(3)]
    ends = [{"node": node, "last_time": when} for node, when in (("n", at[1]), ("n", at[0]), ("m", at[2]))]
    assert list_landed(ends) == [{"node": "n", "landed_to": at[1]}, {"node": "m", "landed_to": at[2]}]


def test_the_tables_hold_what_was_told(spark: SparkSession) -> None:
    place = {"node": "n", "subject": "/a", "epoch": 1}
    messages = [
        {**place, "run": "a", "sequence": at, "arrival": at, "time": MICROS + at, "journal_offset": at} for at in (3, 4)
    ]
    runs = [{"node": "n", "run": "a", "journal_offset": 0, "kind": "began", "epoch": 1}]
    sums = sum_messages(frame(spark, MESSAGES, messages))
    said = collect(list_runs(frame(spark, RUNS, runs)))
    records = know_runs(spark, collect(list_ends(sums)), said)
    sums.unpersist()
    assert [tuple(row) for row in records.lines.collect()] == [("n", "a", "a", 4, 1)]
    assert [tuple(row)[:5] for row in records.ends.collect()] == [("n", "a", 3, 3, 4)]
    newest = records.landed.selectExpr("unix_micros(landed_to) as at").collect()
    assert [row.at for row in newest] == [MICROS + 4]
    assert records.excuses.collect() == []
