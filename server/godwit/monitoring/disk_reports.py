"""The engine's reports that the journal's disk fails or works again, for health and the log."""

from __future__ import annotations

from ..logs import read_logger
from .health import Health

DISK_REPORTS = ("journal", "snapshots_file", "sealing")
"""The kinds of report that `take_disk_report` takes."""


def take_disk_report(health: Health, kind: str, reason: str | None) -> None:
    """Process a report. `reason` is the disk's error; None when it works again."""
    if kind == "journal":
        health.journal = reason or ""
        if reason is None:
            read_logger().info("journal_recovered")
        else:
            read_logger().error("journal_failing", reason=reason, effect="publishes with ack=disk are rejected")
    elif kind == "snapshots_file":
        health.snapshots = reason or ""
        if reason is None:
            read_logger().info("snapshots_recovered")
        else:
            effect = "snapshots that only this file holds may be lost when the node stops; old segments are kept"
            read_logger().error("snapshots_failing", reason=reason, effect=effect)
    else:
        health.sealing = reason or ""
        if reason is None:
            read_logger().info("sealing_recovered")
        else:
            effect = "segments are not sealed, or stay beyond their retention; nothing written is lost"
            read_logger().error("sealing_failing", reason=reason, effect=effect)
