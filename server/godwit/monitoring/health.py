"""The node's condition, as one word that health checks, the page and the log share. Pure."""

from __future__ import annotations

from enum import StrEnum


class Condition(StrEnum):
    """`ready` is the only one in which new clients are welcome."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"
    STOPPED = "stopped"


class Health:
    """Where the node is in its life. It is alive until it failed or stopped; draining is alive but not ready."""

    def __init__(self) -> None:
        self.condition = Condition.STARTING
        self.reason = ""
        self.journal = ""
        """What the journal's disk says while it fails; such a node is alive and ready, but for who needs the disk."""
        self.snapshots = ""
        """Why the journal's file of snapshots cannot be written; such a node is alive and ready."""

    def change(self, condition: Condition, reason: str = "") -> None:
        """Moves on; a failure stays the last word until the node stopped."""
        if self.condition is Condition.FAILED and condition is not Condition.STOPPED:
            return
        self.condition = condition
        self.reason = reason

    @property
    def is_ready(self) -> bool:
        return self.condition is Condition.READY

    @property
    def is_alive(self) -> bool:
        return self.condition not in (Condition.FAILED, Condition.STOPPED)
