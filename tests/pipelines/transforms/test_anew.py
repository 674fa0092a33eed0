"""A recreated journal, and one whose first messages retention deleted: each is audited by its own history."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from tests.pipelines.transforms.audited import Scene, run_audit
from tests.pipelines.transforms.checker import MICROS


def handed(run: str, offset: int, first: int, last: int, count: int) -> dict[str, Any]:
    whose = {"run": run, "connection": 1, "selector": "/*", "is_pattern": True, "arrival_run": run, "gap_count": 0}
    place = {"from_arrival": first, "to_arrival": last, "count": count}
    return {**whose, **place, "journal_offset": offset, "time": MICROS + offset}


def test_what_a_journal_let_go_of_is_not_judged_by_another_that_has_its_beginning(spark: SparkSession) -> None:
    runs = [{"run": run, "kind": "began", "journal_offset": 0, "time": MICROS + at} for at, run in enumerate("zab")]

    def published(run: str, first: int, next: int) -> list[dict[str, Any]]:
        place = {"run": run, "subject": "/x", "epoch": ord(run), "time": MICROS}
        return [{**place, "sequence": at + 1, "arrival": at + 1, "journal_offset": at} for at in range(first, next)]

    messages = published("a", 50, 60) + published("b", 0, 20)
    scenes = {
        "let go": Scene([handed("a", 0, 1, 60, 60), handed("b", 1, 1, 20, 20)], messages, runs),
        "short": Scene([handed("a", 0, 51, 60, 8), handed("b", 1, 1, 20, 20)], messages, runs),
        "unknown": Scene([handed("z", 0, 1, 60, 60), handed("b", 1, 1, 20, 20)], messages, runs),
    }
    audited = run_audit(spark, scenes, is_folded=False)
    found = {name: [(row.kind, row.messages) for row in audited.faults[name] if not row.declared] for name in scenes}
    assert found == {"let go": [], "short": [("hole", 2)], "unknown": []}
