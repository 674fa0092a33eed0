"""The engine's reports that the journal's disk fails or works again, for health and the log."""

from __future__ import annotations

from ..logs import read_logger
from .health import Health

EFFECTS = {
    "journal": ("journal", "publishes with ack=disk are rejected"),
    "snapshots_file": (
        "snapshots",
        "snapshots that only this file holds may be lost when the node stops; old segments are kept",
    ),
    "sealing": ("sealing", "segments are not sealed, or stay beyond their retention; nothing written is lost"),
}
"""By kind of report: its name in health and in the log's events, and what follows for users."""
DISK_REPORTS = tuple(EFFECTS)
"""The kinds of report that `take_disk_report` takes."""


def take_disk_report(health: Health, kind: str, reason: str | None) -> None:
    """Process a report. `reason` is the disk's error; None when it works again."""
    name, effect = EFFECTS[kind]
    setattr(health, name, reason or "")
    if reason is None:
        read_logger().info(f"{name}_recovered")
    else:
        read_logger().error(f"{name}_failing", reason=reason, effect=effect)
