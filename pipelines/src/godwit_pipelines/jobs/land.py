"""`land`: loads every row of the journals into the bronze tables, once, and damaged rows into the quarantine.

It has one query for each stream, with the stream's name; each continues from its checkpoint. Erased rows never land again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..errors import CheckpointBroken, ConfigInvalid, TableMissing
from ..schemas import SCHEMAS
from ..source.checkpoints import remedy_of
from ..source.following import Query, to_option
from ..source.offsets import reached_by_run
from ..source.parts import Journals, find_folders
from ..source.places import find_kafka_place, find_runs, has_taken_rows, last_batch
from ..source.runs import RangesByRun, Runs, ranges_of_run
from ..transforms.ranges import Range, clipped, count_offsets, without
from ..words import counted
from .erasures import erased_ranges
from .job import Job, Outcome, Run
from .quarantined import damaged_ranges

Ends = dict[str, dict[str, int]]
"""The offset after the last row that landed, by node and run."""
_FIRST = "deliveries"
"""A run that ends reads it before all that an audit holds it against: one of the others that is behind looks like a fault."""
_FOLLOWED = ("access", "runs")
"""The streams that judge it: a continuous query does not overtake them. Where messages have yet to land, the audit sees that by itself."""
_ENDS = "landed.json"
"""In a checkpoint of Kafka: the offset after the last that had landed when it was begun, by node."""
_TOPICS = "topics.json"
"""In a checkpoint of Kafka: the id of each topic that was read."""


def run(run: Run) -> Outcome:
    """Land all streams that exist, or those that --option streams=a,b names."""
    streams = streams_of(run)
    if run.config.kafka.topics:
        query, erased, topics = "land-kafka", erased_ranges(run.lake, "messages"), run.lake.kafka_topics()
        if line := take_topics(Path(run.lake.checkpoint(query)), topics):
            run.say(line)
        records = without_landed(run.lake.kafka_stream(), keep_ends(run, query, erased, topics))
        run.start(
            run.lake.landing("messages", without_erased(records, erased)),
            query,
            ("bronze.messages", "bronze.quarantine"),
        )
    lines = [line for stream in streams if (line := land_stream(run, stream, streams))]
    if not streams and not run.config.kafka.topics:
        lines = [f"no node has written a journal under {', '.join(run.config.journal.paths)} yet"]
    return Outcome("\n".join(lines))


def land_stream(run: Run, stream: str, streams: Sequence[str]) -> str:
    """Start the query of a stream. Returns sentences about rows that it leaves out; a continuous query prints them at once."""
    query, erased = f"land-{stream}", erased_ranges(run.lake, stream)
    check_table(run, stream, query, erased)
    ends = find_ends(run, stream, query, erased)
    ahead = find_ahead(run, stream, ends, reached_by_query(run, stream), erased)
    options = {"landedIn": run.lake.path(f"bronze.{stream}"), "landed": json.dumps(ends), "leftOut": json.dumps(ahead)}
    if stream == _FIRST and run.every_s is not None:
        options["follows"] = to_option([query_of(run, each) for each in _FOLLOWED if each in streams])
    rows = sum(count_offsets(ranges) for runs in ahead.values() for ranges in runs.values())
    line = f"{stream}: {counted(rows, 'row')} that {'was' if rows == 1 else 'were'} erased left out" if rows else ""
    if line and run.every_s is not None:
        run.say(line)
    run.start(run.lake.landing_journal(stream, **options), query, (f"bronze.{stream}", "bronze.quarantine"))
    return line


def reached_by_query(run: Run, stream: str) -> dict[str, int]:
    """The offset after the last row that a stream's query has passed, by run."""
    return reached_by_run(find_runs(Path(run.lake.checkpoint(f"land-{stream}")), stream))


def query_of(run: Run, stream: str) -> Query:
    """The part of a stream's query that other queries need to follow it."""
    query = f"land-{stream}"
    return Query(stream, run.lake.checkpoint(query), find_ends(run, stream, query, erased_ranges(run.lake, stream)))


def check_table(run: Run, stream: str, query: str, erased: RangesByRun) -> None:
    """Raises TableMissing if the table was removed after rows had landed in it: they would not land again. A table need not exist if all
    of these rows may have been damaged, erased or skipped.
    """
    table, checkpoint = f"bronze.{stream}", run.lake.checkpoint(query)
    if run.lake.exists(table) or not run.config.journal.fail_on_data_loss or not has_taken_rows(Path(checkpoint)):
        return
    taken_out = {node: {name: [*ranges] for name, ranges in runs.items()} for node, runs in erased.items()}
    for (node, name), ranges in damaged_ranges(run.lake, stream).items():
        taken_out.setdefault(node, {}).setdefault(name, []).extend(ranges)
    if not taken_out or find_landed(run, stream, taken_out):
        raise TableMissing(
            f"{table} is no longer in {run.lake.folder}, but {checkpoint} records that its rows have landed: "
            f"`run land --rebuild --option streams={stream}` lands them again"
        )


def find_landed(run: Run, stream: str, erased: RangesByRun) -> list[Range]:
    """The rows in the journals that a query has passed and that were not erased."""
    runs, reached = look_at(run, stream), reached_by_query(run, stream)
    found: list[Range] = []
    for node, folder in runs.journals.folders.items():
        for span in runs.spans(node):
            taken_out = [*ranges_of_run(erased, node, span.run), *folder.missing]
            found += without([(span.first, min(span.next, reached.get(span.run, 0)))], taken_out)
    return found


def find_ahead(
    run: Run, stream: str, ends: Ends, reached: Mapping[str, int], erased: RangesByRun
) -> dict[str, dict[str, list[Range]]]:
    """The erased ranges that the journals still have and that a query has not reached yet, by node and run."""
    if not erased:
        return {}
    runs = look_at(run, stream)
    come = {**reached, **{name: next for by_run in ends.values() for name, next in by_run.items()}}
    ahead: dict[str, dict[str, list[Range]]] = {}
    for node in runs.journals.folders:
        for span in runs.spans(node):
            begin = max(span.first, come.get(span.run, 0))
            if ranges := clipped(ranges_of_run(erased, node, span.run), begin, span.next):
                ahead.setdefault(node, {})[span.run] = ranges
    return ahead


def look_at(run: Run, stream: str) -> Runs:
    journals = Journals(",".join(run.config.journal.paths), stream)
    journals.look()
    return Runs(journals)


def find_ends(run: Run, stream: str, query: str, erased: RangesByRun) -> Ends:
    """The offset after the last row that has landed, by node and run: a query without checkpoint begins there. Erased rows directly after
    it have landed, too; later ones can have rows before them that have not.
    """
    table = f"bronze.{stream}"
    has_begun = last_batch(Path(run.lake.checkpoint(query)), "offsets") is not None
    if has_begun or not run.lake.exists(table):
        return {}
    damaged = run.lake.read("bronze.quarantine").where(F.col("stream") == stream)
    names = ("node", "run", "journal_offset")
    last = F.coalesce(F.col("next") - 1, F.col("journal_offset"))  # one row stands for all rows that are lost with it
    landed = run.lake.read(table).select(*names).union(damaged.select("node", "run", last))
    ends: Ends = {}
    for row in landed.groupBy("node", "run").agg(F.max("journal_offset").alias("last")).collect():
        name = row["run"] or ""
        ends.setdefault(row["node"], {})[name] = after(row["last"] + 1, ranges_of_run(erased, row["node"], name))
    return ends


def take_topics(checkpoint: Path, topics: Mapping[str, str]) -> str:
    """Compare the topics' IDs with those of the last run, and save them. If a topic was recreated, its offsets begin again: then all
    topics are read from the beginning, and rows of the others that have landed are left out. Returns the sentences to print.
    """
    file = checkpoint / _TOPICS
    kept: dict[str, str] = read_json(file)
    anew = [topic for topic, name in topics.items() if kept.get(topic, name) != name]
    if anew:
        aside = checkpoint.with_name(f"{checkpoint.name}.replaced")  # a checkpoint is there whole or not at all
        shutil.rmtree(aside, ignore_errors=True)
        checkpoint.rename(aside)
        shutil.rmtree(aside)
    if anew or any(topic not in kept for topic in topics):
        write_json(file, {**kept, **topics})
    if not anew:
        return ""
    verb = "was" if len(anew) == 1 else "were"
    return f"land-kafka: {', '.join(anew)} {verb} recreated: all records of it are read in addition to those that landed before"


def keep_ends(run: Run, query: str, erased: RangesByRun, topics: Mapping[str, str]) -> dict[str, int]:
    """Save and return the offsets up to which Kafka records have landed and can be read again. A query that reads a topic from the
    beginning can be interrupted before it reaches them, so they stay beside its checkpoint until then.
    """
    checkpoint = Path(run.lake.checkpoint(query))
    file = checkpoint / _ENDS
    kept: dict[str, int] = read_json(file)
    place = find_kafka_place(checkpoint)
    landed = {} if kept else find_ends(run, "messages", query, erased)
    its = {node: runs.get(topics.get(node.rpartition("/")[0], ""), 0) for node, runs in landed.items()}
    ahead = {node: end for node, end in (kept or its).items() if place.get(node, 0) < end}
    if ahead != kept:
        write_json(file, ahead)
    return ahead


def write_json(file: Path, content: Mapping[str, object]) -> None:
    """Write a small file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_suffix(".new")
    with made.open("w", encoding="utf-8") as opened:
        json.dump(content, opened)
        opened.flush()
        os.fsync(opened.fileno())
    made.replace(file)


def read_json(file: Path) -> dict[str, Any]:
    """Read a small file. Raises CheckpointBroken if it is cut: without it records would land twice."""
    if not file.is_file():
        return {}
    try:
        kept: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except ValueError:
        raise CheckpointBroken(f"{file} is empty or truncated. {remedy_of(file.parent)}") from None
    return kept


def after(offset: int, ranges: Sequence[Range]) -> int:
    """The first offset from this one on that is in none of the ranges, which are in order."""
    for first, next in ranges:
        if first <= offset < next:
            offset = next
    return offset


def without_landed(records: DataFrame, ends: dict[str, int]) -> DataFrame:
    """Leave out the rows that have landed. Kafka begins at given offsets for all partitions or for none, so these rows are read again."""
    if not ends:
        return records
    known = F.create_map(*(F.lit(each) for pair in ends.items() for each in pair))
    return records.where(F.col("journal_offset") >= F.coalesce(known[F.col("node")], F.lit(0)))


def without_erased(records: DataFrame, erased: RangesByRun) -> DataFrame:
    """Leave out the erased rows. Kafka can be read again from its beginning at any time."""
    rows = [(node, run, *each) for node, runs in erased.items() for run, ranges in runs.items() for each in ranges]
    if not rows:
        return records
    gone = records.sparkSession.createDataFrame(rows, "erased_node string, erased_run string, first long, next long")
    is_gone = (F.col("node") == F.col("erased_node")) & (F.col("journal_offset") >= F.col("first"))
    is_gone &= F.col("erased_run").isin("", F.col("run"))  # of an older version: no run was kept
    return records.join(F.broadcast(gone), is_gone & (F.col("journal_offset") < F.col("next")), "left_anti")


def streams_of(run: Run) -> list[str]:
    """The streams of the journals to land. A run that ends leaves out streams that no node has written."""
    if not run.config.journal.paths:
        return []
    if named := named_streams(run.options):
        return named
    written = [stream for stream in SCHEMAS if find_folders(",".join(run.config.journal.paths), stream)]
    landed = (
        written if run.every_s is None else [stream for stream in SCHEMAS if stream in written or stream != "feedback"]
    )
    return sorted(landed, key=lambda stream: stream != _FIRST)


def named_streams(options: Mapping[str, str]) -> list[str]:
    """The streams that --option streams names; empty without it. Raises ConfigInvalid for a name that is not a stream."""
    if "streams" not in options:
        return []
    named = list(dict.fromkeys(name.strip() for name in options["streams"].split(",")))
    for name in named:
        if name not in SCHEMAS:
            raise ConfigInvalid("--option streams", name, f"is not a stream: expected one of {', '.join(SCHEMAS)}")
    return named


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for a name that is not a stream."""
    named_streams(options)


JOB = Job(
    name="land",
    about="loads every row of the journals into the bronze tables exactly once, and damaged rows into the quarantine",
    run=run,
    reads=(*(f"journal.{stream}" for stream in SCHEMAS), "ops.erased", "ops.erasures"),
    writes=(*(f"bronze.{stream}" for stream in SCHEMAS), "bronze.quarantine"),
    queries=(*(f"land-{stream}" for stream in SCHEMAS), "land-kafka"),
    every_s=10.0,
    options={"streams": "Streams to load, separated by commas. Default: all."},
    check=check,
)
