"""Audits for tests: scenes, each a node of its own and all of them judged by one audit, folded first or not.

Planning an audit costs far more than running it over some hundred rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, MESSAGES, RUNS
from godwit_pipelines.transforms.audit import conclude, conclude_folded, judge
from godwit_pipelines.transforms.faults import find_faults
from godwit_pipelines.transforms.folding import fold, list_again
from godwit_pipelines.transforms.published import know_published, sum_messages
from godwit_pipelines.transforms.runs import collect, list_ends, list_runs
from godwit_pipelines.transforms.torn import find_torn
from tests.pipelines.transforms.checker import Case, Found, message_rows
from tests.pipelines.transforms.rows import frame

Rows = Sequence[Mapping[str, Any]]


@dataclass
class Scene:
    """A node's journal; the node has the scene's name."""

    deliveries: Rows
    messages: Rows
    runs: Rows = ()
    access: Rows = ()
    erased: Rows = ()
    """Messages that were erased, row by row; of `messages` they are none."""


def scene_of(cases: list[Case]) -> Scene:
    rows = [row for case in cases for row in case.rows]
    heard = (row for case in cases for row in case.access)
    access = [{**row, "journal_offset": offset} for offset, row in enumerate(heard)]
    return Scene(rows, [row for case in cases for row in message_rows(case)], access=access)


@dataclass
class Audited:
    """What one audit found, by scene."""

    faults: dict[str, list[SparkRow]]
    verdicts: dict[str, list[SparkRow]]
    ranges: dict[str, list[SparkRow]]


def run_audit(
    spark: SparkSession, scenes: dict[str, Scene], *, is_folded: bool = True, is_torn: bool = False
) -> Audited:
    def rows(name: str) -> Rows:
        return [{**row, "node": node} for node, scene in scenes.items() for row in getattr(scene, name)]

    deliveries, messages, runs = rows("deliveries"), rows("messages"), rows("runs")
    began, access = frame(spark, RUNS, runs), frame(spark, ACCESS, rows("access"))
    published = frame(spark, MESSAGES, messages)
    sums = sum_messages(published)
    gone = [
        {"journal_offset": 0, "rows": 1, **{name: row[name] for name in ("node", "run", "epoch", "arrival")}}
        for row in rows("erased")
    ]
    erased = spark.createDataFrame(
        gone, "node string, run string, epoch long, journal_offset long, arrival long, rows long"
    )
    said, ends = collect(list_runs(began)), collect(list_ends(sums))
    known = know_published(published, sums, said, ends, erased if gone else None)
    handed = frame(spark, DELIVERIES, deliveries)
    again = list_again(handed, access)
    folded = fold(handed, sums, again) if is_folded else None
    rest, counts = (folded.rest, folded.counts) if folded else (handed, True)
    # what follows is planned from its rows: half the time of this file
    torn = find_torn(handed, access, began, {}, {}) if is_torn else None
    if folded and folded.is_whole:
        found = conclude_folded(folded)
    else:
        judged = judge(rest, known, again, counts=counts, torn=torn).localCheckpoint()
        found = conclude(judged, find_faults(judged), folded)
    sums.unpersist()
    kept = [{node: list[SparkRow]() for node in scenes} for _ in range(3)]
    for by_node, expected in zip(kept, (found.faults, found.verdict, found.ranges), strict=True):
        for row in expected.collect():
            by_node[row.node].append(row)
    if folded:
        folded.release()
    return Audited(*kept)


def read_faults(rows: list[SparkRow]) -> dict[int, Found]:
    found: dict[int, Found] = {}
    for row in rows:
        found.setdefault(row.connection, Counter())[row.journal_offset, row.kind, row.declared] += row.messages
    return found
