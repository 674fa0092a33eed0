"""The audit finds what is wrong, all of it, and nothing else."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, MESSAGES, REIGNS
from godwit_pipelines.transforms.audit import Audit, audit
from tests.pipelines.transforms.checker import MICROS, Case, Found, draw_case, find, message_rows
from tests.pipelines.transforms.rows import frame

CASES = 250


def run_audit(spark: SparkSession, cases: list[Case]) -> Audit:
    deliveries = [row for case in cases for row in case.rows]
    messages = [row for case in cases for row in message_rows(case)]
    return audit(
        frame(spark, DELIVERIES, deliveries),
        frame(spark, MESSAGES, messages),
        frame(spark, ACCESS, []),
        frame(spark, REIGNS, []),
    )


def read_faults(faults: DataFrame) -> dict[int, Found]:
    found: dict[int, Found] = {}
    for row in faults.select("connection", "offset", "kind", "declared", "messages").collect():
        found.setdefault(row.connection, Counter())[row.offset, row.kind, row.declared] += row.messages
    return found


def across_a_restart(spark: SparkSession, *, count: int) -> list[tuple[str, int, str]]:
    """Faults where run b follows a, which ended in the midst of it all: the journal holds a's arrivals up to 6; a handed over
    two more, and a client that stood at 4 is handed 5 to 12 by b, whose own begin at 8.
    """
    reigns = [
        {"node": "n", "run": "a", "offset": 0, "kind": "began", "epoch": 1},
        {"node": "n", "run": "b", "offset": 1, "kind": "began", "epoch": 2, "follows_run": "a"}
        | {"follows_arrival": 6, "follows_clean": False},
    ]
    messages = [
        {"node": "n", "run": run, "subject": "/a/x", "epoch": epoch, "sequence": arrival, "arrival": arrival}
        for run, epoch, arrivals in (("a", 1, range(1, 7)), ("b", 2, range(8, 13)))
        for arrival in arrivals
    ]
    whose = {"node": "n", "selector": "/a/*", "is_pattern": True, "gap_count": 0}
    deliveries = [
        whose
        | {"run": "a", "connection": 1, "offset": 0, "mark_run": "a", "from_arrival": 1, "to_arrival": 8, "count": 8},
        whose | {"run": "b", "connection": 1, "offset": 1, "mark_run": "a", "to_arrival": 4, "confirmed": True},
        whose
        | {"run": "b", "connection": 1, "offset": 2, "mark_run": "b", "from_arrival": 5, "to_arrival": 12}
        | {"count": count},
    ]
    found = audit(
        frame(spark, DELIVERIES, deliveries),
        frame(spark, MESSAGES, messages),
        frame(spark, ACCESS, []),
        frame(spark, REIGNS, reigns),
    )
    return sorted((row.kind, row.messages, row.cause) for row in found.faults.collect())


def test_who_resumes_across_a_restart_is_measured_on_the_arrivals_of_both_runs(spark: SparkSession) -> None:
    cut = ("unpublished", 2, "the run was cut short")
    assert across_a_restart(spark, count=7) == [cut]
    assert across_a_restart(spark, count=6) == [("hole", 1, ""), cut]


def audit_of_what_is_left(spark: SparkSession, *, first_offset: int) -> list[tuple[str, int]]:
    """Faults where of all messages those with arrivals 6 to 12 of run b are left; run a was on its own before."""
    reigns = [
        {"node": "n", "run": run, "offset": number, "kind": "began", "epoch": number + 1, "time": MICROS}
        for number, run in enumerate("ab")
    ]
    messages = [
        {
            "node": "n",
            "run": "b",
            "subject": "/a/x",
            "epoch": 2,
            "sequence": arrival,
            "arrival": arrival,
            "time": MICROS,
        }
        | {"offset": first_offset + arrival - 6}
        for arrival in range(6, 13)
    ]
    whose = {"node": "n", "selector": "/a/*", "is_pattern": True, "gap_count": 0, "gaps": 0, "time": MICROS}
    deliveries = [
        whose
        | {"run": run, "connection": 1, "offset": number, "mark_run": run, "count": count}
        | {"from_arrival": begin, "to_arrival": end}
        for number, (run, begin, end, count) in enumerate((("a", 1, 3, 3), ("b", 1, 8, 8), ("b", 9, 12, 3)))
    ]
    frames = (frame(spark, DELIVERIES, deliveries), frame(spark, MESSAGES, messages))
    found = audit(*frames, frame(spark, ACCESS, []), frame(spark, REIGNS, reigns))
    return sorted((row.kind, row.messages) for row in found.faults.collect())


def test_what_was_handed_over_before_the_first_message_that_is_left_is_not_judged(spark: SparkSession) -> None:
    assert audit_of_what_is_left(spark, first_offset=5) == [("hole", 1)]
    assert audit_of_what_is_left(spark, first_offset=0) != [
        ("hole", 1)
    ]  # nothing was let go: those were never published


def test_what_was_handed_over_may_land_before_what_was_published(spark: SparkSession) -> None:
    reigns = [{"node": "n", "run": "a", "offset": 0, "kind": "began", "epoch": 1, "time": MICROS}]
    messages = [
        {
            "node": "n",
            "run": "a",
            "subject": "/a/x",
            "epoch": 1,
            "sequence": place,
            "arrival": place,
            "offset": place - 1,
        }
        | {"time": MICROS + place}
        for place in range(1, 7)
    ]
    whose = {"node": "n", "run": "a", "gap_count": 0, "gaps": 0, "time": MICROS + 100}
    deliveries = [
        whose
        | {"connection": 1, "selector": "/a/*", "is_pattern": True, "mark_run": "a", "offset": begin}
        | {"from_arrival": begin, "to_arrival": end, "count": end - begin + 1}
        for begin, end in ((1, 4), (5, 9))
    ]
    deliveries.append(
        whose
        | {"connection": 2, "selector": "/a/x", "is_pattern": False, "epoch": 1, "offset": 10}
        | {"from_sequence": 1, "to_sequence": 8, "count": 8}
    )
    frames = (frame(spark, DELIVERIES, deliveries), frame(spark, MESSAGES, messages))
    found = audit(*frames, frame(spark, ACCESS, []), frame(spark, REIGNS, reigns)).faults.collect()
    assert sorted((row.connection, row.kind, row.messages, row.cause) for row in found) == [
        (1, "unpublished", 3, "not landed yet"),
        (2, "unpublished", 2, "not landed yet"),
    ]


def check(spark: SparkSession, seed: int, count: int) -> None:
    lots = random.Random(seed)
    cases = [draw_case(number, lots) for number in range(1, count + 1)]
    found = read_faults(run_audit(spark, cases).faults)
    wrong = [case for case in cases if found.get(case.number, Counter()) != find(case)]
    if wrong:
        least = min(wrong, key=lambda case: len(case.rows))
        rows = "\n".join(str({k: v for k, v in row.items() if v not in (None, "")}) for row in least.rows)
        pytest.fail(
            f"{len(wrong)} of {count}; the shortest:\n{least.published}\n{rows}\nfound {found.get(least.number)}\nis {find(least)}"
        )


@settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_every_fault_is_found_and_none_is_invented(spark: SparkSession, seed: int) -> None:
    check(spark, seed, CASES)
