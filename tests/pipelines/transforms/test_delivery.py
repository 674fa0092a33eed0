"""Windows, roll-ups and error budgets: exact where they are counts, within a bucket where they are times."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from godwit_pipelines.schemas import DELIVERIES, LATENCY
from godwit_pipelines.transforms.delivery import COUNTS, KEY, burn_rates, delivery_windows, read_latency, roll_up
from tests.pipelines.transforms.rows import frame
from tests.pipelines.transforms.streaming import collected, merged, stream_of

BEGIN = 1_795_250_000_000_000
SECOND = 1_000_000
Row = dict[str, Any]
SHOWN = (*KEY, *COUNTS, "buckets")


def delivery(offset: int, at_s: float, **fields: Any) -> Row:
    row = {
        "node": "n",
        "run": "a",
        "journal_offset": offset,
        "time": BEGIN + int(at_s * SECOND),
        "connection": 1,
        "selector": "/a",
    }
    return {**row, "count": 10, "bytes": 100, "gap_count": 0, **fields}


def latency(offset: int, at_s: float, buckets: list[int]) -> Row:
    row = {
        "node": "n",
        "journal_offset": offset,
        "time": BEGIN + int(at_s * SECOND),
        "selector": "/a",
        "count": sum(buckets),
    }
    return row | {"buckets": buckets}


GOLDEN = [
    [delivery(0, 1), delivery(1, 12, connection=2), delivery(2, 13, connection=3, gaps=1, gap_count=4)],
    [delivery(1, 12, connection=2), delivery(4, 25), delivery(3, 2, selector="/b", count=7)],  # one again, one late
    [delivery(5, 14, conflated=5), delivery(4, 25), delivery(6, 26, confirmed=True, count=0)],  # late, again, confirmed
]
TIMES = [[latency(0, 10, [0, 4, 6])], [latency(1, 15, [0, 0, 0, 10]), latency(0, 10, [0, 4, 6])], []]


def test_late_repeated_and_unordered_rows_make_the_same_windows_as_a_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    every = [row for rows in GOLDEN for row in rows]
    batch = delivery_windows(
        frame(spark, DELIVERIES, every), frame(spark, LATENCY, [row for rows in TIMES for row in rows])
    )
    expected = collected(batch, SHOWN)
    assert [(row[3], *row[4:10]) for row in expected] == [
        ("/a", 10, 100, 0, 0, 0, 0),
        ("/b", 7, 100, 0, 0, 0, 0),
        ("/a", 30, 300, 5, 1, 4, 20),
        ("/a", 10, 100, 0, 0, 0, 0),
    ]
    assert expected[2][10][:5] == [0, 4, 6, 10, 0]
    deliveries = stream_of(spark, tmp_path / "deliveries", DELIVERIES, GOLDEN)
    times = stream_of(spark, tmp_path / "latency", LATENCY, TIMES)
    assert merged(delivery_windows(deliveries, times), KEY, tmp_path, SHOWN) == expected


@pytest.mark.parametrize("may_repeat", [True, False])
def test_a_stream_of_few_rows_makes_none_of_another_late(spark: SparkSession, tmp_path: Path, may_repeat: bool) -> None:
    hours = [[delivery(hour, hour * 3_600)] for hour in range(6)]
    ahead = [[latency(hour, hour * 3_600, [0, 1]) for hour in range(6)], *([] for _ in range(5))]
    every = [row for rows in hours for row in rows]
    batch = delivery_windows(frame(spark, DELIVERIES, every), frame(spark, LATENCY, ahead[0]))
    deliveries = stream_of(spark, tmp_path / "deliveries", DELIVERIES, hours)
    times = stream_of(spark, tmp_path / "latency", LATENCY, ahead)
    found = delivery_windows(deliveries, times, may_repeat=may_repeat)
    assert merged(found, KEY, tmp_path, SHOWN) == collected(batch, SHOWN)


def test_rolling_up_twice_is_rolling_up_once(spark: SparkSession) -> None:
    lots = random.Random(1)
    rows = [
        delivery(n, lots.uniform(0, 7_200), connection=lots.randint(1, 500), count=lots.randint(1, 9))
        for n in range(2_000)
    ]
    times = [
        latency(n, lots.uniform(0, 7_200), [lots.randint(0, 9) for _ in range(lots.randint(1, 40))]) for n in range(300)
    ]
    windows = delivery_windows(frame(spark, DELIVERIES, rows), frame(spark, LATENCY, times)).localCheckpoint()
    direct = roll_up(windows, "1 hour")
    stepwise = collected(roll_up(roll_up(windows, "1 minute"), "1 hour"), SHOWN)
    assert stepwise == collected(direct, SHOWN)
    assert sum(row[SHOWN.index("messages")] for row in stepwise) == sum(row["count"] for row in rows)
    reach = read_latency(roll_up(windows, "1 day")).first()
    assert reach is not None and abs(reach.reach - len({row["connection"] for row in rows})) <= 10  # 2 % of 500


def test_percentiles_are_within_their_bucket(spark: SparkSession) -> None:
    lots = random.Random(2)
    times = sorted(int(lots.lognormvariate(6, 1.5)) for _ in range(5_000))
    buckets = [0] * 40
    for each in times:
        buckets[each.bit_length()] += 1
    found = read_latency(
        delivery_windows(frame(spark, DELIVERIES, []), frame(spark, LATENCY, [latency(0, 1, buckets)]))
    ).first()
    assert found is not None
    for q, computed in ((0.5, found.p50_us), (0.95, found.p95_us), (0.99, found.p99_us)):
        exact = times[int(q * len(times))]
        assert exact / 2 <= computed <= exact * 2


def test_a_budget_burns_as_fast_as_deliveries_are_late_or_missing(spark: SparkSession) -> None:
    slow = [0] * 20 + [1]  # above half a second
    rows = [latency(n, 60 * n, [0, 999]) for n in range(5)] + [latency(9, 301, [0, 979] + [0] * 18 + [20])]
    handed = [delivery(n, 60 * n, count=999) for n in range(5)]
    handed += [delivery(8, 301, count=2_000), delivery(9, 302, gaps=1, gap_count=1_000, count=0)]
    windows = delivery_windows(frame(spark, DELIVERIES, handed), frame(spark, LATENCY, [*rows, latency(10, 302, slow)]))
    last = burn_rates(windows, 65_536, 0.99).orderBy(F.desc("minute")).first()
    assert last is not None and last.total == 3_000 and last.good == 1_958  # 979 of 1,000 that were timed
    assert abs(last.burn_5m - (1_042 / (4 * 999 + 3_000)) / 0.01) < 1e-6  # the last five minutes


def test_each_tenant_burns_its_own_budget_though_nodes_time_for_all(spark: SparkSession) -> None:
    handed = [
        *(delivery(0, 1, tenant="a", count=900), delivery(1, 2, tenant="b", count=100, gaps=1, gap_count=25)),
        *(delivery(2, 3, tenant="b", selector="/b", count=50), delivery(3, 4, tenant="c", selector="/c", count=7)),
    ]
    times = [latency(0, 10, [0, 90] + [0] * 18 + [10]), latency(1, 10, [0, 5]) | {"selector": "/b"}]
    burned = burn_rates(delivery_windows(frame(spark, DELIVERIES, handed), frame(spark, LATENCY, times)), 65_536, 0.9)
    computed = {row.tenant: (row.good, row.total, round(row.burn_1h, 6)) for row in burned.collect()}
    assert computed == {"a": (810, 900, 1.0), "b": (140, 175, 2.0), "c": (7, 7, 0.0)}
