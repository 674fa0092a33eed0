"""Weight, mean, squared deviation and maximum of many samples at once: rows of accumulators that can be merged.

A row has four numbers for each series in one array: a thousand series over fifteen months need some megabytes. Means are
merged by their difference (Chan, Golub, LeVeque 1979), not by sums of squares, which are inexact for large values close
together. Pure. Invariant: merged rows equal the accumulation of all samples at once.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

FIELDS = 4
"""weight, mean, squared deviation, maximum."""
EMPTY = (0.0, 0.0, 0.0, -math.inf)

Row = array  # of doubles


class Statistics(NamedTuple):
    """The statistics of one series in a window; the weight is the known time in seconds."""

    weight: float
    maximum: float
    mean: float
    deviation: float


def make_row(weight: float, values: Sequence[float]) -> Row[float]:
    """One sample of every series."""
    row = array("d")
    for value in values:
        row.extend((weight, value, 0.0, value))
    return row


def fill_row(row: Row[float], zeroed: Sequence[bool]) -> Row[float]:
    """Extend a row to the number of series. A series that began at zero was zero before; of others nothing is known."""
    for is_zero in zeroed[len(row) // FIELDS :]:
        row.extend((row[0], 0.0, 0.0, 0.0) if is_zero else EMPTY)
    return row


def merge_row(into: Row[float], other: Row[float]) -> None:
    """Adds what another row of the same length accumulated."""
    for at in range(0, len(into), FIELDS):
        weight = other[at]
        if weight <= 0.0:
            continue
        whole = into[at] + weight
        step = other[at + 1] - into[at + 1]
        into[at + 1] += step * (weight / whole)
        into[at + 2] += other[at + 2] + step * step * (into[at] * weight / whole)
        into[at] = whole
        into[at + 3] = max(into[at + 3], other[at + 3])


def merge_rows(rows: Sequence[Row[float]], count: int) -> Row[float]:
    """Merge all rows of `count` series, in two passes over each series, which is the most exact way."""
    merged = array("d", EMPTY * count)
    for at in range(0, count * FIELDS, FIELDS):
        weights = [row[at] for row in rows]
        whole = math.fsum(weights)
        if whole <= 0.0:
            continue
        means = [row[at + 1] for row in rows]
        mean = math.fsum(map(float.__mul__, weights, means)) / whole
        spread = math.fsum(weight * (each - mean) ** 2 for weight, each in zip(weights, means, strict=True))
        inner = math.fsum(row[at + 2] for row in rows)
        merged[at : at + FIELDS] = array("d", (whole, mean, spread + inner, max(row[at + 3] for row in rows)))
    return merged


def read_row(row: Row[float], series: int) -> Statistics | None:
    """The statistics of one series in a row; None if it has no samples."""
    weight, mean, squares, maximum = row[series * FIELDS : (series + 1) * FIELDS] or EMPTY
    return Statistics(weight, maximum, mean, math.sqrt(max(squares, 0.0) / weight)) if weight > 0.0 else None
