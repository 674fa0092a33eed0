"""Writes journals in the on-disk format of protocol/events.toml, for tests that need no node.

Owns the format as a writer sees it, from its description alone: the checksum is taken row by row here and column by column in
the package, so that one is held against the other.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from crc32c import crc32c

from godwit_pipelines.source.columns import stream_schema

START = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Row = dict[str, Any]


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def checksum(row: Row, schema: pa.Schema) -> int:
    """CRC-32C over a row's fields as events.toml lays them down."""
    laid = bytearray()
    for field in schema:
        value = row.get(field.name)
        if field.name == "crc":
            continue
        if value is None:
            laid += b"\0"
            continue
        laid += b"\1"
        if isinstance(value, datetime):
            value = micros(value)
        if isinstance(value, str | bytes):
            content = value.encode() if isinstance(value, str) else value
            laid += struct.pack("<I", len(content)) + content
        elif isinstance(value, list):
            laid += struct.pack("<I", len(value)) + b"".join(struct.pack("<q", each) for each in value)
        elif isinstance(value, float):
            laid += struct.pack("<d", value)
        else:
            laid += struct.pack("<q", int(value))
    return crc32c(bytes(laid))


def message(offset: int, **fields: Any) -> Row:
    """A message as a node writes it: ten subjects, contents of differing length."""
    return {
        "tenant": "",
        "time": START + timedelta(milliseconds=offset),
        "subject": f"/rooms/{offset % 10}",
        "epoch": 1,
        "sequence": offset // 10 + 1,
        "arrival": offset,
        "kind": "json",
        "content": json.dumps({"n": offset, "pad": "x" * (offset % 7)}).encode(),
        "publisher": "thermometer",
        "key": None if offset % 3 else f"key-{offset}".encode(),
        "flags": 5,
        "reply_to": None,
        "expiry_s": None if offset % 5 else offset,
        "properties": None,
        **fields,
    }


def run_of(node: str) -> str:
    """A node's run, where a row does not say another: no two nodes have one."""
    return f"{crc32c(node.encode()):016x}"


class JournalWriter:
    """One stream of one node: rows go to the open segment, `seal` makes a file of it, `retain` lets old files go."""

    def __init__(self, data: Path, stream: str = "messages", node: str = "node-a") -> None:
        self.folder = data / "journal" / stream
        self.folder.mkdir(parents=True, exist_ok=True)
        # As a node does: the machine has run on since, so that nothing but what a test damages is missing.
        (data / "journal/boot").write_bytes(Path("/proc/sys/kernel/random/boot_id").read_bytes())
        self.stream, self.node = stream, node
        self.schema = stream_schema(stream)
        self.segments: list[dict[str, Any]] = []
        self.first = self.next = 0
        self.kept: list[pa.RecordBatch] = []
        self.open_first = 0
        self.sink: Any = None
        self.writer: Any = None

    def batch(self, rows: Iterable[Row]) -> pa.RecordBatch:
        """The rows with their node, offset and checksum."""
        whole = []
        for offset, row in enumerate(rows, self.next):
            row = {"node": self.node, "run": run_of(self.node), "journal_offset": offset, **row}
            whole.append({"crc": checksum(row, self.schema), **row})
        return pa.RecordBatch.from_pylist(whole, self.schema)

    def write(self, rows: Sequence[Row] | pa.RecordBatch) -> None:
        """One batch to the open segment."""
        batch = rows if isinstance(rows, pa.RecordBatch) else self.batch(rows)
        if self.writer is None:
            self.open_first = self.next
            self.sink = (self.folder / f"{self.open_first:020}.arrows").open("wb", buffering=0)
            self.writer = pa.ipc.new_stream(self.sink, self.schema)
        self.writer.write_batch(batch)
        self.kept.append(batch)
        self.next += batch.num_rows

    def seal(self, *, remove: bool = True, missing: Sequence[tuple[int, int]] = ()) -> Path:
        """The open segment becomes a file; returns it."""
        name = f"{self.open_first:020}-{self.next:020}.arrow"
        rows = pa.Table.from_batches(self.kept)
        with pa.OSFile(str(self.folder / (name + ".part")), "wb") as sink, pa.ipc.new_file(sink, self.schema) as writer:
            for batch in self.kept:
                writer.write_batch(batch)
        (self.folder / (name + ".part")).rename(self.folder / name)
        times = rows.column("time").cast(pa.int64()).to_pylist()
        entry = {
            "file": name,
            "first": self.open_first,
            "next": self.next,
            "rows": rows.num_rows,
            "run": rows.column("run")[0].as_py(),
        }
        entry |= {"bytes": (self.folder / name).stat().st_size, "time_min": min(times), "time_max": max(times)}
        if self.stream == "messages":
            arrivals = rows.column("arrival").to_pylist()
            entry |= {"arrival_min": min(arrivals), "arrival_max": max(arrivals)}
        if missing:
            entry["missing"] = [list(span) for span in missing]
        self.segments.append(entry)
        self.write_manifest()
        self.close()
        if remove:
            (self.folder / f"{self.open_first:020}.arrows").unlink()
        self.kept = []
        return self.folder / name

    @property
    def sealed_next(self) -> int:
        """Where the open segment begins, or would."""
        return self.open_first if self.writer is not None else self.next

    def close(self) -> None:
        """Let the open segment be as it is."""
        if self.sink is not None:
            self.sink.close()
        self.sink = self.writer = None

    def retain(self, first: int) -> None:
        """Let whole segments before an offset go."""
        for entry in [entry for entry in self.segments if entry["next"] <= first]:
            self.segments.remove(entry)
            (self.folder / entry["file"]).unlink()
        self.first = self.segments[0]["first"] if self.segments else self.sealed_next
        self.write_manifest()

    def write_manifest(self) -> None:
        following = self.segments[-1]["next"] if self.segments else self.sealed_next
        manifest = {"format": 2, "stream": self.stream, "node": self.node, "first": self.first, "next": following}
        manifest |= {"segments": self.segments}
        (self.folder / "manifest.new").write_text(json.dumps(manifest))
        (self.folder / "manifest.new").rename(self.folder / "manifest.json")


def write_messages(
    data: Path, count: int, *, node: str = "node-a", segments: int = 3, batch: int = 50
) -> JournalWriter:
    """A journal with so many messages in sealed segments and, as the last part, an open one."""
    writer = JournalWriter(data, node=node)
    edges = [count * index // (segments + 1) for index in range(segments + 2)]
    for index, (start, end) in enumerate(itertools.pairwise(edges)):
        for first in range(start, end, batch):
            writer.write([message(offset) for offset in range(first, min(end, first + batch))])
        if index < segments:
            writer.seal()
    return writer


def batches_of(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
