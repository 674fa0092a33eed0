"""Every hole of a table is found, between the rows on both sides of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.schemas import MESSAGES
from godwit_pipelines.transforms import holes
from godwit_pipelines.transforms.holes import find_holes
from tests.pipelines.transforms.rows import frame


def rows_of(offsets: set[int], node: str) -> list[dict[str, Any]]:
    return [{"node": node, "run": "a", "journal_offset": offset, "arrival": offset + 7} for offset in offsets]


def test_every_hole_is_found_wherever_buckets_end(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holes, "_BUCKET", 8)
    lots = random.Random(6)
    kept = {
        "few": {0, *(offset for offset in range(1, 199) if lots.random() > 0.03), 199},
        "many": {*(offset for offset in range(200) if lots.random() > 0.7)},
        "far": {3, 4, 90, 91},
        "whole": {*range(5, 100)},
        "landed twice": {*range(20), 30},
    }
    rows = [row for node, offsets in kept.items() for row in rows_of(offsets, node)]
    rows += rows_of({*range(4, 12)}, "landed twice")
    found: dict[str, list[tuple[dict[str, Any], ...]]] = {node: [] for node in kept}
    for node, before, after in find_holes(frame(spark, MESSAGES, rows), [*kept], ("arrival",), {}):
        found[node].append((before, after))
    for node, offsets in kept.items():
        order = sorted(offsets)
        ends = [pair for pair in itertools.pairwise(order) if pair[1] > pair[0] + 1]
        assert found[node] == [
            tuple({"journal_offset": at, "run": "a", "arrival": at + 7} for at in pair) for pair in ends
        ], node


def test_rows_are_held_against_those_of_their_run_and_of_the_run_before_it(spark: SparkSession) -> None:
    """A journal began anew (x), and one was put back from a copy and continued otherwise (c)."""
    runs = {"a": {*range(10), 12}, "b": {15, 16}, "c": {*range(11, 20)} - {14}, "x": {0, 1, 5}, "y": {8}}
    rows = [row | {"run": run} for run, offsets in runs.items() for row in rows_of(offsets, "n")]
    follows = {"n": {"a": None, "b": "a", "c": "a", "x": None, "w": "x", "y": "w"}}
    found = find_holes(frame(spark, MESSAGES, rows), ["n"], (), follows)
    holes_found = {
        (left["run"], left["journal_offset"], right["run"], right["journal_offset"]) for _, left, right in found
    }
    assert holes_found == {
        *(("a", 9, "a", 12), ("a", 12, "b", 15), ("c", 13, "c", 15)),
        *(("x", 1, "x", 5), ("x", 5, "y", 8)),
    }


def test_the_first_of_runs_that_say_nothing_is_the_one_whose_offsets_end_before(spark: SparkSession) -> None:
    rows = [row | {"run": run} for run, offsets in {"b": {7, 8}, "a": {0, 1}}.items() for row in rows_of(offsets, "n")]
    ((_, left, right),) = find_holes(frame(spark, MESSAGES, rows), ["n"], (), {})
    assert (left["run"], left["journal_offset"], right["run"], right["journal_offset"]) == ("a", 1, "b", 7)
