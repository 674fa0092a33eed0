"""`audit`: compares deliveries with published messages. Exits with code 1 if it finds a fault that was not reported to the client.

It judges whole subscriptions, so it reads the tables as they are, in each round again. With `since` it leaves out whole subscriptions and
hours, so that its three tables agree. Each table is replaced in one commit, all at the same time: if a run is killed in between, they can
be of two audits until the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ..beside import do_beside
from ..errors import TableMissing
from ..lake import Lake
from ..source.places import find_runs
from ..transforms.audit import audited, whole_since
from ..transforms.ranges import Range, merged, without
from ..transforms.runs import collect
from ..transforms.torn import find_torn
from ..words import counted
from .erasures import erased_arrivals, erased_ranges
from .job import Job, Outcome, Run
from .options import time_of
from .quarantined import QUARANTINE, damaged_ranges

WERE_ERASED = (
    "were erased before erasures recorded positions: their delivery cannot be proven, and a fault may be one of them"
)
_EXCUSED = "cannot be judged, because the journal lost rows there"
_TEARING = ("deliveries", "access")
_STREAMS = ("deliveries", "messages", "access", "runs")
"""In the order in which they are read: what deliveries are judged by has landed before them."""


def run(run: Run) -> Outcome:
    """Judge all deliveries that have landed, or those from --option since=TIME on."""
    lake, since = run.lake, time_of(run.options, "since")
    damaged = damaged_ranges(lake, "messages")
    if lake.exists("bronze.deliveries") and not lake.exists("bronze.messages") and not has_landed_none(lake, damaged):
        raise TableMissing(f"bronze.messages is not in {lake.folder}: bronze.deliveries cannot be checked; run land")
    deliveries, messages, access, runs = (lake.read(f"bronze.{stream}") for stream in _STREAMS)
    newest = ""
    if since is not None:
        newest = tell_newest(deliveries, since)
        since = whole_since(deliveries, since)
        deliveries = deliveries.filter(F.col("time") >= F.lit(since))

    def write(table: str, rows: DataFrame) -> None:
        if since is None:
            lake.replace(table, rows)
        else:
            lake.replace_since(table, rows, since)

    erased, unplaced = erased_arrivals(lake)
    with audited(deliveries, messages, access, runs, erased, lambda: look_for_torn(lake), damaged) as found:
        do_beside(
            run.spark,
            lambda: write("gold.audit_verdict", found.verdict),  # which takes longest to plan
            lambda: write("gold.audit_ranges", found.ranges),
            lambda: write("gold.audit_faults", found.faults),
        )
    if newest:
        return Outcome(newest)
    outcome = sum_up(lake.read("gold.audit_verdict"))
    if not unplaced:
        return outcome
    said = "UN" * outcome.text.startswith("PROVEN") + outcome.text
    return replace(outcome, text=f"{said}\n{counted(unplaced, 'message')} {WERE_ERASED}")


def tell_newest(deliveries: DataFrame, since: datetime) -> str:
    """A sentence with the time of the last delivery if it is before `since`; otherwise empty."""
    newest = collect(deliveries.agg(F.max("time").alias("time")))[0]["time"]
    if not newest or newest >= since:
        return ""
    asked, last = (f"{time:%Y-%m-%d %H:%M:%S} UTC" for time in (since, newest))
    return f"nothing was delivered since {asked}: the newest row of bronze.deliveries is from {last}"


def look_for_torn(lake: Lake) -> DataFrame | None:
    """Where rows of `deliveries` or `access` are missing. The whole tables are read, so that rows which the audit leaves out do not look
    missing.
    """
    deliveries, access = (lake.read(f"bronze.{stream}") for stream in _TEARING)
    erased = (erased_ranges(lake, stream) for stream in _TEARING)
    return find_torn(deliveries, access, lake.read("bronze.runs"), *erased)


def has_landed_none(lake: Lake, damaged: Mapping[tuple[str, str], Sequence[Range]]) -> bool:
    """Whether every message that `land` has passed is in quarantine or cannot be read yet. Then bronze.messages need not exist."""
    checkpoint = Path(lake.checkpoint("land-messages"))
    if not checkpoint.is_dir():
        return False
    for node, passed in find_runs(checkpoint, "messages").items():
        gone = merged(chain(*(damaged.get((node, run), ()) for run in ("", *(each.run for each in passed)))))
        if without([(0, each.next) for each in passed], gone):
            return False
    return True


def sum_up(verdict: DataFrame) -> Outcome:
    """The verdict in one sentence."""
    sums = verdict.selectExpr(
        *(
            "coalesce(sum(messages), 0L) as messages",
            "coalesce(sum(ranges), 0L) as ranges",
            "coalesce(sum(reported), 0L) as reported",
            "coalesce(sum(excused), 0L) as excused",
        ),
        *("coalesce(sum(faults), 0L) as faults", "count_if(verdict = 'broken') as broken", "count(*) as rows"),
        "count_if(verdict = 'unproven') as unproven",
        *(
            f"coalesce(sum(if(verdict = 'unproven', 0L, {name})), 0L) as sure_{name}"
            for name in ("messages", "ranges", "reported", "excused")
        ),
    ).first()
    return say_verdict(sums)


def say_verdict(sums: Row | None) -> Outcome:
    """The sentence for these sums over gold.audit_verdict."""
    if sums is None or not sums.ranges:
        return Outcome(
            "nothing to audit: nothing was delivered yet, or no node records deliveries (journal.deliveries)"
        )
    if sums.faults:
        return Outcome(
            f"BROKEN: {counted(sums.faults, 'undeclared fault')} in {sums.broken:,} of {counted(sums.rows, 'hour')} of selectors; "
            "see gold.audit_faults",
            found=int(sums.faults),
        )
    if sums.unproven:
        rest = f"; of the others {say_in_order(sums.sure_messages, sums.sure_ranges)}"
        rest += describe_declared(sums.sure_reported, sums.sure_excused)
        return Outcome(
            f"UNPROVEN: {sums.unproven:,} of {counted(sums.rows, 'hour')} of selectors may concern messages "
            f"that were erased or never landed; they show no fault{rest if sums.sure_ranges else ''}"
        )
    rest = describe_declared(sums.reported, sums.excused)
    return Outcome(f"PROVEN: {say_in_order(sums.messages, sums.ranges)}{rest}")


def say_in_order(messages: int, ranges: int) -> str:
    """The part of the sentence about deliveries without a fault."""
    verb = "was" if messages == 1 else "were"
    return f"{counted(messages, 'message')} in {counted(ranges, 'range')} {verb} delivered in order and once, without a loss"


def describe_declared(reported: int, excused: int) -> str:
    """The end of the sentence: messages that were missing without being a fault, because a gap reported them or the journal explains
    them.
    """
    said = f"; {counted(reported, 'missing message')} reported to clients" if reported else ""
    return said + (f"; {counted(excused, 'message')} {_EXCUSED}" if excused else "")


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid if `since` is not a time."""
    time_of(options, "since")


JOB = Job(
    name="audit",
    about="compares deliveries with publishes, names every gap, duplicate, reordering and loss; exit code 1 if one was not reported",
    run=run,
    reads=(*(f"bronze.{stream}" for stream in _STREAMS), QUARANTINE, "ops.erased", "ops.erasures"),
    writes=("gold.audit_ranges", "gold.audit_faults", "gold.audit_verdict"),
    kind="batch",
    every_s=300.0,
    options={
        "since": "Judge only deliveries since this time in UTC (2026-11-21, also with a time of day) or this duration before each round "
        "(24h). Begins earlier where a subscription of these hours did.",
    },
    check=check,
)
