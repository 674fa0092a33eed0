"""If rows of deliveries or access never landed, nothing is invented; the other rows are audited as usual."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, RUNS
from godwit_pipelines.schemas import MESSAGES as MESSAGES_OF
from godwit_pipelines.transforms import torn
from godwit_pipelines.transforms.audit import audited as judged
from godwit_pipelines.transforms.torn import find_torn
from tests.pipelines.transforms.audited import Audited, Scene, read_faults, run_audit, scene_of
from tests.pipelines.transforms.checker import MICROS, Case, Found, Row, draw_case, find
from tests.pipelines.transforms.rows import frame

CASES, SEED, SECOND = 200, 41, 1_000_000


def lose_rows(cases: list[Case], lots: random.Random) -> tuple[list[Case], set[int]]:
    """The cases without some stretches of the rows of all of them, which are numbered as they would have come; and what is lost."""
    rows = sorted(((at, case.number) for case in cases for at in range(len(case.rows))), key=lambda row: row)
    offsets = {row: offset for offset, row in enumerate(rows)}
    begins = [lots.randrange(1, len(rows) - 1) for _ in range(8)]
    lost = {offset for begin in begins for offset in range(begin, min(begin + lots.choice((1, 3, 25)), len(rows) - 1))}
    left = list[Case]()
    for case in cases:
        fields = [row | {"journal_offset": offsets[at, case.number]} for at, row in enumerate(case.rows)]
        left.append(replace(case, rows=[row for row in fields if row["journal_offset"] not in lost]))
    return left, lost


def pieces_of(case: Case, lost: set[int]) -> list[Case]:
    """A case cut wherever rows are lost and it does not go on where it stood."""
    pieces = list[Case]()
    for before, row in zip([None, *case.rows], case.rows, strict=False):
        if before is None or (
            lost & {*range(before["journal_offset"], row["journal_offset"])} and not goes_on(case, before, row)
        ):  # type: ignore[call-overload]  # a checker's rows hold anything
            pieces.append(replace(case, rows=[]))
        pieces[-1].rows.append(row)
    return pieces


def goes_on(case: Case, before: Row, row: Row) -> bool:
    kind = "arrival" if case.is_pattern else "sequence"
    term, at = (
        (row["epoch"], row["arrival_run"]),
        row[f"to_{kind}"] if row["confirmed"] else int(str(row[f"from_{kind}"])) - 1,
    )
    places = case.published[int(str(row["epoch"] or str(row["arrival_run"])[1:]))]
    is_same = term == (before["epoch"], before["arrival_run"])
    return is_same and bisect_right(places, at) == bisect_right(places, before[f"to_{kind}"])  # type: ignore[type-var]  # as above


def check_torn(spark: SparkSession, cases: list[Case], lots: random.Random) -> Counter[str]:
    left, lost = lose_rows(cases, lots)
    audited = run_audit(spark, {"drawn": scene_of(left)}, is_torn=True)
    found = read_faults(audited.faults["drawn"])
    verdicts = {row.selector: row.verdict for row in audited.verdicts["drawn"]}
    for case in left:
        pieces = pieces_of(case, lost)
        expected: Found = sum((find(piece) for piece in pieces), Counter())
        assert found.get(case.number, Counter()) == expected, (case, pieces)
        if case.rows and len(pieces) > 1:
            is_broken = any(not declared for _, _, declared in expected)
            assert verdicts[case.selector] == ("broken" if is_broken else "unproven"), case
    return Counter(verdicts.values())


def draw_cases(lots: random.Random) -> list[Case]:
    """Of no case that subscribes twice: a piece of it would have to know of both."""
    return [case for case in (draw_case(number, lots) for number in range(1, CASES + 1)) if not case.access]


def test_what_is_left_of_torn_subscriptions_is_judged_piece_by_piece(spark: SparkSession) -> None:
    lots = random.Random(SEED)
    verdicts = check_torn(spark, draw_cases(lots), lots)
    assert min(verdicts[each] for each in ("broken", "unproven", "reported", "proven")) > 2


@pytest.mark.long
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_torn_subscriptions_are_judged_in_many_more(spark: SparkSession, seed: int) -> None:
    lots = random.Random(seed)
    check_torn(spark, draw_cases(lots), lots)


def handed(offset: int, first: int, last: int, **fields: Any) -> dict[str, Any]:
    place = {"from_sequence": first, "to_sequence": last, "epoch": 1, "count": last - first + 1, "gap_count": 0}
    whose = {"run": "a", "connection": 1, "selector": "/x", "journal_offset": offset, "time": MICROS + offset * SECOND}
    return {**whose, **place, **fields}


def heard(offset: int, second: float, **fields: Any) -> dict[str, Any]:
    whose = {"run": "a", "connection": 1, "selector": "/x", "kind": "subscribed"}
    return {**whose, "journal_offset": offset, "time": MICROS + int(second * SECOND), **fields}


MESSAGES = [
    {"run": "a", "subject": "/x", "epoch": 1, "sequence": n, "arrival": n, "journal_offset": n - 1}
    for n in range(1, 21)
]
TWICE = [handed(0, 1, 8), handed(1, 9, 12), handed(2, 3, 9), handed(3, 10, 20)]
"""Handed over from 3 on again, as by a second subscription."""
ACCESS_ROWS = [heard(0, -1), heard(1, 0.5, connection=7), heard(2, 1.5), heard(3, 2.5, connection=7)]


@pytest.fixture(scope="module")
def audited(session: SparkSession) -> Audited:
    def scene(deliveries: list[dict[str, Any]], access: list[dict[str, Any]]) -> Scene:
        return Scene(deliveries, MESSAGES, access=access)

    elsewhere = [heard(offset, second, connection=7) for offset, second in ((0, 0), (1, 0.2), (3, 0.8), (4, 1.2))]
    scenes = {
        "heard": scene(TWICE, ACCESS_ROWS),
        "unheard": scene(TWICE, [row for row in ACCESS_ROWS if row["journal_offset"] != 2]),
        "nothing missing": scene(TWICE, [row for row in ACCESS_ROWS if row["journal_offset"] < 2]),
        "missing elsewhere": scene(TWICE, elsewhere),
        "twice torn": scene(
            [row | {"journal_offset": row["journal_offset"] * 2} for row in (TWICE[0], TWICE[2], TWICE[3])],
            ACCESS_ROWS[:2],
        ),
        "first one unheard": scene(TWICE, [row for row in ACCESS_ROWS if row["journal_offset"]]),
        "within a moment": scene(
            [handed(0, 1, 3, time=MICROS), handed(1, 10, 12, time=MICROS + 1), handed(2, 13, 20)],
            [heard(0, -1), heard(1, 0, time=MICROS + 1)],
        ),
        "within a moment, in milliseconds": scene(
            [handed(0, 1, 3, time=MICROS), handed(1, 4, 5, time=MICROS + 1000), handed(2, 10, 12)],
            [heard(0, -1), heard(1, 0, time=MICROS + 1000)],
        ),
        "another epoch": scene([handed(0, 1, 8), handed(2, 1, 4, epoch=2), handed(4, 9, 12)], []),
    }
    return run_audit(session, scenes, is_torn=True)


def fields(audited: Audited, scene: str) -> tuple[str, list[str], list[tuple[int, int, int]]]:
    """The verdict, the undeclared faults, and each chain with its first place and what it may be about."""
    (verdict,) = audited.verdicts[scene]
    chains = sorted((row.chain, row.from_place, row.erased) for row in audited.ranges[scene])
    return verdict.verdict, [row.kind for row in audited.faults[scene] if not row.declared], chains


def test_a_second_subscription_begins_within_the_moment_of_the_first_ones_end(audited: Audited) -> None:
    for scene in ("within a moment", "within a moment, in milliseconds"):
        assert fields(audited, scene) == ("proven", [], [(1, 1, 0), (2, 10, 0)]), scene


def test_a_second_subscription_of_which_nothing_landed_makes_no_repeat(audited: Audited) -> None:
    assert fields(audited, "heard") == ("proven", [], [(1, 1, 0), (2, 3, 0)])
    assert fields(audited, "unheard") == ("unproven", [], [(0, 1, 0), (1, 3, 7)])
    assert fields(audited, "first one unheard") == ("proven", [], [(0, 1, 0), (1, 3, 0)])
    broken = ("broken", ["repeat", "repeat"], [(0, 1, 0)])
    assert fields(audited, "nothing missing") == fields(audited, "missing elsewhere") == broken


def test_chains_are_numbered_across_tears_and_what_comes_back_behind_one_is_no_fault(audited: Audited) -> None:
    assert fields(audited, "twice torn") == (
        "unproven",
        [],
        [(0, 1, 0), (1, 3, 7)],
    )  # the last row goes on where its chain stood
    assert fields(audited, "another epoch") == ("unproven", [], [(0, 1, 0), (1, 1, 4), (2, 9, 4)])


def test_rows_that_are_not_there_are_asked_for_whatever_the_fault_is_that_they_look_like(spark: SparkSession) -> None:
    """A reported gap of five is used for the five messages before the row, so that its own range looks like a hole."""
    deliveries = frame(spark, DELIVERIES, [handed(0, 1, 5), handed(2, 11, 20, count=5, gaps=1, gap_count=5)])
    messages, access, runs = frame(spark, MESSAGES_OF, MESSAGES), frame(spark, ACCESS, []), frame(spark, RUNS, [])
    for find_missing, verdict in ((None, "broken"), (lambda: find_torn(deliveries, access, runs, {}, {}), "unproven")):
        with judged(deliveries, messages, access, runs, None, find_missing) as found:
            assert [row.verdict for row in found.verdict.collect()] == [verdict]
            assert found.faults.filter("not declared").count() == int(verdict == "broken")


def test_rows_that_were_erased_tear_nothing(spark: SparkSession) -> None:
    deliveries, access = frame(spark, DELIVERIES, [handed(0, 1, 8), handed(3, 9, 12)]), frame(spark, ACCESS, [])
    runs = frame(spark, RUNS, [])
    for run in ("a", ""):  # an older version kept no runs
        assert find_torn(deliveries, access, runs, {"": {run: [(1, 3)]}}, {}) is None
    found = find_torn(deliveries, access, runs, {"": {"a": [(1, 2)], "b": [(2, 3)]}}, {})
    assert found
    assert [(row.not_landed, row.unheard) for row in found.collect()] == [([(2, 3)], [])]


def test_more_stretches_than_can_be_held_become_fewer_that_are_wider(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torn, "_MOST", 2)
    deliveries = frame(spark, DELIVERIES, [handed(offset, 1, 1) for offset in (0, 2, *range(4, 41), 42, 44)])
    found = find_torn(deliveries, frame(spark, ACCESS, []), frame(spark, RUNS, []), {}, {})
    assert found
    assert [[tuple(each) for each in row.not_landed] for row in found.collect()] == [[(1, 4), (41, 44)]]


def test_rows_of_a_journal_that_began_anew_hide_none_that_are_missing_of_another(spark: SparkSession) -> None:
    """Where each has offsets from 0 on, those of one are no account of the other's: neither for rows nor for who is torn."""
    rows = [handed(0, 1, 8), handed(3, 12, 16), *(handed(offset, 1, 1, run="b") for offset in range(6))]
    access, runs = frame(spark, ACCESS, []), frame(spark, RUNS, [])
    found = find_torn(frame(spark, DELIVERIES, rows), access, runs, {}, {})
    assert found and [(row.run, row.not_landed) for row in found.collect()] == [("a", [(1, 3)])]


def test_a_hole_over_several_runs_is_of_those_in_the_middle_too(spark: SparkSession) -> None:
    """The middle run has deliveries, and no row of its access landed."""
    began = [
        {"run": run, "journal_offset": at, "kind": "began", "follows_run": follows, "time": MICROS + at}
        for at, (run, follows) in enumerate((("a", None), ("b", "a"), ("c", "b")))
    ]
    deliveries = frame(spark, DELIVERIES, [handed(at, at + 1, at + 1, run=run) for at, run in enumerate("abc")])
    access = frame(spark, ACCESS, [heard(0, 0), heard(3, 3, run="c")])
    found = find_torn(deliveries, access, frame(spark, RUNS, began), {}, {})
    assert found
    unheard = [(MICROS, MICROS + 3 * SECOND + 1)]
    assert [(row.run, row.not_landed, row.unheard) for row in found.collect()] == [(run, [], unheard) for run in "abc"]
