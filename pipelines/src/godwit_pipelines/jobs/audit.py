"""`audit`: what was published against what was handed over. Ends with 1 where something is wrong that nobody was
told of.

It looks at whole subscriptions, so it works on the tables as they stand, again and again if it is told to go on.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from ..transforms.audit import audited
from .job import Job, Outcome, Run

_STREAMS = ("deliveries", "messages", "access", "reigns")


def run(run: Run) -> Outcome:
    """Judge all that has landed, or what was handed over since --option since=TIME."""
    lake, since = run.lake, run.options.get("since", "")
    deliveries, messages, access, reigns = (lake.read(f"bronze.{stream}") for stream in _STREAMS)
    if since:
        deliveries = deliveries.filter(deliveries.time >= since)
    write = lake.merge if since else lake.replace
    with audited(deliveries, messages, access, reigns) as found:
        write("gold.audit_faults", found.faults)
        write("gold.audit_ranges", found.ranges)
        write("gold.audit_verdict", found.verdict)
    return sum_up(lake.read("gold.audit_verdict"))


def sum_up(verdict: DataFrame) -> Outcome:
    """The verdict in a sentence."""
    sums = verdict.selectExpr(
        *(
            "coalesce(sum(messages), 0L) as messages",
            "coalesce(sum(ranges), 0L) as ranges",
            "coalesce(sum(told), 0L) as told",
        ),
        *("coalesce(sum(faults), 0L) as faults", "count_if(verdict = 'broken') as broken", "count(*) as rows"),
    ).first()
    if sums is None or not sums.ranges:
        return Outcome(
            "nothing to audit: nothing was delivered yet, or no node writes deliveries down (journal.deliveries)"
        )
    if sums.faults:
        return Outcome(
            f"BROKEN: {sums.faults:,} undeclared faults in {sums.broken:,} of {sums.rows:,} hours of selectors; see gold.audit_faults",
            found=int(sums.faults),
        )
    told = f"; the {sums.told:,} that are missing were told to be" if sums.told else ""
    return Outcome(
        f"PROVEN: {sums.messages:,} messages in {sums.ranges:,} ranges came in order, once, without a hole{told}"
    )


JOB = Job(
    name="audit",
    about="what was published against what was handed over: every gap, repeat, reorder and hole; ends with 1 if one was not told",
    run=run,
    reads=tuple(f"bronze.{stream}" for stream in _STREAMS),
    writes=("gold.audit_ranges", "gold.audit_faults", "gold.audit_verdict"),
    kind="batch",
    every_s=300.0,
    options={"since": "Only what was handed over from this time on (2026-11-21, or with a time of day; UTC)."},
)
