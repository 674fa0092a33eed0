"""The same transform over the same rows as a stream: some files, one a batch, results merged by their key as the
tables do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.pipelines.transforms.rows import frame

Rows = Sequence[Mapping[str, Any]]


def stream_of(spark: SparkSession, folder: Path, schema: StructType, batches: Iterable[Rows]) -> DataFrame:
    """A stream that brings one of `batches` at a time."""
    for number, rows in enumerate(batches):
        frame(spark, schema, rows).coalesce(1).write.parquet(str(folder / f"{number:02}"))
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/*")


def merged(stream: DataFrame, key: Sequence[str], folder: Path, columns: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """What a table would hold in the end, sorted."""
    names = list(columns) or stream.columns
    kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def merge(rows: DataFrame, _: int) -> None:
        for row in rows.collect():
            kept[tuple(row[name] for name in key)] = tuple(row[name] for name in names)

    run(stream, merge, folder)
    return sorted(kept.values())


def run(stream: DataFrame, write: Callable[[DataFrame, int], None], folder: Path) -> None:
    query = (
        stream.writeStream.outputMode("update")
        .foreachBatch(write)
        .option("checkpointLocation", str(folder / "checkpoint"))
    )
    query.trigger(availableNow=True).start().awaitTermination(120)


def collected(rows: DataFrame, columns: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """A batch's rows, sorted."""
    return sorted(tuple(row) for row in rows.select(*(columns or rows.columns)).collect())
