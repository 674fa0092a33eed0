"""Metrics of dispatch in the format of Prometheus.

Counted from the event feed since the start. Labels are bounded: tenants beyond `TENANTS_MAX` count as `other`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .watcher import Fresh

TENANTS_MAX = 100
OTHER = "other"


class DispatchMetrics:
    """Counts of one process."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._tenants: set[str] = set()

    def take(self, fresh: Fresh) -> None:
        """Count new events."""
        for tenant, _, channel, kind, count in fresh.rows:
            family, _, state = kind.partition(".")
            if family == "delivery":
                self._counts[self._label(tenant), channel, state] += count

    def show(self, values: Mapping[str, tuple[str, float]]) -> str:
        """The whole text; `values` has more metrics: name → help and value."""
        lines = [
            "# HELP godwit_dispatch_deliveries_total Deliveries that reached a state.",
            "# TYPE godwit_dispatch_deliveries_total counter",
        ]
        for (tenant, channel, state), count in sorted(self._counts.items()):
            labels = f'tenant="{_escape(tenant)}",channel="{channel}",state="{state}"'
            lines.append(f"godwit_dispatch_deliveries_total{{{labels}}} {count}")
        for name, (text, value) in values.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"

    def _label(self, tenant: str) -> str:
        if tenant not in self._tenants and len(self._tenants) >= TENANTS_MAX:
            return OTHER
        self._tenants.add(tenant)
        return tenant


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
