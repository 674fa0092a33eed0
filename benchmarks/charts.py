"""Charts as SVG, made from outcomes: a bar for each server at the median of its rounds, a line from lowest to highest."""

from __future__ import annotations

from html import escape
from typing import Any

WIDTH, LEFT, RIGHT, ROW, TOP = 720, 150, 90, 30, 44

STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}.title{font-weight:600}.bar{fill:#8c959f}.ours{fill:#1a7f64}"
    ".span{stroke:#57606a;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#adb5bd}.bar{fill:#6e7681}.ours{fill:#3fb68b}.span{stroke:#adb5bd}}"
)


def draw_chart(outcome: dict[str, Any], figure: str, title: str, scale: float = 1.0) -> str:
    """One metric of one outcome; servers without it are left out."""
    servers = {
        name: (server["median"][figure] * scale, [figures[figure] * scale for figures in server["rounds"]])
        for name, server in outcome["servers"].items()
        if figure in server["median"]
    }
    highest = max((max(values) for _, values in servers.values()), default=0.0) or 1.0
    height = TOP + ROW * len(servers) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="0" y="18">{escape(title)}</text>',
    ]
    for place, (name, (median, values)) in enumerate(servers.items()):
        lines += _draw_row(TOP + ROW * place, name, median, values, highest)
    return "\n".join([*lines, "</svg>", ""])


def _draw_row(y: int, name: str, median: float, values: list[float], highest: float) -> list[str]:
    def at(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * max(0.0, value) / highest, 1)

    ours = " ours" if name.startswith("godwit") else ""
    middle = y + ROW // 2 - 4
    return [
        f'<text x="{LEFT - 8}" y="{middle + 5}" text-anchor="end">{escape(name)}</text>',
        f'<rect class="bar{ours}" x="{LEFT}" y="{y}" width="{at(median) - LEFT:.1f}" height="{ROW - 8}" rx="2"/>',
        f'<line class="span" x1="{at(min(values))}" x2="{at(max(values))}" y1="{middle}" y2="{middle}"/>',
        f'<text x="{at(max(values)) + 8}" y="{middle + 5}">{_short(median)}</text>',
    ]


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
