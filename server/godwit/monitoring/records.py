"""The metrics as rows of the journal's table `stats`: what is written when, and how a series becomes a row. Pure.

Owns the intervals: `now` at each interval, a window after its length, the long ones once a day. Except for the node's own
metrics, series that were always zero are left out, so that an idle node writes little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..engine import Statistic
from .moments import Statistics
from .stats_snapshot import NODE_SCOPE, Series
from .windows import DAY_S, WINDOWS

NOW = "now"


def is_due(before_s: float, now_s: float, interval_s: float) -> bool:
    """Whether an interval ended between two readings."""
    return now_s // interval_s != before_s // interval_s


def list_written(before_s: float, now_s: float, interval_s: float) -> list[str]:
    """The windows to write now."""
    intervals = ((name, max(min(window.seconds, DAY_S), interval_s)) for name, window in WINDOWS.items())
    return [name for name, length_s in intervals if is_due(before_s, now_s, length_s)]


def record_now(sample: Mapping[Series, float]) -> Iterator[Statistic]:
    """The rows of the last second."""
    for series, value in sample.items():
        if value or series.scope == NODE_SCOPE:
            yield (*_name(series), NOW, 0.0, (value, None, None, None))


def record_window(name: str, found: Mapping[Series, Statistics]) -> Iterator[Statistic]:
    """The rows of a window."""
    for series, (weight, maximum, mean, deviation) in found.items():
        if maximum or mean or series.scope == NODE_SCOPE:
            yield (*_name(series), name, weight, (None, maximum, mean, deviation))


def _name(series: Series) -> tuple[str, str, str]:
    """(metric, scope, label)."""
    return series.metric, series.scope[0], "/".join(series.scope[1:])
