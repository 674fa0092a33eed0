"""Merges the results of a stream into a table that is read at the same time: the changed rows of each batch, by their key.

A repeated batch gives the same rows, which change nothing. It is not skipped, because Spark requires that its whole plan runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from .job import Run

Then = Callable[[DataFrame, int], None]


def merge_stream(
    run: Run, frame: DataFrame, table: str, query: str, then: Then | None = None, also: Sequence[str] = ()
) -> None:
    """Start a query that merges the rows of `frame` that each batch changed into `table`; `then` is given them
    after that, and merges each batch into the tables `also`.
    """

    def write(rows: DataFrame, batch: int) -> None:
        changed = rows.persist()
        try:
            run.lake.merge(table, changed, app=run.app(query), batch=batch)
            if then is not None:
                then(changed, batch)
        finally:
            changed.unpersist()

    run.start(frame.writeStream.outputMode("update").foreachBatch(write), query, merges=[table, *also])
