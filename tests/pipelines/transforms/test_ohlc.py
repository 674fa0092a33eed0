"""Bars have the first, highest, lowest and last value, for any order of rows."""

from __future__ import annotations

import json
import time
from io import StringIO
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from godwit_pipelines.jobs.job import run_to_end
from godwit_pipelines.progress import watcher
from godwit_pipelines.schemas import MESSAGES
from godwit_pipelines.tables.gold import BARS
from godwit_pipelines.transforms.ohlc import KEY, add_bars, bar_messages, bars, values
from tests.pipelines.transforms.rows import frame
from tests.pipelines.transforms.streaming import collected, merged, stream_of

BEGIN = 1_795_250_000_000_000


def tick(offset: int, at_ms: int, content: str, **fields: Any) -> dict[str, Any]:
    row = {
        "node": "n",
        "journal_offset": offset,
        "arrival": offset,
        "time": BEGIN + at_ms * 1_000,
        "subject": "/a",
        "kind": "json",
    }
    return {**row, "content": content.encode(), **fields}


GOLDEN = [
    [
        tick(0, 10, '{"p":5}'),
        tick(2, 500, '{"p":9.5}'),
        tick(9, 600, "no json"),
        tick(10, 700, '{"p":1}', kind="bytes"),
    ],
    [tick(1, 200, '{"p":2}'), tick(3, 990, '{"p":"4"}'), tick(4, 1_000, '{"p":7}'), tick(2, 500, '{"p":9.5}')],
]


def test_bars_are_the_same_as_a_batch_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    every = frame(spark, MESSAGES, [row for rows in GOLDEN for row in rows])
    expected = collected(bars(every, "1 second", "$.p"))
    assert [row[3:] for row in expected] == [("/a", 5.0, 9.5, 2.0, 4.0, 4), ("/a", 7.0, 7.0, 7.0, 7.0, 1)]
    stream = stream_of(spark, tmp_path / "messages", MESSAGES, GOLDEN)
    assert merged(bars(stream, "1 second", "$.p"), ("window_start", "node", "subject"), tmp_path) == expected


def test_bars_of_rows_that_come_once_need_not_be_remembered(spark: SparkSession, tmp_path: Path) -> None:
    once = [GOLDEN[0], GOLDEN[1][:-1]]  # the last comes again
    expected = collected(bars(frame(spark, MESSAGES, [row for rows in once for row in rows]), "1 second", "$.p"))
    found = bars(stream_of(spark, tmp_path / "messages", MESSAGES, once), "1 second", "$.p", may_repeat=False)
    assert merged(found, ("window_start", "node", "subject"), tmp_path) == expected


def test_values_that_came_too_late_are_told(spark: SparkSession, tmp_path: Path) -> None:
    values = [[tick(0, 60_000, "1")], [tick(1, 61_000, "3")], [tick(2, 0, "2"), tick(3, 51_000, "4")]]
    found = bars(stream_of(spark, tmp_path / "messages", MESSAGES, values), may_repeat=False)
    kept: list[float] = []
    writer = found.writeStream.outputMode("update").queryName("late")
    writer = writer.foreachBatch(lambda rows, _: kept.extend(row.open for row in rows.collect()))
    said, late = StringIO(), dict[str, int]()
    run_to_end(writer.option("checkpointLocation", str(tmp_path / "place")), watcher(Console(file=said), late))
    assert (kept, late) == ([1.0, 3.0, 4.0], {"late": 1})
    assert "at least 1 row arrived too late and is not counted" in " ".join(said.getvalue().split())


def test_a_clock_that_is_wrong_makes_no_other_rows_late_and_is_told(spark: SparkSession, tmp_path: Path) -> None:
    now_ms = (time.time_ns() // 1000 - BEGIN) // 1000
    day_ms = 24 * 3600 * 1000
    values = [[tick(0, 0, "1")], [tick(1, now_ms + 2 * day_ms, "9"), tick(2, 1_000, "3")], [tick(3, 2_000, "2")]]
    found = bars(stream_of(spark, tmp_path / "messages", MESSAGES, values), may_repeat=False)
    kept: list[float] = []
    writer = found.writeStream.outputMode("update").queryName("ahead")
    writer = writer.foreachBatch(lambda rows, _: kept.extend(row.open for row in rows.collect()))
    said, late = StringIO(), dict[str, int]()
    run_to_end(writer.option("checkpointLocation", str(tmp_path / "place")), watcher(Console(file=said), late))
    assert (kept, late) == ([1.0, 3.0, 2.0], {"ahead": 1})
    assert "ahead: 1 row with a future time is not counted" in " ".join(said.getvalue().split())


def test_bars_in_any_number_of_batches_are_those_of_one(spark: SparkSession) -> None:
    """Rows arrive in the order of each node's journal, some late and some twice."""
    rows = sorted(
        {row["journal_offset"]: row for rows in GOLDEN for row in rows}.values(), key=lambda row: row["journal_offset"]
    )
    ours, others = frame(spark, MESSAGES, rows), [{**row, "node": "m"} for row in rows]
    other = [frame(spark, MESSAGES, part) for part in (others[:3], others[1:5], others, others)]
    known = add_bars(values(ours, field="$.p"), frame(spark, BARS.schema, []))
    for batch in (*other, ours):
        changed = add_bars(values(batch, field="$.p"), known)
        known = known.join(changed, [*KEY], "left_anti").unionByName(changed)
        known = spark.createDataFrame(known.toArrow(), known.schema)
    assert not add_bars(values(ours, field="$.p"), known).head(1)
    expected = collected(bars(ours.unionByName(other[-1]), field="$.p"))
    assert collected(known.drop("to_offsets")) == expected
    assert [row[-1] for row in collected(known, ("node", "window_start", "to_offsets"))] == [
        {"": last} for last in (3, 4, 3, 4)
    ]


def test_a_bar_of_which_nothing_tells_what_it_counted_is_made_anew(spark: SparkSession) -> None:
    ours = frame(spark, MESSAGES, GOLDEN[0])
    before = add_bars(values(ours, field="$.p"), frame(spark, BARS.schema, [])).withColumn("to_offsets", F.lit(None))
    assert collected(add_bars(values(ours, field="$.p"), before), ("count", "to_offsets")) == [(2, {"": 2})]


def test_a_bar_counts_the_rows_of_each_run_whatever_their_offsets(spark: SparkSession) -> None:
    """The journal began anew within the window of a bar; both batches are done again after that."""
    first = frame(spark, MESSAGES, [tick(number, number, '{"p":5}', run="a1") for number in range(9)])
    anew = frame(spark, MESSAGES, [tick(number, 500 + number, f'{{"p":{number}}}', run="b2") for number in range(3)])
    known = add_bars(values(first, field="$.p"), frame(spark, BARS.schema, []))
    both = add_bars(values(anew, field="$.p"), known)
    assert collected(both, ("open", "high", "low", "close", "count")) == [(5.0, 5.0, 0.0, 2.0, 12)]
    assert collected(both, ("to_offsets",)) == [({"a1": 8, "b2": 2},)]
    for again in (first, anew):
        assert not add_bars(values(again, field="$.p"), both).head(1)


def test_a_bar_is_published_once_for_each_time_it_grows(spark: SparkSession) -> None:
    grown = [
        bar_messages(bars(frame(spark, MESSAGES, rows), "1 second", "$.p")).first()
        for rows in (GOLDEN[0], GOLDEN[0], GOLDEN[1])
    ]
    assert all(row is not None and row.subject == "/bars/1s/a" for row in grown)
    assert grown[0].key == grown[1].key != grown[2].key  # type: ignore[union-attr]  # asserted above
    assert json.loads(grown[0].content)["high"] == 9.5  # type: ignore[union-attr]  # asserted above


def test_what_json_does_not_call_a_number_has_no_bar(spark: SparkSession) -> None:
    texts = [
        "1d",
        "1F",
        "Infinity",
        "-inf",
        "NaN",
        "0x1p3",
        "1_0",
        "1e999",
        "+1",
        "01",
        ".5",
        "5.",
        "",
        '"1d"',
        "\u0661",
    ]
    numbers = {"1": 1.0, " -2.5 ": -2.5, "1e2": 100.0, "0": 0.0, '"7"': 7.0}
    rows = [(at, f"/s/{at}", text) for at, text in enumerate([*texts, *numbers])]
    messages = spark.createDataFrame(rows, "journal_offset long, subject string, text string").selectExpr(
        "'n' as node",
        "journal_offset",
        "'r' as run",
        "journal_offset as arrival",
        "subject",
        "'json' as kind",
        "binary(text) as content",
    )
    timed = messages.selectExpr("*", "timestamp_seconds(journal_offset) as time")
    assert [row["value"] for row in values(timed).orderBy("journal_offset").collect()] == list(numbers.values())
    inside = timed.selectExpr("* except (content)", "binary(concat('{\"x\":', string(content), '}')) as content")
    found = values(inside, field="$.x").collect()
    assert {row["value"] for row in found} == {1.0, -2.5, 100.0, 0.0, 7.0}
