"""Sums of the authorizer's calls, as metrics for /metrics."""

from __future__ import annotations

from ..extension import ExtensionHost
from ..monitoring.metric_specs import Kind, MetricSpec
from .gate import Gate

WAITING = MetricSpec("authorizer_waiting", Kind.GAUGE, "questions", "Calls of the authorizer without an answer yet.")
STUCK = MetricSpec(
    "authorizer_stuck", Kind.GAUGE, "calls", "Calls of the authorizer that were cancelled and have not ended."
)


def count_authorizer(gate: Gate, host: ExtensionHost | None) -> dict[MetricSpec, float]:
    """All counts of the gate, and the number of stuck calls."""
    figures: dict[MetricSpec, float] = {
        MetricSpec(f"authorizer_{name}", Kind.COUNTER, "questions", f"Questions to the authorizer that were {name}."): n
        for name, n in gate.counts.items()
    }
    return {**figures, WAITING: gate.waiting, STUCK: host.stuck if host is not None else 0}
