"""`delivery`: deliveries by window: how many, how fast, to how many subscribers, and how fast error budgets are used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..tables.gold import WIDTHS
from ..transforms.delivery import burn_rates, delivery_windows, roll_up
from .job import Job, Outcome, Run
from .merging import merge_stream
from .options import FORGET_OPTION, check_forget, number_of

_BURN_BACK = timedelta(hours=6)
_QUERY = "delivery-windows"
_WIDER = (*(f"gold.delivery_{name}" for name in list(WIDTHS)[1:]), "gold.slo")
"""The tables that are made of the one of ten seconds."""


def run(run: Run) -> Outcome:
    """Fill windows of ten seconds from the streams, and wider windows from that table where it changed."""
    deliveries, latency = (run.lake.stream(f"bronze.{stream}") for stream in ("deliveries", "latency"))
    windows = delivery_windows(deliveries, latency, may_repeat=False)  # the tables hold each row once
    merge_stream(run, windows, "gold.delivery_10s", _QUERY, lambda rows, batch: widen(run, rows, batch), also=_WIDER)
    return Outcome()


def widen(run: Run, changed: DataFrame, batch: int) -> None:
    """Fill every table that is made of the ten-second windows, from the first to the last that changed. Each table keeps the batch
    number, so that a table that was removed or restored from a copy is noticed: only changes are merged, so everything else would be
    missing in it.
    """
    done: dict[str, Any] = {"app": run.app(_QUERY), "batch": batch}
    first, last = changed.agg(F.min("window_start"), F.max("window_start")).first() or (None, None)
    if first is None:
        for name in _WIDER:
            run.lake.merge(name, run.lake.read(name).limit(0), **done)
        return
    below = run.lake.read("gold.delivery_10s")
    for name, width in list(WIDTHS.items())[1:]:
        unit = width.split()[1]
        whole = below.filter(F.col("window_start") >= F.date_trunc(unit, F.lit(first)))
        whole = whole.filter(F.date_trunc(unit, "window_start") <= F.lit(last))
        run.lake.merge(f"gold.delivery_{name}", roll_up(whole, width), **done)
        below = run.lake.read(f"gold.delivery_{name}")
    minutes = run.lake.read("gold.delivery_1m").filter(F.col("window_start") >= F.lit(first - _BURN_BACK))
    burned = burn_rates(minutes, *goal_of(run.options))
    run.lake.merge("gold.slo", burned.filter(F.col("minute") >= F.date_trunc("minute", F.lit(first))), **done)


def goal_of(options: Mapping[str, str]) -> tuple[int, float]:
    """The goal: the latency in microseconds up to which a delivery is good, and the share that must be good."""
    target_us = int(number_of(options, "target_us", 65_536, 1, 1_000_000_000))
    return target_us, number_of(options, "objective", 0.999, 0, 0.999999)


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for a goal that is not valid: if every delivery must be good, no error budget is left."""
    goal_of(options)
    check_forget(options)


JOB = Job(
    name="delivery",
    about="aggregates deliveries by selector: how many, how fast, to how many subscribers; error budgets",
    run=run,
    reads=("bronze.deliveries", "bronze.latency"),
    writes=(*(f"gold.delivery_{name}" for name in WIDTHS), "gold.slo"),
    queries=(_QUERY,),
    options={
        "target_us": "A delivery is good within this time in microseconds, rounded up to a power of two. Default: 65536.",
        "objective": "Target share of good deliveries. Default: 0.999.",
        **FORGET_OPTION,
    },
    check=check,
)
