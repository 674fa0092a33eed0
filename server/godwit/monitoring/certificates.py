"""The remaining validity of a node's server certificates, for /metrics.

The files are read when the engine reads them, at the start and at a reload, so that the metric describes the certificates
in use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .metric_specs import CERTIFICATE_FIGURE, MetricSpec


class Certificates:
    """The certificates of one node; `now_s` is Unix time."""

    def __init__(self, files: Iterable[str], *, now_s: Callable[[], float] = time.time) -> None:
        self._now_s = now_s
        self._ends_s: list[float] = []
        self.read(files)

    def read(self, files: Iterable[str]) -> None:
        """Read these files; one that cannot be read is left out, because the engine refuses it."""
        self._ends_s = [end_s for file in files if (end_s := _read_end_s(Path(file))) is not None]

    def count(self) -> Mapping[MetricSpec, float]:
        """The metrics; empty without certificates."""
        return {CERTIFICATE_FIGURE: min(self._ends_s) - self._now_s()} if self._ends_s else {}


def _read_end_s(file: Path) -> float | None:
    from cryptography import x509  # loaded only where there are certificates

    try:
        return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        return None
