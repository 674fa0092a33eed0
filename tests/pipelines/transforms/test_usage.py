"""The usage of all tenants adds up to the recorded total."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.schemas import ACCESS, DELIVERIES, MESSAGES
from godwit_pipelines.transforms.usage import COUNTS, usage
from tests.pipelines.transforms.rows import frame
from tests.pipelines.transforms.streaming import collected, merged, stream_of

BEGIN = 1_795_248_000_000_000  # a whole hour
HOUR = 3_600_000_000


def test_usage_is_the_sum_of_the_journal_as_batch_and_as_stream(spark: SparkSession, tmp_path: Path) -> None:
    def row(offset: int, at: float, tenant: str) -> dict[str, object]:
        return {"node": "n", "journal_offset": offset, "time": BEGIN + int(at * HOUR), "tenant": tenant}

    messages = [
        [row(n, n / 10, "ab"[n % 2]) | {"content": b"x" * n} for n in range(8)],
        [row(3, 0.3, "b") | {"content": b"xxx"}],
    ]
    deliveries = [
        [row(n, n / 10, "a") | {"count": 5, "bytes": 50} for n in range(6)],
        [row(6, 0.1, "a") | {"count": 1, "bytes": 9}],
    ]
    access = [
        [row(0, 0.5, "a") | {"kind": "connected"}],
        [row(1, 0.6, "a") | {"kind": "refused"}, row(2, 0.7, "a") | {"kind": "subscribed"}],
    ]
    whole = ((MESSAGES, messages), (DELIVERIES, deliveries), (ACCESS, access))
    expected = collected(
        usage(*(frame(spark, schema, [one for rows in batches for one in rows]) for schema, batches in whole))
    )
    assert [found[1:] for found in expected] == [("a", 4, 12, 31, 309, 1, 1), ("b", 4, 16, 0, 0, 0, 0)]
    streams = (stream_of(spark, tmp_path / str(n), schema, batches) for n, (schema, batches) in enumerate(whole))
    assert merged(usage(*streams), ("hour", "tenant"), tmp_path) == expected
    assert len(COUNTS) == len(expected[0]) - 2


@pytest.mark.parametrize("may_repeat", [True, False])
def test_a_stream_of_few_rows_makes_none_of_another_late(spark: SparkSession, tmp_path: Path, may_repeat: bool) -> None:
    def row(offset: int, **fields: object) -> dict[str, object]:
        return {"node": "n", "journal_offset": offset, "time": BEGIN + offset * HOUR, "tenant": "a"} | fields

    messages = [[row(hour, content=b"x")] for hour in range(6)]
    deliveries = [[row(hour, count=5, bytes=50)] for hour in range(6)]
    access = [[row(hour, kind="connected") for hour in range(6)], *([] for _ in range(5))]
    whole = ((MESSAGES, messages), (DELIVERIES, deliveries), (ACCESS, access))
    batch = usage(*(frame(spark, schema, [one for rows in batches for one in rows]) for schema, batches in whole))
    streams = (stream_of(spark, tmp_path / str(n), schema, batches) for n, (schema, batches) in enumerate(whole))
    assert merged(usage(*streams, may_repeat=may_repeat), ("hour", "tenant"), tmp_path) == collected(batch)
