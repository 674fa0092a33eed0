"""A replay chooses the requested messages, and each message has one key."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from godwit_pipelines.schemas import MESSAGES
from godwit_pipelines.transforms.replay import choose, preview, replay_messages
from godwit_pipelines.transforms.selector import match_subjects
from tests.pipelines.transforms.rows import frame

BEGIN = 1_795_250_000_000_000  # 2026-11-21 08:33:20


def test_what_was_asked_for_is_chosen(spark: SparkSession) -> None:
    def row(number: int, subject: str, tenant: str) -> dict[str, Any]:
        place = {"node": "n", "journal_offset": number, "sequence": number, "epoch": 1, "arrival": number}
        return {
            **place,
            "time": BEGIN + number * 1_000_000,
            "subject": subject,
            "tenant": tenant,
            "kind": "text",
            "content": b"hey",
            "flags": 4 + (number % 4 == 0),
        }

    every = frame(spark, MESSAGES, [row(n, f"/a/{n % 3}", "st"[n % 2]) for n in range(60)])
    chosen = choose(every, "/a/*", "2026-11-21 08:33:30", "2026-11-21 08:34:00", "s").persist()
    assert sorted(each.sequence for each in chosen.collect()) == list(range(10, 40, 2))
    first, again, other = (replay_messages(chosen, name, "/again") for name in ("one", "one", "two"))
    keys = [{each.key for each in one.collect()} for one in (first, again, other)]
    assert len(keys[0]) == 15 and keys[0] == keys[1] and not keys[0] & keys[2]
    assert {each.subject for each in first.collect()} == {"/again/a/0", "/again/a/1", "/again/a/2"}
    assert {(each.arrival, each.retain) for each in first.collect()} == {(n, n % 4 == 0) for n in range(10, 40, 2)}
    assert sum(each.messages for each in preview(chosen).collect()) == 15


PATTERNS = {
    "/a/*": {"/a/b", "/a/."},
    "/a/**": {"/a", "/a/b", "/a/b/c", "/a/."},
    "/*/b": {"/a/b", "/x/b", "/a\\E/b"},
    "/**": {"/a", "/a/b", "/a/b/c", "/a/.", "/x/b", "/a.b", "/a\\E/b"},
    "/$node/*": {"/$node/n"},
    "/a/.": {"/a/."},
    "/a\\E/*": {"/a\\E/b"},
    "$share/workers/a/*": {"/a/b", "/a/."},
    "$share/$x/x/b": {"/x/b"},
}


def test_patterns_hold_the_subjects_that_the_server_says(spark: SparkSession) -> None:
    subjects = sorted(set().union(*PATTERNS.values()))
    patterns = spark.createDataFrame([(one,) for one in PATTERNS], "selector string")
    found: dict[str, set[str]] = {one: set() for one in PATTERNS}
    for row in match_subjects(
        patterns, spark.createDataFrame([(one,) for one in subjects], "subject string")
    ).collect():
        found[row.selector].add(row.subject)
    assert found == PATTERNS
