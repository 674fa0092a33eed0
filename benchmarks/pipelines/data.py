"""Journals to measure with: messages of 200 random bytes, written column by column."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from godwit_pipelines.source.checksum import checksums
from godwit_pipelines.source.columns import stream_schema

SCHEMA = stream_schema("messages")
PAYLOAD_BYTES = 200


def message_batch(first: int, count: int, time_us: int, chance: np.random.Generator) -> pa.RecordBatch:
    """Messages on a thousand subjects, the times one microsecond apart."""
    offsets = np.arange(first, first + count, dtype=np.int64)
    payload = chance.integers(0, 256, count * PAYLOAD_BYTES, dtype=np.uint8).tobytes()
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * PAYLOAD_BYTES)
    columns: dict[str, Any] = {
        "node": pa.array(["node-a"] * count),
        "run": pa.array(["00c0ffee00c0ffee"] * count),
        "tenant": pa.array([""] * count),
        "journal_offset": offsets,
        "time": pa.array(time_us + np.arange(count)).cast(pa.timestamp("us", "UTC")),
        "subject": pa.array([f"/stocks/{each}" for each in (offsets % 1000).tolist()]),
        "epoch": np.ones(count, np.int64),
        "sequence": offsets // 1000 + 1,
        "arrival": offsets,
        "kind": pa.array(["bytes"] * count),
        "content": pa.Array.from_buffers(pa.binary(), count, [None, ends, pa.py_buffer(payload)]),
        "publisher": pa.array(["exchange"] * count),
        "flags": np.full(count, 5, np.int32),
    }
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else blank(field, count) for field in SCHEMA
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    return batch.set_column(SCHEMA.get_field_index("crc"), SCHEMA.field("crc"), pa.array(checksums(batch)))


def blank(field: pa.Field, count: int) -> pa.Array:
    return pa.nulls(count, field.type) if field.nullable else pa.array(np.zeros(count, np.int64)).cast(field.type)


def write_journal(data: Path, rows: int, *, segment_rows: int = 200_000, batch_rows: int = 10_000) -> None:
    """So many messages in sealed segments of some 64 MB, as a node under load writes them."""
    folder = data / "journal" / "messages"
    folder.mkdir(parents=True)
    chance, now, segments = np.random.default_rng(1), time.time_ns() // 1000, []
    for first in range(0, rows, segment_rows):
        following = min(rows, first + segment_rows)
        name = f"{first:020}-{following:020}.arrow"
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            for start in range(first, following, batch_rows):
                writer.write_batch(message_batch(start, min(batch_rows, following - start), now + start, chance))
        entry = {"file": name, "first": first, "next": following, "rows": following - first, "run": "00c0ffee00c0ffee"}
        entry |= {"bytes": (folder / name).stat().st_size, "time_min": now + first, "time_max": now + following}
        segments.append(entry | {"arrival_min": first, "arrival_max": following - 1})
    manifest = {"format": 1, "stream": "messages", "node": "node-a", "first": 0, "next": rows, "segments": segments}
    (folder / "manifest.json").write_text(json.dumps(manifest))
