"""`land`: every row of the journals into the bronze tables, once, and damaged rows into the quarantine.

A query for each stream, named after it; each goes on from its checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..errors import ConfigInvalid
from ..schemas import SCHEMAS
from ..source.parts import find_folders
from .job import Job, Outcome, Run


def run(run: Run) -> Outcome:
    """Land the streams that are there, or those that --option streams=a,b names."""
    streams = streams_of(run)
    if run.config.kafka.topics:
        query = "land-kafka"
        records = without_landed(run.lake.kafka_stream(), find_ends(run, "messages", query))
        run.start(run.lake.landing("messages", records), query)
    for stream in streams:
        query = f"land-{stream}"
        ends = find_ends(run, stream, query)
        run.start(run.lake.landing_journal(stream, startingOffsets=json.dumps(ends) if ends else "earliest"), query)
    is_idle = not streams and not run.config.kafka.topics
    return Outcome(
        "" if not is_idle else f"no node has written a journal under {', '.join(run.config.journal.paths)} yet"
    )


def find_ends(run: Run, stream: str, query: str) -> dict[str, int]:
    """The offset after the last that has landed, by node: where a query begins whose checkpoint was lost."""
    table = f"bronze.{stream}"
    if Path(run.lake.checkpoint(query)).exists() or not run.lake.exists(table):
        return {}
    damaged = run.lake.read("bronze.quarantine").where(F.col("stream") == stream)
    landed = run.lake.read(table).select("node", "offset").union(damaged.select("node", "offset"))
    ends = landed.groupBy("node").agg(F.max("offset").alias("last")).collect()
    return {row["node"]: row["last"] + 1 for row in ends}


def without_landed(records: DataFrame, ends: dict[str, int]) -> DataFrame:
    """Kafka begins where it is told for all of its partitions or for none, so what has landed is read again and left out."""
    if not ends:
        return records
    known = F.create_map(*(F.lit(each) for pair in ends.items() for each in pair))
    return records.where(F.col("offset") >= F.coalesce(known[F.col("node")], F.lit(0)))


def streams_of(run: Run) -> list[str]:
    """The streams to land: a run that ends leaves out those that no node has written."""
    named = [name for name in run.options.get("streams", "").split(",") if name]
    for name in named:
        if name not in SCHEMAS:
            raise ConfigInvalid("--option streams", name, f"is no stream; there are {', '.join(SCHEMAS)}")
    if not run.config.journal.paths and run.config.kafka.topics:
        return []
    if not run.config.journal.paths:
        raise ConfigInvalid("journal.paths", "", "must name a node's data directory", hint="--journal DATA")
    if named:
        return named
    written = [stream for stream in SCHEMAS if find_folders(",".join(run.config.journal.paths), stream)]
    return (
        written if run.every_s is None else [stream for stream in SCHEMAS if stream in written or stream != "feedback"]
    )


JOB = Job(
    name="land",
    about="every row of the journals into the bronze tables, once; damaged rows into the quarantine",
    run=run,
    reads=tuple(f"journal.{stream}" for stream in SCHEMAS),
    writes=(*(f"bronze.{stream}" for stream in SCHEMAS), "bronze.quarantine"),
    every_s=10.0,
    options={"streams": "Which streams, joined by commas; all that nodes write if it is not given."},
)
