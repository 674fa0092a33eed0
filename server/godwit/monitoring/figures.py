"""The node's figures for monitoring: each with a name, whether it only rises, and one sentence. Bounded by construction.

Figures are per node or per shard, never per subject, connection, pattern or identity: a million subjects must not make a
million time series. Pure; metrics.py writes them in the OpenMetrics form. What the engine counts under another name than
those here is shown as `godwit_engine_…` until it gets its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

SHARDS_MAX = 64


class Figure(NamedTuple):
    """One metric family before it has a value."""

    name: str
    kind: str
    sentence: str


class Sample(NamedTuple):
    """A figure's value, for a shard or (None) the node."""

    figure: Figure
    shard: str | None
    value: float


def list_samples(stats: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of one reading of the engine's statistics."""
    for name, value in stats.items():
        if is_number(value):
            yield Sample(find_figure(name), None, value)
    for number, shard in enumerate(stats.get("shards") or ()):
        if number < SHARDS_MAX and isinstance(shard, Mapping):
            for name, value in shard.items():
                if is_number(value) and name != "shard":
                    yield Sample(find_figure(f"shard_{name}"), str(shard.get("shard", number)), value)


def find_figure(name: str) -> Figure:
    """The figure of one of the engine's counters."""
    if name in GAUGES:
        return Figure(f"godwit_{name}", "gauge", GAUGES[name])
    if name in COUNTERS:
        return Figure(f"godwit_{name}", "counter", COUNTERS[name])
    return Figure(f"godwit_engine_{name}", "gauge", "A figure of the engine without a description yet.")


def is_number(value: object) -> bool:
    """Whether a value can be a sample."""
    return isinstance(value, int | float) and not isinstance(value, bool)


GAUGES: dict[str, str] = {}
COUNTERS: dict[str, str] = {}
