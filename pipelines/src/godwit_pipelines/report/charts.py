"""The report's charts as SVG, one for large screens and one for phones, where scaled-down text would not be readable. Pure.
Each has a text description, for readers who cannot see it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from math import ceil, floor, log10

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 190, 56, 10, 12, 24
SIZES = {"broad": (580, 7), "narrow": (280, 3)}
"""How wide, in what a letter is 10 high of, and into how many steps of time at most; the style sheet shows one of them."""
LABEL_HALF = 25
TICK_STEPS = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200),
    *(days * 86_400 for days in (1, 2, 4, 7, 14, 30, 61, 122)),
)


@dataclass(frozen=True)
class Series:
    """One line, area or row of bars: its name, its class in the style sheet, its points (Unix seconds, value)."""

    name: str
    kind: str
    points: Sequence[tuple[float, float]]
    shape: str = "line"
    """line, area (a line above a filled area), step (holds until the next point) or bar."""
    width_s: float = 10.0
    join_s: float = 0.0
    """A line joins points that are no further apart; 0: all of them."""


@dataclass
class Chart:
    """Series over one time, from zero, or on a scale of powers of ten."""

    title: str
    unit: str
    begin: float
    end: float
    series: Sequence[Series]
    is_log: bool = False
    write: Callable[[float], str] = field(default=lambda value: f"{value:,.0f}")

    def draw(self) -> str:
        values = [value for series in self.series for _, value in series.points if value > 0]
        if not values:
            return f'<figure class="chart"><figcaption>{self._caption()}</figcaption><p class="none">Nothing in this time.</p></figure>'
        self._top = max(values)
        self._low = min(values) if self.is_log else 0.0
        if self.is_log:
            self._low, self._top = _decade(self._low, down=True), _decade(self._top, down=False)
        else:
            self._top = _round_up(self._top)
        drawn = "".join(map(self._draw_for, SIZES))
        return f'<figure class="chart"><figcaption>{self._caption()}</figcaption>{drawn}</figure>'

    def _draw_for(self, size: str) -> str:
        self._width, self._ticks_max = SIZES[size]
        body, words = "".join([self._grid(), *map(self._draw, self.series)]), escape(self._in_words())
        return f'<svg class="{size}" viewBox="0 0 {self._width} {HEIGHT}" role="img" aria-label="{words}">{body}</svg>'

    def _caption(self) -> str:
        keys = "".join(f'<span><i class="{each.kind}"></i>{escape(each.name)}</span>' for each in self.series)
        return f"<b>{escape(self.title)}</b> <small>{escape(self.unit)}</small><span class=keys>{keys}</span>"

    def _in_words(self) -> str:
        parts = [
            f"{each.name}: at most {self.write(max(value for _, value in each.points))}"
            for each in self.series
            if each.points
        ]
        return f"{self.title}, {self.unit}. {'; '.join(parts)}."

    def _x(self, at: float) -> float:
        share = (at - self.begin) / max(1.0, self.end - self.begin)
        return LEFT + (self._width - LEFT - RIGHT) * min(1.0, max(0.0, share))

    def _y(self, value: float) -> float:
        room = HEIGHT - TOP - BOTTOM
        if self.is_log:
            share = (log10(max(value, self._low)) - log10(self._low)) / max(1e-9, log10(self._top) - log10(self._low))
        else:
            share = value / self._top
        return TOP + room * (1 - min(1.0, max(0.0, share)))

    def _grid(self) -> str:
        values = [self._top * n / 4 for n in range(5)]
        if self.is_log:
            values, value = [], self._low
            while value <= self._top * 1.01:
                values.append(value)
                value *= 10
        lines = "".join(
            f'<path class="grid" d="M{LEFT} {self._y(value):.1f}H{self._width - RIGHT}"/>'
            f'<text class="scale" x="{LEFT - 6}" y="{self._y(value) + 3.5:.1f}" text-anchor="end">{self.write(value)}</text>'
            for value in values
        )
        span = self.end - self.begin
        step = next((step for step in TICK_STEPS if span / step <= self._ticks_max), TICK_STEPS[-1])
        at, ticks = (int(self.begin) // step + 1) * step, ""
        while at <= self.end:
            pattern = "%m-%d" if step >= 86_400 else "%H:%M" if step >= 60 else "%H:%M:%S"
            label = datetime.fromtimestamp(at, UTC).strftime(pattern)
            x = min(self._x(at), self._width - LABEL_HALF)
            ticks += f'<text class="scale" x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>'
            at += step
        return lines + ticks

    def _draw(self, series: Series) -> str:
        points = [(self._x(at), self._y(value)) for at, value in series.points]
        if not points:
            return ""
        if series.shape == "bar":
            return self._bars(series)
        if series.shape == "line":
            return "".join(self._line(series.kind, run) for run in _runs(series))
        if series.shape == "step":
            points = [
                point
                for (x, y), (_, before) in zip(points, [points[0], *points], strict=False)
                for point in ((x, before), (x, y))
            ]
        drawn, base = _drawn(points), HEIGHT - BOTTOM
        area = f'<polygon class="area {series.kind}" points="{points[0][0]:.1f},{base} {drawn} {points[-1][0]:.1f},{base}"/>'
        return area + _stroke(series.kind, points)

    def _line(self, kind: str, run: Sequence[tuple[float, float]]) -> str:
        return _stroke(kind, [(self._x(at), self._y(value)) for at, value in run])

    def _bars(self, series: Series) -> str:
        base = self._y(0) if not self.is_log else HEIGHT - BOTTOM
        bars = ""
        for at, value in series.points:
            if value > 0:
                x, right, y = self._x(at), self._x(at + series.width_s), self._y(value)
                when = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
                bars += (
                    f'<rect class="bar {series.kind}" x="{x:.1f}" y="{y:.1f}" width="{max(2.0, right - x - 1):.1f}" '
                    f'height="{max(1.5, base - y):.1f}"><title>{when}: {self.write(value)} {escape(series.name)}</title></rect>'
                )
        return bars


def _drawn(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _stroke(kind: str, points: Sequence[tuple[float, float]]) -> str:
    """A line, or a dot where there is nothing to join."""
    if len(points) == 1:
        return f'<circle class="dot {kind}" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="3"/>'
    return f'<polyline class="line {kind}" points="{_drawn(points)}"/>'


def _runs(series: Series) -> list[list[tuple[float, float]]]:
    """The points that a line joins: a long time without measurements interrupts the line."""
    runs: list[list[tuple[float, float]]] = []
    for at, value in series.points:
        if runs and (not series.join_s or at - runs[-1][-1][0] <= series.join_s):
            runs[-1].append((at, value))
        else:
            runs.append([(at, value)])
    return runs


def _round_up(value: float) -> float:
    """The next number that reads well: 1, 2, 2.5 or 5 times a power of ten, and a multiple of four."""

    unit = 10.0 ** floor(log10(value)) if value > 0 else 1.0
    return (
        next((step * unit for step in (1, 2, 4, 6, 8) if step * unit >= value), 10 * unit)
        if value > 4
        else 4.0
        if value > 1
        else _fraction(value)
    )


def _fraction(value: float) -> float:
    top = 4.0
    while top / 10 >= value > 0:
        top /= 10
    return top


def _decade(value: float, *, down: bool) -> float:

    return float(10.0 ** (floor(log10(value)) if down else max(ceil(log10(value)), floor(log10(value)) + 1)))
