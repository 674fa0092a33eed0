"""Reads what the report needs out of the tables' files, without Spark: gold is small, and of bronze only times are
counted.

Invariant: memory does not grow with the number of rows; a table that is not there is an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from ..delta.log import open_table
from ..errors import TableMissing
from ..tables import TABLES

Row = dict[str, Any]
ROWS_MAX = 200_000


class Tables:
    """The tables of a lake, from a time on."""

    def __init__(self, folder: Path, since: datetime, until: datetime) -> None:
        self._folder, self.since, self.until = folder, since, until

    def rows(self, name: str, time: str, columns: list[str] | None = None) -> list[Row]:
        """The rows whose `time` is in the report's, at most ROWS_MAX of them."""
        rows: list[Row] = []
        for batch in self._batches(name, time, columns):
            rows += batch.to_pylist()
            if len(rows) > ROWS_MAX:
                return rows[:ROWS_MAX]
        return rows

    def count_over_time(self, name: str, step_s: int) -> dict[int, int]:
        """How many rows of a table of the journal fall into each step, by its beginning in Unix seconds."""
        counts: dict[int, int] = {}
        for batch in self._batches(name, "time", ["time"]):
            seconds = batch.column("time").cast(pa.int64()).to_numpy(zero_copy_only=False) // 1_000_000
            for start, count in zip(*np.unique(seconds // step_s * step_s, return_counts=True), strict=True):
                counts[int(start)] = counts.get(int(start), 0) + int(count)
        return counts

    def newest(self) -> tuple[datetime | None, datetime | None]:
        """The first and last time of a message or a delivery in the report's time."""
        first: datetime | None = None
        last: datetime | None = None
        for name in ("bronze.messages", "bronze.deliveries"):
            for batch in self._batches(name, "time", ["time"]):
                ends = pc.min_max(batch.column("time")).as_py()
                if ends["min"] is not None:
                    first = min(first or ends["min"], ends["min"])
                    last = max(last or ends["max"], ends["max"])
        return first, last

    def _batches(self, name: str, time: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        path = self._folder.joinpath(*TABLES[name].name.split("."))
        if not (path / "_delta_log").is_dir():
            return
        try:
            data = open_table(str(path)).to_pyarrow_dataset()
            field = data.schema.field(time).type
            since, until = (pa.scalar(each, pa.timestamp("us", "UTC")).cast(field) for each in (self.since, self.until))
            wanted = (pc.field(time) >= since) & (pc.field(time) < until)
            yield from data.to_batches(columns=columns, filter=wanted, batch_size=65_536)
        except (DeltaError, OSError, pa.ArrowException) as error:  # its log or its files were touched by hand
            raise TableMissing(f"{name} cannot be read: {str(error).strip().splitlines()[0]}") from error
