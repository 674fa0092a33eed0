"""The format `godwit`: the journals of nodes as a data source of Spark, in batch and as a stream.

    spark.read.format("godwit").option("path", "DATA1,DATA2").option("stream", "messages").load()

Options: path · stream · maxRowsPerBatch · rowsPerTask · failOnDataLoss · verify · startingOffsets: earliest, latest, or {NODE: OFFSET} ·
where: the bounds that bounds.py found in a condition, in batch only · asTasks: return the ranges of the tasks instead of their rows, see
tasks.py · leftOut: rows to leave out, {NODE: {RUN: [[FIRST, NEXT], …]}}, in order · landed: the offset after the last row that landed
before the stream began, {NODE: {RUN: NEXT}} · landedIn: the table that rows land in, to compare rows of one run and offset · follows:
queries that the stream does not overtake, see following.py.

A schema with fewer columns can be given; the checksum still covers all columns. Owns what Spark asks of a source; parts.py finds rows and
rows.py reads them. Invariant: a planned range is read completely, or the query fails and names what is missing.
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
from ..transforms.ranges import Range, clipped, count_offsets, merged
from ..values.numbers import parse_count
from .columns import stream_columns, stream_schema
from .extents.bounds import parts_within, read_bounds
from .extents.planned import find_others, find_planned, refuse
from .following import Following, from_option
from .offsets import Passed, RunsPassed, from_offset, runs_of, share, to_offset
from .parts import Journals
from .positions import Begin, Positions
from .rows import Part, Reading, read_part
from .runs import Runs, ranges_by_run, ranges_in, with_runs
from .tasks import TASKS, describe_task
from .worker import settle

_ROWS_PER_BATCH = 1_000_000
_ROWS_PER_TASK = 100_000


@dataclass
class Task(InputPartition):
    """One part, as Spark passes it to a worker."""

    part: Part

    def __init__(self, part: Part) -> None:
        super().__init__(None)
        self.part = part


class Options:
    """The options of the format, checked before anything is read."""

    def __init__(self, given: Mapping[str, str]) -> None:
        known = {name.lower(): value for name, value in given.items()}
        self.path = known.get("path", "")
        if not self.path:
            raise ConfigInvalid("path", "", "must name a node's data directory, several separated by commas, or a glob")
        self.stream = known.get("stream", "messages")
        self.rows_per_batch = _count(known, "maxRowsPerBatch", _ROWS_PER_BATCH)
        self.rows_per_task = _count(known, "rowsPerTask", _ROWS_PER_TASK)
        self.may_lose = not _claim(known, "failOnDataLoss", True)
        self.verify = _claim(known, "verify", True)
        if "pushfilters" in known:
            raise ConfigInvalid(
                "pushFilters", known["pushfilters"], "was removed: Spark applied one scan's filters to another"
            )
        self.bounds = read_bounds(known.get("where", "[]"))
        self.as_tasks = _claim(known, "asTasks", False)
        self.starting = known.get("startingoffsets", "earliest")
        self.starts: dict[str, int] = {}
        if self.starting not in ("earliest", "latest"):
            self.starts = _starts(self.starting)
        self.left_out = ranges_by_run(json.loads(known.get("leftout", "{}")))
        landed: dict[str, dict[str, int]] = json.loads(known.get("landed", "{}"))
        self.landed = {node: [Passed(run, next) for run, next in runs.items()] for node, runs in landed.items()}
        self.landed_in = known.get("landedin", "")
        self.follows = from_option(known.get("follows", "[]"))

    def journals(self) -> Journals:
        return Journals(self.path, self.stream, rows_per_task=self.rows_per_task)

    def find_crcs(self, run: str, offset: int) -> set[int]:
        """The checksums of a row that landed."""
        from ..delta.landed import find_crcs

        return find_crcs(self.landed_in, run, offset) if self.landed_in else set()


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
    """The format `godwit`; session.register_all registers it."""

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
    """The columns and checks of a read. A given schema must have only columns of the stream."""
    if options.as_tasks:
        schema = stream_columns(options.stream)
    columns = stream_columns(options.stream)
    for field in schema:
        if field.name not in columns.names or columns[field.name].dataType != field.dataType:
            known = columns.simpleString()
            raise ConfigInvalid(
                "schema",
                f"{field.name} {field.dataType.simpleString()}",
                f"is not a column of {options.stream}: {known}",
            )
    return Reading(stream_schema(options.stream), to_arrow_schema(schema, timezone="UTC"), options.verify)


def read_task(partition: InputPartition, options: Options, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The batches that a worker yields for one task. Without tasks Spark makes an empty partition of its own."""
    settle()
    if not isinstance(partition, Task):
        return iter(())
    return iter((describe_task(partition.part),)) if options.as_tasks else read_part(partition.part, reading)


def leave_out(part: Part, ranges: Sequence[tuple[int, int]]) -> Part:
    """The part, without the offsets of some ranges, which are in order and share none. Lost rows may reach beyond it."""
    gone = clipped(ranges, part.segment_first, part.segment_next)
    return replace(part, left_out=tuple(merged([*part.left_out, *gone]))) if gone else part


class JournalReader(DataSourceReader):
    """A table of the journals as it is when the query is planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.reading = reading_of(options, schema)

    def partitions(self) -> list[InputPartition]:
        journals = self.options.journals()
        journals.look()
        parts, runs = parts_within(journals, self.options.bounds), Runs(journals)
        return [Task(with_runs(part, runs.spans(part.node))) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self.options, self.reading)


def check_same_journals(paths: Sequence[str], stream: str, place: Mapping[str, Any]) -> None:
    """Raises JournalReplaced if it cannot be known which rows of the journals a query has read."""
    reader = JournalStreamReader(Options({"path": ",".join(paths), "stream": stream}), stream_columns(stream))
    reader.journals.look()
    for node, at in from_offset(stream, place).items():
        if node in reader.journals.folders:
            reader.positions.begin(node, at, runs_of(place))


class JournalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A table of the journals as a stream. Spark keeps it for as long as the query runs, so that each batch looks only at what is new."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.reading = reading_of(options, schema)
        self.journals = options.journals()
        self.positions = Positions(self.journals, may_lose=options.may_lose, find_crcs=options.find_crcs)
        self.last: dict[str, int] | None = None
        """The end of an availableNow query: what existed when it began."""
        self.begins: dict[str, tuple[object, Begin]] = {}
        """Where reading of each node continues, valid as long as its journal does not change."""
        self.following = Following(options.path, options.follows) if options.follows else None

    def __getstate__(self) -> dict[str, Any]:
        """The state that a worker needs, without what the driver knows of the journals."""
        options = copy(self.options)
        options.left_out, options.landed = {}, {}
        return {"options": options, "reading": self.reading}

    def initialOffset(self) -> dict[str, Any]:
        """Empty for nodes that are read from their beginning: `latestOffset` finds where that is."""
        starts = dict(self.options.starts)
        self.journals.look()
        firsts = self.journals.firsts()
        if unknown := sorted(set(starts) - set(firsts)):
            there = f"there are {', '.join(sorted(firsts))}" if firsts else "there is none"
            raise ConfigInvalid(
                "startingOffsets", ", ".join(unknown), f"is not a node under {self.options.path}; {there}"
            )
        nexts = self.journals.nexts()
        for node in (node for node, start in starts.items() if start > nexts[node]):
            end = f"is past the end of {self.options.stream} of {node}: {nexts[node]}"
            raise ConfigInvalid("startingOffsets", f"{starts[node]}", end)
        if self.options.starting == "latest":
            starts = nexts
        return to_offset(self.options.stream, starts, runs=self.positions.passed(self.options.landed, firsts, starts))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.rows_per_batch)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        starts, runs = from_offset(self.options.stream, start), runs_of(start)
        self.journals.look()
        begins = {node: self.begin(node, starts.get(node), runs) for node in [*self.journals.folders]}
        ends = self.journals.nexts()
        if self.last is not None:
            ends = {node: min(end, self.last.get(node, 0)) for node, end in ends.items() if node in self.last}
        if self.following:
            ends = self.following.reach(ends)
        begun = {node: begins[node].offset for node in ends}
        if self.options.may_lose:  # rows that retention deleted belong to no share, and are not reported
            begun = {node: max(at, self.journals.folders[node].first) for node, at in begun.items()}
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ends = (
            share(begun, ends, rows, self.journals.spans)
            if rows is not None
            else {node: max(end, begun[node]) for node, end in ends.items()}
        )
        ends = {node: end for node, end in ends.items() if end > begins[node].offset or node not in starts}
        if not self.options.may_lose:
            for node, end in ends.items():
                self.journals.check_there(node, begun[node], end)
        if not any(end > begins[node].offset for node, end in ends.items()):
            return start  # one that brings nothing new stays as it is
        begun = {**starts, **{node: begun[node] for node in ends}}
        passed = self.positions.passed(runs, begun, ends)
        replaced = {node: begins[node].why for node in ends if begins[node].why}
        more = {
            **({"before": start["runs"]} if "begun" not in start and "runs" in start else {}),
            **({"replaced": replaced} if replaced else {}),
            **(self.count(begins, begun, ends) if self.options.as_tasks else {}),
        }
        return to_offset(self.options.stream, {**starts, **ends}, begun, passed) | more

    def begin(self, node: str, at: int | None, runs: RunsPassed) -> Begin:
        """Where reading of a node continues; searched again whenever its journal changed. What is known of files may be of others that
        had their names, so that a journal that seems to be another one is looked at from its beginning.
        """
        seen = (self.journals.folders[node].signature, at, runs.get(node))
        if self.begins.get(node, (None,))[0] == seen:
            return self.begins[node][1]
        try:
            found = self.positions.begin(node, at, runs)
            is_other = at is not None and found != Begin(at)
        except (JournalReplaced, JournalBroken):
            is_other = True
        if is_other:
            self.positions.reopen(node)
            found = self.positions.begin(node, at, runs)
        self.begins[node] = (self.journals.folders[node].signature, at, runs.get(node)), found
        return found

    def count(self, begins: Mapping[str, Begin], begun: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, Any]:
        """The number of rows in the tasks of a batch, for its offset: Spark counts only the tasks."""
        lost = sum(begun[node] - begins[node].offset for node in ends)
        absent = 0
        for node, high in ends.items():
            low = begun[node]
            gone = self.journals.missing_files(node, low, high) if self.options.may_lose else []
            lost += count_offsets(gone)
            known = (self.journals.folders[node].missing, self.left_out(node))
            absent += count_offsets(merged([*gone, *(each for ranges in known for each in clipped(ranges, low, high))]))
        return {"tasks": True, **{name: rows for name, rows in (("absent", absent), ("lost", lost)) if rows}}

    def left_out(self, node: str) -> list[Range]:
        """The offsets of a node's journal that the stream is not to bring."""
        if not self.options.left_out:
            return []
        return ranges_in(self.options.left_out, self.positions.runs.spans(node), node)

    def prepareForTriggerAvailableNow(self) -> None:
        self.journals.look()
        self.last = self.journals.nexts()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return to_offset(self.options.stream, self.journals.nexts())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if start == end:
            return []
        self.journals.look()
        ends = from_offset(self.options.stream, end)
        begun = {node: int(at) for node, at in end.get("begun", {}).items()} or from_offset(self.options.stream, start)
        before = from_offset(self.options.stream, start) if "begun" in start else {}  # else nothing was read before
        continued = {node for node, at in begun.items() if before.get(node) == at}
        parts = self.journals.parts(begun, ends, may_lose=self.options.may_lose, continued=continued)
        runs = self.positions.runs
        planned = find_planned(start, end, begun)
        others = {node: find_others(planned.get(node, ()), runs, node) for node in {part.node for part in parts}}
        if not self.options.may_lose and (changed := next((node for node, of in others.items() if of), None)):
            raise refuse(changed, self.options.stream, others[changed])
        spans = {node: runs.spans(node) for node in others}
        left_out = {node: merged(sorted([*self.left_out(node), *of])) for node, of in others.items()}
        last = {
            node: [(each.next - 1, each.crc) for each in of if each.crc is not None] for node, of in planned.items()
        }
        known = (with_runs(part, spans[part.node], last.get(part.node, ())) for part in parts)
        return [Task(leave_out(part, left_out[part.node])) for part in known]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition, self.options, self.reading)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: a query's checkpoint records what it has read, and the journal's retention does not depend on it."""
