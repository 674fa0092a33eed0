"""`delivery`: how much was delivered of what, how fast, to how many, and how fast the error budgets burn."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..tables.gold import WIDTHS
from ..transforms.delivery import burn_rates, delivery_windows, roll_up
from .job import Job, Outcome, Run
from .merging import merge_stream
from .options import FORGET_OPTION, check_forget, number_of

_BURN_BACK = timedelta(hours=6)


def run(run: Run) -> Outcome:
    """Windows of ten seconds from the streams; wider ones from the table, where it changed."""
    deliveries, latency = (run.lake.stream(f"bronze.{stream}") for stream in ("deliveries", "latency"))
    windows = delivery_windows(deliveries, latency, may_repeat=False)  # the tables hold each row once
    merge_stream(run, windows, "gold.delivery_10s", "delivery-windows", lambda rows, _: widen(run, rows))
    return Outcome()


def widen(run: Run, changed: DataFrame) -> None:
    """Everything that is made of the ten-second windows, from the first to the last that changed."""
    first, last = changed.agg(F.min("window_start"), F.max("window_start")).first() or (None, None)
    if first is None:
        return
    below = run.lake.read("gold.delivery_10s")
    for name, width in list(WIDTHS.items())[1:]:
        unit = width.split()[1]
        whole = below.filter(F.col("window_start") >= F.date_trunc(unit, F.lit(first)))
        whole = whole.filter(F.date_trunc(unit, "window_start") <= F.lit(last))
        run.lake.merge(f"gold.delivery_{name}", roll_up(whole, width))
        below = run.lake.read(f"gold.delivery_{name}")
    minutes = run.lake.read("gold.delivery_1m").filter(F.col("window_start") >= F.lit(first - _BURN_BACK))
    burned = burn_rates(minutes, *goal_of(run.options))
    run.lake.merge("gold.slo", burned.filter(F.col("minute") >= F.date_trunc("minute", F.lit(first))))


def goal_of(options: Mapping[str, str]) -> tuple[int, float]:
    """Within how many microseconds a delivery is good, and which share of them is to be."""
    target_us = int(number_of(options, "target_us", 65_536, 1, 1_000_000_000))
    return target_us, number_of(options, "objective", 0.999, 0, 0.999999)


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for a goal that cannot be: of all deliveries none may be bad, and no budget is left to burn."""
    goal_of(options)
    check_forget(options)


JOB = Job(
    name="delivery",
    about="how much was delivered of each selector, how fast, to how many; error budgets",
    run=run,
    reads=("bronze.deliveries", "bronze.latency"),
    writes=(*(f"gold.delivery_{name}" for name in WIDTHS), "gold.slo"),
    queries=("delivery-windows",),
    options={
        "target_us": "Good is a delivery that the kernel had within so many microseconds, up to a power of two; 65536 by default.",
        "objective": "The share of deliveries that is to be good: 0.999 by default.",
        **FORGET_OPTION,
    },
    check=check,
)
