"""Writes the node's figures in the OpenMetrics form, read from the engine when somebody scrapes and never before.

Owns the exposition; the figures are figures.py's. Its own registry: whoever embeds a node keeps theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from .figures import Figure, Sample, list_samples

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The metrics of one node. `read_stats` is the engine's, `read_counts` gives what Python counts itself."""

    def __init__(
        self, read_stats: Callable[[], Mapping[str, Any]], read_counts: Callable[[], Mapping[Figure, float]]
    ) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Figures(read_stats, read_counts))
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        """One scrape; takes the time of reading the engine's statistics once."""
        text: bytes = generate_latest(self._registry)  # type: ignore[no-untyped-call]  # the library's own gap
        return text


class _Figures(Collector):
    def __init__(
        self, read_stats: Callable[[], Mapping[str, Any]], read_counts: Callable[[], Mapping[Figure, float]]
    ) -> None:
        self._read_stats = read_stats
        self._read_counts = read_counts

    def describe(self) -> list[Metric]:
        return []  # registering must not read the engine

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for sample in self._list_all():
            family = families.get(sample.figure.name) or _make_family(sample)
            families[sample.figure.name] = family
            family.add_metric([] if sample.shard is None else [sample.shard], sample.value)  # type: ignore[attr-defined]  # each family has it, Metric not
        yield from families.values()

    def _list_all(self) -> Iterator[Sample]:
        yield from list_samples(self._read_stats())
        for figure, value in self._read_counts().items():
            yield Sample(figure, None, value)


def _make_family(sample: Sample) -> Metric:
    make = CounterMetricFamily if sample.figure.kind == "counter" else GaugeMetricFamily
    return make(sample.figure.name, sample.figure.sentence, labels=[] if sample.shard is None else ["shard"])
