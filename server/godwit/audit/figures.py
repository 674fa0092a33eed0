"""What audits took, lost and failed at, and how far they are behind, as figures for /metrics."""

from __future__ import annotations

from ..monitoring.figures import AUDIT_FIGURES, Figure
from .runner import AuditRunner


def count_audits(runner: AuditRunner) -> dict[Figure, float]:
    """Over all audits of the node."""
    counts = runner.counts
    return {figure: counts[figure.name.removeprefix("audit_")] for figure in AUDIT_FIGURES}
