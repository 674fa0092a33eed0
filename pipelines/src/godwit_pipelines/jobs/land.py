"""`land`: every row of the journals into the bronze tables, once, and damaged rows into the quarantine.

A query for each stream, named after it; each goes on from its checkpoint.
"""

from __future__ import annotations

from ..errors import ConfigInvalid
from ..schemas import SCHEMAS
from ..source.parts import find_folders
from .job import Job, Outcome, Run


def run(run: Run) -> Outcome:
    """Land the streams that are there, or those that --option streams=a,b names."""
    streams = streams_of(run)
    for stream in streams:
        run.start(run.lake.landing(stream, run.journal_stream(stream)), f"land-{stream}")
    return Outcome("" if streams else f"no node has written a journal under {', '.join(run.config.journal.paths)} yet")


def streams_of(run: Run) -> list[str]:
    """The streams to land: a run that ends leaves out those that no node has written."""
    named = [name for name in run.options.get("streams", "").split(",") if name]
    for name in named:
        if name not in SCHEMAS:
            raise ConfigInvalid("--option streams", name, f"is no stream; there are {', '.join(SCHEMAS)}")
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
