"""How a stream's results get into a table that is read meanwhile: each batch's changed rows by their key. A batch that is done
again gives the same rows, and they change nothing; it is never left out, for Spark wants all of its plan to have run.
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
