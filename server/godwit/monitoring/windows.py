"""Twelve windows over every series: the last 1, 5 and 15 minutes, hours, days and months (of 30 days), in bounded memory.

Rings of buckets, each ring's bucket a whole number of the finer ring's: a sample goes to the finest, a bucket that closes
goes to the next. A window is 60 to 180 buckets of one ring and the open buckets, so it covers its length to within one
bucket. If the node is younger than a window, the window covers the time since its start. Pure: the caller passes the
time.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from .moments import FIELDS, Row, Statistics, fill_row, make_row, merge_row, merge_rows, read_row
from .stats_snapshot import Series

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
MONTH_S = 30 * DAY_S
SERIES_MAX = 8_192
"""More than 64 shards with all protocols and codes need."""


class Window(NamedTuple):
    """One of the twelve."""

    name: str
    seconds: int
    level: int
    buckets: int


LEVELS = ((1, 60), (5, 180), (60, 60), (300, 180), (1_800, 48), (7_200, 180), (43_200, 60), (216_000, 180))
"""(seconds of a bucket, buckets kept) of each ring; each divides the next."""
WINDOWS: Mapping[str, Window] = MappingProxyType(
    {
        name: Window(name, seconds, level, seconds // LEVELS[level][0])
        for name, seconds, level in (
            ("1min", MINUTE_S, 0),
            ("5min", 5 * MINUTE_S, 1),
            ("15min", 15 * MINUTE_S, 1),
            ("1h", HOUR_S, 2),
            ("5h", 5 * HOUR_S, 3),
            ("15h", 15 * HOUR_S, 3),
            ("1d", DAY_S, 4),
            ("5d", 5 * DAY_S, 5),
            ("15d", 15 * DAY_S, 5),
            ("1mo", MONTH_S, 6),
            ("5mo", 5 * MONTH_S, 7),
            ("15mo", 15 * MONTH_S, 7),
        )
    }
)


class Bucket(NamedTuple):
    """The samples of the time from number × width on."""

    number: int
    row: Row[float]


class Ring:
    """One level: its closed buckets, the open one, and a cached sum of the closed ones."""

    def __init__(self, width_s: int, kept: int) -> None:
        self.width_s, self.kept = width_s, kept
        self.closed: deque[Bucket] = deque(maxlen=kept)
        self.open: Bucket | None = None
        self._sums: dict[int, tuple[int, int, Row[float]]] = {}

    def close(self) -> Bucket | None:
        """Close the open bucket."""
        bucket, self.open = self.open, None
        if bucket is not None:
            self.closed.append(bucket)
            self._sums.clear()
        return bucket

    def sum_closed(self, first: int, zeroed: Sequence[bool]) -> Row[float]:
        """The sum of the closed buckets from a number on."""
        known = self._sums.get(first)
        if known and known[:2] == (len(self.closed), len(zeroed)):
            return known[2]
        rows = [fill_row(bucket.row, zeroed) for bucket in self.closed if bucket.number >= first]
        merged = merge_rows(rows, len(zeroed))
        while len(self._sums) >= len(WINDOWS):
            self._sums.pop(next(iter(self._sums)))
        self._sums[first] = (len(self.closed), len(zeroed), merged)
        return merged


class Windows:
    """All windows over all series. `add` takes samples in the order of time; `read` returns the statistics of a window."""

    def __init__(self) -> None:
        self.rings = [Ring(width_s, kept) for width_s, kept in LEVELS]
        self.time_s = 0.0
        self._places: dict[Series, int] = {}
        self._zeroed: list[bool] = []

    @property
    def series(self) -> Sequence[Series]:
        """The series in the order of their indexes in a row."""
        return tuple(self._places)

    def add(self, time_s: float, weight: float, sample: Mapping[Series, float]) -> None:
        """One sample of every series, which represents `weight` seconds up to `time_s`."""
        self.time_s = max(self.time_s, time_s)
        for series in sample:
            self.place(series)
        if weight > 0:
            known = [sample.get(series) for series in self._places]
            row = make_row(weight, [value or 0.0 for value in known])
            for place, value in enumerate(known):
                if value is None and not self._zeroed[place]:  # a protocol or shard that no longer exists has no data
                    row[place * FIELDS] = 0.0
                    row[place * FIELDS + 3] = float("-inf")
            self._put(0, self.time_s, row)

    def place(self, series: Series) -> int:
        """The index of a series in a row, assigned at its first use; -1 beyond the limit."""
        if series not in self._places and len(self._places) < SERIES_MAX:
            self._places[series] = len(self._places)
            self._zeroed.append(series.begins_at_zero)
        return self._places.get(series, -1)

    def read(self, name: str) -> dict[Series, Statistics]:
        """The statistics of each series with samples in a window."""
        row = self._read_row(WINDOWS[name])
        found = ((series, read_row(row, place)) for series, place in self._places.items())
        return {series: statistics for series, statistics in found if statistics is not None}

    def _read_row(self, window: Window) -> Row[float]:
        ring = self.rings[window.level]
        first = int(self.time_s // ring.width_s) - window.buckets + 1
        row = array("d", ring.sum_closed(first, self._zeroed))
        for finer in self.rings[: window.level + 1]:
            bucket = finer.open
            if bucket is not None and bucket.number * finer.width_s // ring.width_s >= first:
                merge_row(row, fill_row(bucket.row, self._zeroed))
        return row

    def _put(self, level: int, time_s: float, row: Row[float]) -> None:
        ring = self.rings[level]
        number = int(time_s // ring.width_s)
        if ring.open is not None and ring.open.number != number:
            closed = ring.close()
            if closed is not None and level + 1 < len(self.rings):
                self._put(level + 1, closed.number * ring.width_s, array("d", closed.row))
        if ring.open is None:
            ring.open = Bucket(number, fill_row(row, self._zeroed))
        else:
            merge_row(fill_row(ring.open.row, self._zeroed), fill_row(row, self._zeroed))
