"""Numbers of events that audits took, lost and failed at, and that wait, as metrics for /metrics."""

from __future__ import annotations

from ..monitoring.metric_specs import AUDIT_FIGURES, MetricSpec
from .runner import AuditRunner


def count_audits(runner: AuditRunner) -> dict[MetricSpec, float]:
    """Over all audits of the node."""
    counts = runner.counts
    return {figure: counts[figure.name.removeprefix("audit_")] for figure in AUDIT_FIGURES}
