"""Damaged rows on their way into a table: they go to the quarantine instead, with all that is left of them.

Owns the distinction, by the column `fault`; the reader of a row decides what is wrong with it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

FAULT, NEXT, BYTES = "fault", "fault_next", "fault_bytes"
_OF_FAULT = (FAULT, NEXT, BYTES)


class Sorter:
    """Passes sound rows on without what is said of a fault, and keeps the damaged ones."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.damaged: list[dict[str, Any]] = []

    def sort(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            faults = batch.column(FAULT)
            sound = batch.select([name for name in batch.schema.names if name not in _OF_FAULT])
            if faults.null_count < len(faults):
                is_sound = pc.is_null(faults)
                damaged = numbered(batch.filter(pc.invert(is_sound)))
                self.damaged += [self.describe(row) for row in damaged.to_pylist()]
                sound = sound.filter(is_sound)
            yield sound

    def describe(self, row: dict[str, Any]) -> dict[str, Any]:
        """A damaged row as the quarantine has it."""
        left = {name: value for name, value in row.items() if name not in (*_OF_FAULT, "date")}
        return {
            "stream": self.stream,
            "node": row["node"],
            "run": row.get("run") or None,
            "journal_offset": row["journal_offset"],
            "time": row["time"],
            "next": row.get(NEXT) or row["journal_offset"] + 1,
            "bytes": row.get(BYTES),
            "fault": row[FAULT],
            "row": json.dumps(left, default=_text, ensure_ascii=False),
            "date": row.get("date") or row["time"].date(),
        }


def numbered(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times but the row's own as microseconds: a damaged one may lie outside of any calendar."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.name != "time":
            batch = batch.set_column(index, field.name, batch.column(index).view(pa.int64()))
    return batch


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else base64.b64encode(value).decode()
