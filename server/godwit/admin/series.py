"""The last 15 minutes, one sample a second, for the console's charts.

Pure: the caller passes the time and the values. Owns the stored samples (fixed columns, a fixed number of samples, eight
bytes a value) and computes rates from counters. Longer windows and their statistics are in monitoring.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

INTERVAL_MS = 1_000
SAMPLES_MAX = 900
SHARDS_MAX = 64


class Cost(NamedTuple):
    """The resources used by the process: CPU seconds since its start, and memory now."""

    cpu_s: float
    memory_bytes: int


NODE_GAUGES = ("subjects", "own_subjects", "messages", "message_bytes", "snapshot_bytes", "feed_entries")
NODE_COUNTERS = {"accepted": "published_per_s", "feed_overruns": "feed_overruns_per_s"}
SHARD_GAUGES = ("connections", "subscriptions", "window_bytes", "held_bytes", "slow_consumers")
SHARD_COUNTERS = {
    "accepted": "connects_per_s",
    "disconnected": "disconnects_per_s",
    "messages_in": "messages_in_per_s",
    "messages_out": "messages_out_per_s",
    "bytes_in": "bytes_in_per_s",
    "bytes_out": "bytes_out_per_s",
    "sends": "sends_per_s",
    "gaps": "gaps_per_s",
    "recovered": "recovered_per_s",
    "resynced": "resynced_per_s",
    "dropped": "dropped_per_s",
    "window_misses": "window_misses_per_s",
    "blocked_sends": "blocked_sends_per_s",
    "refused": "refused_per_s",
    "publishes_refused": "publishes_refused_per_s",
    "commands_refused": "commands_refused_per_s",
}
SHARD_COLUMNS = ("cpu_cores", *SHARD_GAUGES, *SHARD_COUNTERS.values())
NODE_COLUMNS = (*SHARD_COLUMNS, "memory_bytes", *NODE_GAUGES, *NODE_COUNTERS.values())
"""Columns of each shard; the node's value is their sum, except CPU, which is measured for the process."""


@dataclass(frozen=True, slots=True)
class _Reading:
    time_s: float
    counters: array[float]
    shards: list[array[float]]


class Series:
    """Columns with one value a second. The rates of a sample cover the time since the one before."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, array[float], list[array[float]]]] = deque(maxlen=SAMPLES_MAX)
        self._before: _Reading | None = None

    def add(self, time_ms: int, monotonic_s: float, stats: Mapping[str, Any], cost: Cost) -> None:
        """Add one read of the engine's statistics; the first only sets the start of the rates."""
        shards = list(stats.get("shards") or ())[:SHARDS_MAX]
        counters = [_count_shard(shard) for shard in shards]
        now = _Reading(monotonic_s, array("d", [cost.cpu_s, *(_read(stats, name) for name in NODE_COUNTERS)]), counters)
        before, self._before = self._before, now
        if before is None or len(before.shards) != len(now.shards) or now.time_s <= before.time_s:
            return
        elapsed_s = now.time_s - before.time_s
        columns = [
            _make_shard(shard, _rate(of, then, elapsed_s))
            for shard, of, then in zip(shards, now.shards, before.shards, strict=True)
        ]
        rates = _rate(now.counters, before.counters, elapsed_s)
        sums = [_add(column) for column in zip(*columns, strict=True)] or [math.nan] * len(SHARD_COLUMNS)
        gauges = (_read(stats, name) for name in NODE_GAUGES)
        node = array("d", [rates[0], *sums[1:], cost.memory_bytes, *gauges, *rates[1:]])
        self._samples.append((time_ms, node, columns))

    def show(self, after_ms: int, *, has_shards: bool) -> dict[str, Any]:
        """The samples after a time, as columns; null for unknown values."""
        chosen = [sample for sample in self._samples if sample[0] > after_ms]
        shards = len(chosen[-1][2]) if chosen and has_shards else 0
        return {
            "interval_ms": INTERVAL_MS,
            "samples_max": SAMPLES_MAX,
            "time_ms": [time_ms for time_ms, _, _ in chosen],
            "node": _name_columns(NODE_COLUMNS, [node for _, node, _ in chosen]),
            "shards": [
                _name_columns(SHARD_COLUMNS, [_pick(columns, shard) for _, _, columns in chosen])
                for shard in range(shards)
            ],
        }


def _read(figures: Mapping[str, Any], name: str) -> float:
    value = figures.get(name)
    return float(value) if isinstance(value, int | float) else math.nan


def _read_shard(shard: Mapping[str, Any], name: str) -> float:
    """A value of a shard, or the sum over its protocols."""
    if name in shard:
        return _read(shard, name)
    return _add(tuple(_read(protocol, name) for protocol in (shard.get("protocols") or {}).values()))


def _count_shard(shard: Mapping[str, Any]) -> array[float]:
    return array("d", [_read(shard, "cpu_seconds"), *(_read_shard(shard, name) for name in SHARD_COUNTERS)])


def _rate(now: array[float], before: array[float], elapsed_s: float) -> list[float]:
    return [
        max(a - b, 0.0) / elapsed_s if not math.isnan(a - b) else math.nan for a, b in zip(now, before, strict=True)
    ]


def _make_shard(shard: Mapping[str, Any], rates: list[float]) -> array[float]:
    return array("d", [rates[0], *(_read_shard(shard, name) for name in SHARD_GAUGES), *rates[1:]])


def _add(values: tuple[float, ...]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) if known else math.nan


def _pick(columns: list[array[float]], shard: int) -> array[float]:
    return columns[shard] if shard < len(columns) else array("d", [math.nan] * len(SHARD_COLUMNS))


def _name_columns(names: tuple[str, ...], rows: list[array[float]]) -> dict[str, list[float | None]]:
    return {name: [_show(row[at]) for row in rows] for at, name in enumerate(names)}


def _show(value: float) -> float | None:
    if math.isnan(value):
        return None
    return int(value) if value == int(value) or abs(value) >= 1000 else round(value, 3)
