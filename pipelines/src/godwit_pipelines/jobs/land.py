"""`land`: every row of the journals into the bronze tables, once, and damaged rows into the quarantine.

A query for each stream, named after it; each goes on from its checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import functions as F

from ..errors import ConfigInvalid
from ..schemas import SCHEMAS
from ..source.parts import find_folders
from .job import Job, Outcome, Run


def run(run: Run) -> Outcome:
    """Land the streams that are there, or those that --option streams=a,b names."""
    streams = streams_of(run)
    if run.config.kafka.topics:
        run.start(run.lake.landing("messages", run.lake.kafka_stream()), "land-kafka")
    for stream in streams:
        query = f"land-{stream}"
        run.start(run.lake.landing_journal(stream, startingOffsets=starting_offsets(run, stream, query)), query)
    is_idle = not streams and not run.config.kafka.topics
    return Outcome(
        "" if not is_idle else f"no node has written a journal under {', '.join(run.config.journal.paths)} yet"
    )


def starting_offsets(run: Run, stream: str, query: str) -> str:
    """Where a query without a checkpoint begins: at the beginning, or, if the checkpoint was lost, where the table ends."""
    table = f"bronze.{stream}"
    if Path(run.lake.checkpoint(query)).exists() or not run.lake.exists(table):
        return "earliest"
    ends = run.lake.read(table).groupBy("node").agg(F.max("offset").alias("last")).collect()
    return json.dumps({row["node"]: row["last"] + 1 for row in ends}) if ends else "earliest"


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
