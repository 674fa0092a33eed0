"""The format `godwit`: the journals of nodes as a data source of Spark, in batch and as a stream.

    spark.read.format("godwit").option("path", "DATA1,DATA2").option("stream", "messages").load()

Options: path, stream, maxRowsPerBatch, rowsPerTask, failOnDataLoss, verify, startingOffsets (earliest, latest, or {NODE: OFFSET}),
landed (as startingOffsets, of nodes that may be away as well),
asTasks (the ranges that tasks would read in place of their rows: see tasks.py), leftOut (offsets that a
stream is not to bring, {NODE: [[FIRST, NEXT], …]}, in order), follows (the queries that a stream does not overtake: see following.py).
A schema of fewer columns may be given;
the checksum is taken over all of them all the same. Owns what Spark asks of a source; finding and reading rows is
parts.py's and rows.py's. Invariant: a range that was planned is read whole, or the query fails and says what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ..errors import ConfigInvalid, JournalBroken, JournalReplaced
from ..transforms.ranges import clipped, count_offsets, merged
from ..values.numbers import parse_count
from .checksum import CHECKSUM
from .columns import FAULT, stream_columns, stream_schema
from .following import Following, from_option
from .offsets import from_offset, last_of, share, to_offset
from .parts import Journals
from .rows import Part, Reading, read_part
from .tasks import TASKS, describe_task
from .worker import settle

_ROWS_PER_BATCH = 1_000_000
_ROWS_PER_TASK = 100_000


@dataclass
class Task(InputPartition):
    """One part, as Spark hands it to a worker."""

    part: Part

    def __init__(self, part: Part) -> None:
        super().__init__(None)
        self.part = part


class Options:
    """What a user of the format said, checked before anything is read."""

    def __init__(self, given: Mapping[str, str]) -> None:
        known = {name.lower(): value for name, value in given.items()}
        self.path = known.get("path", "")
        if not self.path:
            raise ConfigInvalid("path", "", "must name a node's data directory, several joined by commas, or a glob")
        self.stream = known.get("stream", "messages")
        self.rows_per_batch = _count(known, "maxRowsPerBatch", _ROWS_PER_BATCH)
        self.rows_per_task = _count(known, "rowsPerTask", _ROWS_PER_TASK)
        self.may_lose = not _claim(known, "failOnDataLoss", True)
        self.verify = _claim(known, "verify", True)
        if "pushfilters" in known:
            raise ConfigInvalid(
                "pushFilters", known["pushfilters"], "was removed: Spark applied one scan's filters to another"
            )
        self.as_tasks = _claim(known, "asTasks", False)
        self.starting = known.get("startingoffsets", "earliest")
        self.starts: dict[str, int] = {}
        if self.starting not in ("earliest", "latest"):
            self.starts = _starts(self.starting)
        self.landed = _starts(known.get("landed", "{}"))
        left_out: dict[str, list[list[int]]] = json.loads(known.get("leftout", "{}"))
        self.left_out = {node: [(first, next) for first, next in ranges] for node, ranges in left_out.items()}
        self.follows = from_option(known.get("follows", "[]"))

    def journals(self) -> Journals:
        return Journals(self.path, self.stream, rows_per_task=self.rows_per_task)


def _count(known: Mapping[str, str], name: str, default: int) -> int:
    text = known.get(name.lower(), str(default))
    found = parse_count(text)
    if found is None or found < 1:
        raise ConfigInvalid(name, text, "must be a whole number above 0")
    return found


def _starts(text: str) -> dict[str, int]:
    """The offset of each node. One that is a text, a fraction or a truth is a mistake, not a number."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(type(each) is int and each >= 0 for each in given.values()):
        raise ConfigInvalid(
            "startingOffsets", text, 'must be earliest, latest, or offsets by node as {"node-a": 5}'
        ) from None
    return given


def _claim(known: Mapping[str, str], name: str, default: bool) -> bool:
    text = known.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise ConfigInvalid(name, text, "must be true or false")
    return text == "true"


class JournalSource(DataSource):
    """`godwit`, as session.register_all makes it known."""

    @classmethod
    def name(cls) -> str:
        return "godwit"

    def schema(self) -> StructType:
        options = Options(self.options)
        return TASKS if options.as_tasks else stream_columns(options.stream)

    def reader(self, schema: StructType) -> DataSourceReader:
        return JournalReader(Options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return JournalStreamReader(Options(self.options), schema)


def reading_of(options: Options, schema: StructType) -> Reading:
    """What is wanted; a given schema must be of the stream's columns."""
    if options.as_tasks:
        schema = stream_columns(options.stream)
    columns = stream_columns(options.stream)
    for field in schema:
        if field.name not in columns.names or columns[field.name].dataType != field.dataType:
            known = columns.simpleString()
            raise ConfigInvalid(
                "schema", f"{field.name} {field.dataType.simpleString()}", f"is no column of {options.stream}: {known}"
            )
    return Reading(stream_schema(options.stream), to_arrow_schema(schema, timezone="UTC"), options.verify)


def read_task(partition: InputPartition, options: Options, reading: Reading) -> Iterator[pa.RecordBatch]:
    """What a worker yields of one task; Spark gives a partition of its own where there are none."""
    settle()
    if not isinstance(partition, Task):
        return iter(())
    return iter((describe_task(partition.part),)) if options.as_tasks else read_part(partition.part, reading)


def leave_out(part: Part, ranges: Sequence[tuple[int, int]]) -> Part:
    """The part, without the offsets of some ranges, which are in order and share none."""
    gone = clipped(ranges, part.first, part.next)
    return replace(part, left_out=tuple(gone)) if gone else part


class JournalReader(DataSourceReader):
    """A stream as it stands when the query is planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.reading = reading_of(options, schema)

    def partitions(self) -> list[InputPartition]:
        journals = self.options.journals()
        journals.look()
        ends = journals.nexts()
        return [Task(part) for part in journals.parts({}, ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self.options, self.reading)


def check_same_journals(paths: Sequence[str], stream: str, place: Mapping[str, Any]) -> None:
    """Raises JournalReplaced where a query's saved place is of other journals than those that are there."""
    reader = JournalStreamReader(Options({"path": ",".join(paths), "stream": stream}), stream_columns(stream))
    reader.journals.look()
    reader.check_same(from_offset(stream, place), last_of(place))


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream as it grows. Kept by Spark for as long as the query runs, so that each batch looks at what is new only."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.reading = reading_of(options, schema)
        self.journals = options.journals()
        self.last: dict[str, int] | None = None
        """Where an availableNow query ends: what was there when it began."""
        self.checked: dict[str, int] = {}
        """The places at which the journals were found to be those that were read."""
        self.following = Following(options.path, options.follows) if options.follows else None

    def __getstate__(self) -> dict[str, Any]:
        """What a worker needs: not what the driver knows of the journals."""
        options = copy(self.options)
        options.left_out = {}
        return {"options": options, "reading": self.reading}

    def initialOffset(self) -> dict[str, Any]:
        self.journals.look()
        starts = self.journals.nexts() if self.options.starting == "latest" else self.journals.firsts()
        if unknown := sorted(set(self.options.starts) - set(starts)):
            there = f"there are {', '.join(sorted(starts))}" if starts else "there is none"
            raise ConfigInvalid("startingOffsets", ", ".join(unknown), f"is no node under {self.options.path}; {there}")
        starts |= {**self.options.landed, **self.options.starts}
        return to_offset(self.options.stream, starts)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.rows_per_batch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        starts = from_offset(self.options.stream, start)
        self.journals.look()
        ends = self.journals.nexts()
        if self.last is not None:
            ends = {node: min(end, self.last.get(node, 0)) for node, end in ends.items() if node in self.last}
        if self.following:
            ends = self.following.reach(ends)
        self.check_same(starts, last_of(start))
        for node, end in self.journals.nexts().items():
            if starts.get(node, 0) > end and not self.options.may_lose:
                raise JournalBroken(
                    f"node {node}: {self.options.stream} ends at {end}, before {starts[node]} that was read: was the journal replaced?"
                )
        begun = {node: starts.get(node, self.journals.folders[node].first) for node in ends}
        if self.options.may_lose:  # what retention let go of is no part of a share, nor of the rows that are told
            begun = {node: max(at, self.journals.folders[node].first) for node, at in begun.items()}
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = (
            share(begun, ends, rows, self.journals.spans)
            if rows is not None
            else {node: max(end, begun[node]) for node, end in ends.items()}
        )
        if not self.options.may_lose:
            for node, end in ends.items():
                self.journals.check_there(node, begun[node], end)
        nodes = {**starts, **ends}
        if nodes == starts:
            return start  # one that brings nothing new stays as it is
        found = self.count(starts, begun, ends) if self.options.as_tasks else to_offset(self.options.stream, nodes)
        kept = {node: [*row] for node, row in last_of(start).items() if nodes[node] == starts.get(node)}
        return found | {"last": {**kept, **self.last_rows(nodes)}}

    def last_rows(self, places: Mapping[str, int]) -> dict[str, list[str | int]]:
        """The run and checksum of the row before each node's offset, where it is there and sound."""
        found: dict[str, list[str | int]] = {}
        for node, next in places.items():
            folder = self.journals.folders.get(node)
            if folder is None or not folder.first < next <= folder.next:
                continue
            schema = stream_schema(self.options.stream)
            wanted = pa.schema([schema.field("run"), schema.field(CHECKSUM), pa.field(FAULT, pa.string())])
            for part in self.journals.parts({node: next - 1}, {node: next}, may_lose=True):
                for batch in read_part(part, Reading(schema, wanted)):
                    for row in batch.to_pylist():
                        if row[FAULT] is None:
                            found[node] = [row["run"], row[CHECKSUM]]
        return found

    def check_same(self, starts: Mapping[str, int], last: Mapping[str, tuple[str, int]]) -> None:
        """Raises JournalReplaced where the row before a saved place is another one than was read: the same name, another journal. Rows
        of it before that place would be left out, whatever their number.
        """
        known = {node: at for node, at in starts.items() if node in last and self.checked.get(node) != at}
        for node, (run, crc) in self.last_rows(known).items():
            if (run, crc) != last[node]:
                raise JournalReplaced(
                    f"node {node}: row {starts[node] - 1} of {self.options.stream} is of run {run}, and the row that was read there was of "
                    f"run {last[node][0]}: {self.journals.folders[node].folder} began anew or was put back from a copy. Nothing of it was "
                    "read; give the node another name (node.name) and its journal lands beside the rows that there are"
                )
        self.checked |= known

    def count(self, starts: dict[str, int], begun: dict[str, int], ends: dict[str, int]) -> dict[str, Any]:
        """The offset of a batch of tasks. What Spark counts are these: the offset says how many rows they bring."""
        lost = sum(begun[node] - starts.get(node, begun[node]) for node in begun)
        absent = 0
        for node in ends:
            low, high = begun[node], ends[node]
            gone = self.journals.missing_files(node, low, high) if self.options.may_lose else []
            lost += count_offsets(gone)
            known = (self.journals.folders[node].holes, self.options.left_out.get(node, []))
            absent += count_offsets(merged([*gone, *(each for ranges in known for each in clipped(ranges, low, high))]))
        return to_offset(self.options.stream, {**starts, **ends}, {**starts, **begun}, absent=absent, lost=lost)

    def prepareForTriggerAvailableNow(self) -> None:
        self.journals.look()
        self.last = self.journals.nexts()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return to_offset(self.options.stream, self.journals.nexts())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self.journals.look()
        starts, ends = from_offset(self.options.stream, start), from_offset(self.options.stream, end)
        parts = self.journals.parts(starts, ends, may_lose=self.options.may_lose)
        return [Task(leave_out(part, self.options.left_out.get(part.node, []))) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self.options, self.reading)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: what a query has read is in its checkpoint, and the journal's retention asks nobody."""
