"""`usage`: aggregates usage by tenant and hour."""

from __future__ import annotations

from ..transforms.usage import usage
from .job import Job, Outcome, Run
from .merging import merge_stream
from .options import FORGET_OPTION, check_forget

_STREAMS = ("messages", "deliveries", "access")
_LATENESS = "7 days"
"""A sum for each hour and tenant is little to remember: a node may land that much later than the others."""


def run(run: Run) -> Outcome:
    """Aggregate the hours that new rows belong to."""
    messages, deliveries, access = (run.lake.stream(f"bronze.{stream}") for stream in _STREAMS)
    sums = usage(messages, deliveries, access, _LATENESS, may_repeat=False)  # the tables hold each row once
    merge_stream(run, sums, "gold.usage_1h", "usage-hours")
    return Outcome()


JOB = Job(
    name="usage",
    about="aggregates usage by tenant and hour",
    run=run,
    reads=tuple(f"bronze.{stream}" for stream in _STREAMS),
    writes=("gold.usage_1h",),
    queries=("usage-hours",),
    options=FORGET_OPTION,
    check=check_forget,
)
