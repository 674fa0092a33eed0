"""The section `demo`: live data to look at."""

from __future__ import annotations

from dataclasses import dataclass

from .option import option


@dataclass(frozen=True, slots=True)
class DemoConfig:
    """The demonstration: this host's live telemetry."""

    enabled: bool = option(False, "Publish this host's CPU, memory, disk, network and load on /host/NAME/….")
    interval_ms: int = option(1_000, "How often.", minimum=100, maximum=3_600_000)
