"""`usage`: what each tenant used, hour by hour."""

from __future__ import annotations

from ..transforms.usage import usage
from .job import Job, Outcome, Run
from .merging import merge_stream

_STREAMS = ("messages", "deliveries", "access")


def run(run: Run) -> Outcome:
    """The hours that new rows belong to."""
    messages, deliveries, access = (run.lake.stream(f"bronze.{stream}") for stream in _STREAMS)
    merge_stream(run, usage(messages, deliveries, access), "gold.usage_1h", "usage-1h")
    return Outcome()


JOB = Job(
    name="usage",
    about="what each tenant used, hour by hour",
    run=run,
    reads=tuple(f"bronze.{stream}" for stream in _STREAMS),
    writes=("gold.usage_1h",),
)
