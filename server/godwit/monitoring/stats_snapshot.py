"""One reading of a node: the engine's counts by scope. Two readings give the metrics of the time between.

A scope is ("node",), ("shards", "0"), ("protocols", "json"), ("codes", "4114") or ("reasons", "expired"): the path in
/v1/stats and on `$node`. Pure. Invariant: a rate is never negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .metric_specs import CODE, CODE_NAMES, ENGINE_NAMES, NODE, PROTOCOL, REASON, SHARD, SHARDS_MAX, Kind, MetricSpec

Scope = tuple[str, ...]
Values = dict[MetricSpec, float]
NODE_SCOPE: Scope = ("node",)


class Series(NamedTuple):
    """A series of statistics: one metric of one scope."""

    scope: Scope
    metric: str

    @property
    def begins_at_zero(self) -> bool:
        """Whether its value was zero before it was first seen: codes and reasons appear when they first happen."""
        return self.scope[0] in ("codes", "reasons")


class StatsSnapshot(NamedTuple):
    """Values by scope, and when they were read (seconds of a monotonic clock)."""

    time_s: float
    scopes: Mapping[Scope, Values]


def take_reading(time_s: float, stats: Mapping[str, Any], process: Mapping[str, float]) -> StatsSnapshot:
    """Group the engine's statistics by scope. `process` has cpu_seconds and memory_bytes, as far as they are known."""
    shards = [shard for shard in (stats.get("shards") or ())[:SHARDS_MAX] if isinstance(shard, Mapping)]
    scopes: dict[Scope, Values] = {NODE_SCOPE: {}}
    for number, shard in enumerate(shards):
        scopes["shards", str(number)] = _sum_protocols(shard) | _pick(SHARD, shard)
    node = _add(scope for name, scope in scopes.items() if name != NODE_SCOPE)
    node = {figure: value for figure, value in node.items() if figure.name != "cpu_seconds"}
    scopes[NODE_SCOPE] = _pick(NODE, {**stats, **process}) | node
    for protocol in dict.fromkeys(name for shard in shards for name in _read_map(shard, "protocols")):
        scopes["protocols", protocol] = _add(
            _pick(PROTOCOL, _read_map(shard, "protocols").get(protocol, {})) for shard in shards
        )
    for figure in CODE:
        for code, count in count_by(CODE_NAMES[figure.name], shards).items():
            scopes.setdefault(("codes", code), {})[figure] = count
    for reason, count in count_by("gap_reasons", shards).items():
        scopes["reasons", reason] = {REASON[0]: count}
    return StatsSnapshot(time_s, scopes)


def compare(before: StatsSnapshot, after: StatsSnapshot) -> dict[Series, float]:
    """The metrics of the time between two readings: gauges unchanged, counters as growth a second."""
    elapsed_s = after.time_s - before.time_s
    found: dict[Series, float] = {}
    for scope, values in after.scopes.items():
        earlier = before.scopes.get(scope, {})
        for figure, value in values.items():
            if figure.kind is Kind.GAUGE:
                found[Series(scope, figure.metric)] = value
            elif figure.kind is Kind.COUNTER:
                growth = max(value - earlier.get(figure, 0.0), 0.0)
                found[Series(scope, figure.metric)] = growth / elapsed_s if elapsed_s > 0 else 0.0
    return found


def list_protocol_values(stats: Mapping[str, Any]) -> Iterator[tuple[str, str, Values]]:
    """(shard, protocol, values) of each protocol of each shard."""
    for number, shard in enumerate((stats.get("shards") or ())[:SHARDS_MAX]):
        for protocol, counters in _read_map(shard, "protocols").items():
            yield str(number), protocol, _pick(PROTOCOL, counters)


def _sum_protocols(shard: Mapping[str, Any]) -> Values:
    return _add(_pick(PROTOCOL, counters) for counters in _read_map(shard, "protocols").values())


def _pick(figures: Iterable[MetricSpec], values: Mapping[str, Any]) -> Values:
    found = ((figure, values.get(ENGINE_NAMES.get(figure.name, figure.name))) for figure in figures)
    return {figure: float(value) for figure, value in found if isinstance(value, int | float)}


def _add(parts: Iterable[Values]) -> Values:
    total: Values = {}
    for part in parts:
        for figure, value in part.items():
            total[figure] = total.get(figure, 0.0) + value
    return total


def count_by(name: str, shards: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The counts that shards have under keys, summed over all shards."""
    total: dict[str, float] = {}
    for shard in shards:
        for key, count in _read_map(shard, name).items():
            total[str(key)] = total.get(str(key), 0.0) + count
    return total


def _read_map(shard: Mapping[str, Any], name: str) -> Mapping[Any, Any]:
    found = shard.get(name)
    return found if isinstance(found, Mapping) else {}
