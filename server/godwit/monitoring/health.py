"""The node's condition, one word for health checks, the page and the log. Pure."""

from __future__ import annotations

from enum import StrEnum


class Condition(StrEnum):
    """Only in `ready` are new clients welcome."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"
    STOPPED = "stopped"


class Health:
    """The current condition. The node is alive until it failed or stopped; a draining node is alive but not ready."""

    def __init__(self) -> None:
        self.condition = Condition.STARTING
        self.reason = ""
        self.journal = ""
        """The error of the journal's disk while it fails. Such a node is alive and ready; only publishes with `ack=disk` are refused."""
        self.snapshots = ""
        """Why the journal's file of snapshots cannot be written; such a node is alive and ready."""
        self.sealing = ""
        """Why segments cannot be sealed or removed; such a node is alive and ready."""

    def change(self, condition: Condition, reason: str = "") -> None:
        """Change the condition; a failure stays until the node has stopped."""
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
