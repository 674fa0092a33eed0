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
from tests.pipelines.transforms.checker import Case, Found, draw_case, find, message_rows
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
