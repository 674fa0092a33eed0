"""The timeline as SVG: the faults, the rate of messages, and a line for each client. Pure.

One path for each client and kind of event keeps the page small for hundreds of clients and hours of faults.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

LEFT, RIGHT, WIDTH = 110, 12, 1_180
FAULT_ROWS = ("kill", "drain", "freeze", "files", "clock", "storm", "cut", "half-open", "stall")
FAULT_HEIGHT, CHART_HEIGHT, CLIENT_HEIGHT = 16, 46, 5
GAP_BETWEEN = 26


class Timeline:
    """Draws a document from top to bottom."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._end_ms: int = max(1, document["ended_ms"])
        self._y = 0
        self._parts: list[str] = []

    def draw(self) -> str:
        self._draw_axis_names()
        self._draw_faults()
        self._draw_charts()
        self._draw_clients()
        height = self._y + 24
        self._draw_axis(height)
        body = "".join(self._parts)
        return (
            f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="Faults over time, and what each client received">{body}</svg>'
        )

    def _x(self, at_ms: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, at_ms / self._end_ms))

    def _text(self, x: float, y: float, text: str, kind: str = "name", anchor: str = "start") -> None:
        self._parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def _draw_axis_names(self) -> None:
        self._text(0, 14, "Faults", "head")
        self._y = 22

    def _draw_faults(self) -> None:
        faults = self._document["faults"]
        sentences = self._document["fault_sentences"]
        for fault_kind in [row for row in FAULT_ROWS if any(fault["fault_kind"] == row for fault in faults)]:
            self._text(LEFT - 8, self._y + 12, fault_kind, anchor="end")
            for fault in (each for each in faults if each["fault_kind"] == fault_kind):
                begin = self._x(fault["from_ms"])
                width = max(3.0, self._x(fault["to_ms"]) - begin)
                when = f"{fault['from_ms'] / 1000:.1f} s: {sentences[fault_kind]}. {fault['detail']}"
                self._parts.append(
                    f'<rect class="fault {fault_kind}" x="{begin:.1f}" y="{self._y + 2}" width="{width:.1f}" '
                    f'height="{FAULT_HEIGHT - 4}" rx="2"><title>{escape(when)}</title></rect>'
                )
                if fault_kind in ("kill", "drain"):
                    self._parts.append(
                        f'<path class="restart" d="M{begin:.1f} {self._y + FAULT_HEIGHT}V100000" />'
                    )  # cut off by the edge of the picture
            self._y += FAULT_HEIGHT
        self._y += GAP_BETWEEN

    def _draw_charts(self) -> None:
        samples = self._document["samples"]
        rates = [
            (then[0], (then[2] - before[2]) * 1000 / max(1, then[0] - before[0])) for before, then in pairwise(samples)
        ]
        total = len(self._document["clients"])
        self._chart("Deliveries a second", rates, None)
        self._chart(f"Connected, of {total}", [(sample[0], float(sample[3])) for sample in samples], float(total))
        memory = [(sample[0], sample[4] / 1e6) for sample in samples if sample[4]]
        if memory:
            self._chart("Memory, MB", memory, None)

    def _chart(self, name: str, points: list[tuple[int, float]], top: float | None) -> None:
        top = top or max((value for _, value in points), default=1.0) or 1.0
        base = self._y + CHART_HEIGHT
        self._text(0, self._y - 6, name, "head")
        self._text(LEFT - 8, self._y + 8, f"{top:,.0f}", "scale", "end")
        self._text(LEFT - 8, base, "0", "scale", "end")
        drawn = " ".join(f"{self._x(at):.1f},{base - CHART_HEIGHT * value / top:.1f}" for at, value in points)
        if points:
            area = f"{self._x(points[0][0]):.1f},{base} {drawn} {self._x(points[-1][0]):.1f},{base}"
            self._parts.append(f'<polygon class="area" points="{area}" /><polyline class="line" points="{drawn}" />')
        self._parts.append(f'<path class="base" d="M{LEFT} {base}H{WIDTH - RIGHT}" />')
        self._y = base + GAP_BETWEEN

    def _draw_clients(self) -> None:
        wrongs: dict[str, list[dict[str, Any]]] = {}
        for finding in self._document["findings"]:
            wrongs.setdefault(finding["who"], []).append(finding)
        kind = ""
        self._text(0, self._y - 6, "Clients", "head")
        for client in self._document["clients"]:
            if client["kind"] != kind:
                kind = client["kind"]
                count = sum(each["kind"] == kind for each in self._document["clients"])
                self._y += 6
                self._text(LEFT - 8, self._y + 8, f"{kind} ({count})", anchor="end")
            self._client(client, wrongs.get(client["name"], []))
            self._y += CLIENT_HEIGHT

    def _client(self, client: dict[str, Any], wrongs: list[dict[str, Any]]) -> None:
        middle = self._y + CLIENT_HEIGHT / 2
        counts = client["counts"]
        story = (
            f"{client['name']} on {client['selector']} ({client['encoding']}): {counts['messages']:,} messages, "
            f"{counts['losses']} connections lost, {counts['gaps']} gaps for {counts['missed']:,} messages"
        )
        ups = "".join(
            f"M{self._x(begin):.1f} {middle}H{self._x(self._end_ms if end is None else end):.1f}"
            for begin, end in client["up"]
        )
        stalls = "".join(f"M{self._x(begin):.1f} {middle}H{self._x(end):.1f}" for begin, end in client["stalls"])
        gaps = "".join(f"M{self._x(at):.1f} {self._y}v{CLIENT_HEIGHT}" for at, _ in client["gaps"])
        wrong = "".join(f"M{self._x(each['at_ms']) - 4:.1f} {middle}h8" for each in wrongs)
        paths = "".join(
            f'<path class="{name}" d="{path}" />'
            for name, path in (("up", ups), ("stalled", stalls), ("gap", gaps), ("wrong", wrong))
            if path
        )
        self._parts.append(
            f'<g><title>{escape(story)}</title><path class="away" d="M{LEFT} {middle}H{WIDTH - RIGHT}" />{paths}</g>'
        )

    def _draw_axis(self, height: int) -> None:
        step = next(
            s
            for s in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 7_200, 36_000, 10**9)
            if self._end_ms / 1000 / s <= 14
        )
        for second in range(0, int(self._end_ms / 1000) + 1, step):
            x = self._x(second * 1000)
            self._parts.insert(0, f'<path class="grid" d="M{x:.1f} 18V{height - 20}" />')
            label = f"{second // 60}:{second % 60:02}" if self._end_ms > 120_000 else f"{second} s"
            self._text(x, height - 6, label, "scale", "middle")
