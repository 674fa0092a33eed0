"""The node's metrics in OpenMetrics format, read from the engine at each scrape.

Owns the exposition: the families and their labels. Labels are shards, protocols, codes, reasons, conditions and names of
limits: their number is bounded, and no client chooses them. It uses its own registry, not the global one of an embedding
program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ..codes import CODES
from ..limits import LIMITS
from .health import Condition
from .metric_specs import CODE, FAILED, LIMIT, NODE, PROCESS, REACHED, REASON, SHARD, Kind, MetricSpec
from .stats_snapshot import NODE_SCOPE, Scope, Values, count_by, list_protocol_values, take_reading

_LIMITS = frozenset(limit.name for limit in LIMITS)


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the values: the engine, counters in Python, the node's description, and its limits by name."""

    read_stats: Callable[[], Mapping[str, Any]]
    read_counts: Callable[[], Mapping[MetricSpec, float]]
    describe: Callable[[], Mapping[str, Any]]
    limits: Mapping[str, int]


class Sample(NamedTuple):
    """A value of a family."""

    name: str
    figure: MetricSpec
    labels: Mapping[str, str]
    value: float


class Metrics:
    """The metrics of one node."""

    def __init__(self, sources: Sources) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Figures(sources))
        ProcessCollector(registry=self._registry)

    def render(self, is_old: bool = False) -> tuple[str, bytes]:
        """The text of one scrape and its media type; takes as long as one read of the engine's statistics."""
        if is_old:
            return exposition.CONTENT_TYPE_LATEST, exposition.generate_latest(self._registry)
        return CONTENT_TYPE_LATEST, generate_latest(self._registry)  # type: ignore[no-untyped-call]  # the library's own gap


class _Figures(Collector):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def describe(self) -> list[Metric]:
        return []  # registering must not read the engine

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for sample in self._list_samples():
            family = families.get(sample.name) or _make_family(sample)
            families[sample.name] = family
            family.add_metric(list(sample.labels.values()), sample.value)  # type: ignore[attr-defined]  # each family has it, Metric not
        yield from families.values()
        yield from _describe(self._sources.describe())

    def _list_samples(self) -> Iterator[Sample]:
        stats = self._sources.read_stats()
        yield from list_samples(stats)
        for figure, value in self._sources.read_counts().items():
            yield Sample(f"godwit_{figure.name}", figure, {}, value)
        for name, number in self._sources.limits.items():
            yield Sample("godwit_limit", LIMIT, {"limit": name}, number)


def list_samples(stats: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of one read of the engine's statistics."""
    scopes = take_reading(0.0, stats, {}).scopes
    for figure in NODE:
        if figure.name not in PROCESS and figure in scopes[NODE_SCOPE]:
            yield Sample(f"godwit_{figure.name}", figure, {}, scopes[NODE_SCOPE][figure])
    for shard, protocol, values in list_protocol_values(stats):
        for figure, value in values.items():
            yield Sample(f"godwit_{figure.name}", figure, {"shard": shard, "protocol": protocol}, value)
    for number, shard_stats in enumerate(stats.get("shards") or ()):
        values = scopes.get(("shards", str(number)), {})
        for figure in SHARD:
            if figure in values:
                yield Sample(f"godwit_shard_{figure.name}", figure, {"shard": str(number)}, values[figure])
        yield Sample("godwit_shard_failed", FAILED, {"shard": str(number)}, float(bool(shard_stats.get("has_failed"))))
    for name, count in count_by("limit_hits", stats.get("shards") or ()).items():
        if name in _LIMITS:
            yield Sample("godwit_limit_reached", REACHED, {"limit": name}, count)
    for scope, values in scopes.items():
        yield from _list_keyed(scope, values)


def _list_keyed(scope: Scope, values: Values) -> Iterator[Sample]:
    for figure, value in values.items():
        if scope[0] == "codes" and figure in CODE:
            facts = CODES.get(int(scope[1]))
            labels = {"code": scope[1], "name": facts.name if facts else "other"}
            yield Sample(f"godwit_{figure.name}_by_code", figure, labels, value)
        elif scope[0] == "reasons" and figure in REASON:
            yield Sample(f"godwit_{figure.name}_by_reason", figure, {"reason": scope[1]}, value)


def _describe(facts: Mapping[str, Any]) -> Iterator[Metric]:
    info = InfoMetricFamily("godwit", "Which node this is.")
    info.add_metric([], {"node": str(facts.get("node", "")), "version": str(facts.get("version", ""))})
    yield info
    states = StateSetMetricFamily("godwit_condition", "The node's condition: exactly one is 1.")
    states.add_metric([], {str(each): facts.get("condition") == str(each) for each in Condition})
    yield states
    yield GaugeMetricFamily(
        "godwit_uptime_seconds", "Time since the node was built.", value=facts.get("uptime_ms", 0) / 1000
    )


def _make_family(sample: Sample) -> Metric:
    make = CounterMetricFamily if sample.figure.kind is Kind.COUNTER else GaugeMetricFamily
    return make(sample.name, sample.figure.sentence, labels=list(sample.labels))
