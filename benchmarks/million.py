"""The pages of the million: the share of clients reached by each broadcast over time, and the cost of a connection, at every
size of the run.

Pure: reads one outcome. Curves are medians of the ten broadcasts; time is on a logarithmic axis, since sizes are.
"""

from __future__ import annotations

import math
import statistics
from html import escape
from typing import Any

from .charts import RIGHT, STYLE, WIDTH

LEFT, TOP, HEIGHT = 60, 44, 260
LINES = (
    ".grid{stroke:#8c959f;stroke-opacity:.35}polyline{fill:none;stroke-width:2.5}"
    ".c0{stroke:#8c959f}.c1{stroke:#6fb3a2}.c2{stroke:#2f9277}.c3{stroke:#0b5c47}"
    "@media(prefers-color-scheme:dark){.c0{stroke:#6e7681}.c1{stroke:#357a66}.c2{stroke:#3fb68b}.c3{stroke:#8fe8c8}}"
)
SHARES = {"p10": 0.10, "p25": 0.25, "p50": 0.50, "p75": 0.75, "p90": 0.90, "p99": 0.99, "max": 1.0}
MEMORY = (("user_kb_per_connection", "the node's own"), ("kernel_kb_per_socket", "the kernel's, for its socket"))


def list_sizes(outcome: dict[str, Any]) -> list[int]:
    """The sizes at which broadcasts were sent, in rising order."""
    steps = outcome["servers"]["godwit"]["runs"][0][0]["steps"]
    return sorted(int(step["name"].split()[-1]) for step in steps if step["name"].startswith("idle "))


def draw_spread(outcome: dict[str, Any]) -> str:
    """The share of the subscribers that a broadcast has reached, over time."""
    curves = {size: _read_curve(outcome, size) for size in list_sizes(outcome)}
    first = 10 ** math.floor(math.log10(min(ms for curve in curves.values() for ms, _ in curve)))
    last = 10 ** math.ceil(math.log10(max(ms for curve in curves.values() for ms, _ in curve)))

    def across(ms: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(ms / first) / math.log(last / first), 1)

    def down(share: float) -> float:
        return round(TOP + HEIGHT * (1 - share), 1)

    title = "Share of the subscribers a broadcast has reached, by the time since it was published"
    lines = _begin(title, TOP + HEIGHT + 30)
    for share in (0.0, 0.5, 1.0):
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{down(share)}" y2="{down(share)}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{down(share) + 4}" text-anchor="end">{share:.0%}</text>')
    tick = first
    while tick <= last:
        lines.append(f'<text x="{across(tick)}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{_time(tick)}</text>')
        tick *= 10
    for place, (size, curve) in enumerate(curves.items()):
        points = " ".join(f"{across(ms)},{down(share)}" for ms, share in curve)
        lines.append(f'<polyline class="c{min(place, 3)}" points="{points}"/>')
        end = across(curve[-1][0])
        lines.append(f'<text x="{end}" y="{TOP - 8}" text-anchor="middle">{_count(size)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def draw_memory(outcome: dict[str, Any]) -> str:
    """The memory of one connection at each size: the process, and the kernel."""
    sizes = list_sizes(outcome)
    rows = [[_figure(outcome, figure, size, sizes[-1]) for figure, _ in MEMORY] for size in sizes]
    highest = max(sum(row) for row in rows)
    row_height = 30
    lines = _begin("Memory of one connection, kB", TOP + row_height * len(sizes) + 30)
    for place, (size, row) in enumerate(zip(sizes, rows, strict=True)):
        y, x = TOP + row_height * place, float(LEFT + 40)
        lines.append(f'<text x="{x - 8}" y="{y + 15}" text-anchor="end">{_count(size)}</text>')
        for part, value in enumerate(row):
            width = round((WIDTH - LEFT - 40 - RIGHT) * value / highest, 1)
            lines.append(f'<rect class="bar{" ours" * (part == 0)}" x="{x}" y="{y}" width="{width}" height="22"/>')
            x += width
        lines.append(f'<text x="{x + 8:.1f}" y="{y + 15}">{row[0]:.2f} + {row[1]:.2f}</text>')
    sums = f"{MEMORY[0][1]} + {MEMORY[1][1]}"
    lines.append(f'<text x="{LEFT + 40}" y="{TOP + row_height * len(sizes) + 18}">{escape(sums)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def describe_sizes(outcome: dict[str, Any]) -> list[str]:
    """The figures as a table in Markdown, a column for each size."""
    sizes = list_sizes(outcome)
    names = [name for name in outcome["servers"]["godwit"]["median"] if "_at_" not in name and name != "connections"]
    lines = ["| connections |" + "|".join(map(_count, sizes)) + "|", "|---|" + "---|" * len(sizes)]
    for name in names:
        cells = [_figure(outcome, name, size, sizes[-1]) for size in sizes]
        lines.append(f"|{name}|" + "|".join(f"{cell:,.4g}" if cell < 1e4 else f"{cell:,.0f}" for cell in cells) + "|")
    return lines


def _read_curve(outcome: dict[str, Any], size: int) -> list[tuple[float, float]]:
    steps = outcome["servers"]["godwit"]["runs"][0][0]["steps"]
    found = [step["latency"] for step in steps if step["name"].endswith(f" to {size}")]
    return [
        (max(0.01, statistics.median(latency[f"{name}_us"] for latency in found) / 1e3), share)
        for name, share in SHARES.items()
    ]


def _figure(outcome: dict[str, Any], figure: str, size: int, largest: int) -> float:
    name = figure if size == largest else f"{figure}_at_{size}"
    return max(0.0, float(outcome["servers"]["godwit"]["median"][name]))


def _begin(title: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}{LINES}</style>",
        f'<text class="title" x="0" y="18">{escape(title)}</text>',
    ]


def _count(size: int) -> str:
    return f"{size:,}"


def _time(ms: float) -> str:
    return f"{ms / 1e3:g} s" if ms >= 1e3 else f"{ms:g} ms"
