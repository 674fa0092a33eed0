"""Duplicate rows count once; rows of two runs with the same offset are two rows."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, LATENCY, MESSAGES
from godwit_pipelines.transforms.delivery import delivery_windows
from godwit_pipelines.transforms.repeats import drop_repeats
from godwit_pipelines.transforms.replay import replay_messages
from godwit_pipelines.transforms.usage import usage
from tests.pipelines.transforms.rows import frame

TWICE = [("a1", 7), ("a1", 7), ("b2", 7)]
"""The journal began anew after its first run; a row of that came twice."""


def rows(**fields: Any) -> list[dict[str, Any]]:
    return [{"node": "n", "run": run, "journal_offset": offset, "subject": "/a", **fields} for run, offset in TWICE]


def test_a_row_is_known_by_its_node_run_and_offset(spark: SparkSession) -> None:
    assert drop_repeats(frame(spark, MESSAGES, rows())).count() == 2


def test_what_is_used_counts_rows_of_each_run(spark: SparkSession) -> None:
    none = frame(spark, ACCESS, [])
    sums = usage(frame(spark, MESSAGES, rows()), frame(spark, DELIVERIES, rows(count=5)), none).collect()
    assert [(row.in_messages, row.out_messages) for row in sums] == [(2, 10)]


def test_what_is_delivered_counts_rows_of_each_run(spark: SparkSession) -> None:
    found = delivery_windows(frame(spark, DELIVERIES, rows(count=5)), frame(spark, LATENCY, [])).collect()
    assert [row.messages for row in found] == [10]


def test_a_replay_publishes_messages_of_each_run_though_their_sequences_are_the_same(spark: SparkSession) -> None:
    chosen = frame(spark, MESSAGES, rows(epoch=1, sequence=3))
    assert replay_messages(chosen, "again").select("key").distinct().count() == 2
