"""`sessions`: who was connected, from when to when, how the connection ended, and how many were connected at once."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ..transforms.sessions import KEY, close_lost, combine_sessions, concurrency, session_parts
from .job import Job, Outcome, Run
from .options import FORGET_OPTION, check_forget


def run(run: Run) -> Outcome:
    """Add new rows of `access` to the sessions that they belong to, then close the sessions of runs that were cut short."""
    parts = session_parts(run.lake.stream("bronze.access"))

    def write(rows: DataFrame, batch: int) -> None:
        new = rows.persist()
        known = (
            run.lake.read("silver.sessions").select(new.columns).join(new.select(*KEY).distinct(), [*KEY], "left_semi")
        )
        whole = combine_sessions(new.unionByName(known))
        run.lake.merge("silver.sessions", whole, app=run.app("sessions"), batch=batch)
        new.unpersist()
        if run.every_s is not None:
            finish(run)

    run.start(parts.writeStream.outputMode("append").foreachBatch(write), "sessions", merges=["silver.sessions"])
    if run.every_s is None:
        finish(run)
    return Outcome()


def finish(run: Run) -> None:
    """Compute what needs all sessions: those that ended with their node, and the concurrency."""
    known = run.lake.read("silver.sessions")
    run.lake.merge("silver.sessions", close_lost(known, run.lake.read("bronze.runs")))
    run.lake.replace("gold.concurrency_1m", concurrency(run.lake.read("silver.sessions")))


JOB = Job(
    name="sessions",
    about="lists connections with start, end and how they ended, and counts concurrent ones",
    run=run,
    reads=("bronze.access", "bronze.runs"),
    writes=("silver.sessions", "gold.concurrency_1m"),
    queries=("sessions",),
    options=FORGET_OPTION,
    check=check_forget,
)
