"""Costs that were put into statistics are found again."""

from __future__ import annotations

import random
from pathlib import Path

from pyspark.sql import SparkSession

from godwit_pipelines.schemas import STATS
from godwit_pipelines.transforms.capacity import fit_costs, forecast, loads, nodes_needed
from tests.pipelines.transforms.rows import frame
from tests.pipelines.transforms.streaming import collected, merged, stream_of


def test_a_line_is_recovered_within_5_percent(spark: SparkSession) -> None:
    lots = random.Random(3)
    rows = []
    for minute in range(200):
        connections, delivered = lots.randint(1_000, 9_000), lots.randint(1_000, 90_000)
        values = {
            **{"connections": connections, "messages_out_per_second": delivered, "messages_in_per_second": 10},
            **{
                "memory_bytes": 5e7 + connections * 400 * lots.uniform(0.98, 1.02),
                "cpu": 0.05 + delivered * 5e-6 * lots.uniform(0.98, 1.02),
            },
        }
        at = 1_795_250_000_000_000 + minute * 60_000_000
        rows += [
            {"node": "n", "time": at, "metric": name, "scope": "node", "window_name": "now", "value": float(value)}
            for name, value in values.items()
        ]
    minutes = loads(frame(spark, STATS, rows)).persist()
    costs = fit_costs(minutes)
    found = costs.first()
    assert (
        found is not None
        and abs(found.bytes_per_connection / 400 - 1) < 0.05
        and abs(found.cpu_us_per_delivery / 5 - 1) < 0.05
    )
    needed = nodes_needed(costs, 1_000_000, 400_000, cores=1, memory_bytes=2**31).first()
    assert needed is not None and needed.nodes == 4  # cpu: 400,000 × 5 us = 2 cores of the 0.65 that one may give
    assert sum(row.weeks for row in forecast(minutes).collect()) == 4  # 200 minutes touch four hours


def test_loads_are_the_same_as_a_batch_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    def row(second: int, name: str, value: float | None, **fields: str) -> dict[str, object]:
        time = 1_795_250_040_000_000 + second * 1_000_000
        return {
            "node": "n",
            "time": time,
            "metric": name,
            "scope": "node",
            "window_name": "now",
            "value": value,
            **fields,
        }

    batches = [
        [row(0, "connections", 4.0), row(70, "connections", 8.0), row(10, "cpu", 0.5)],
        [row(30, "connections", 2.0), row(71, "cpu", 0.25), row(5, "cpu", 9.0, window_name="5m"), row(6, "cpu", None)],
    ]
    expected = collected(loads(frame(spark, STATS, [each for rows in batches for each in rows])))
    assert [found[2:4] for found in expected] == [(3.0, 0.5), (8.0, 0.25)]
    stream = stream_of(spark, tmp_path / "stats", STATS, batches)
    assert merged(loads(stream), ("node", "minute"), tmp_path) == expected
