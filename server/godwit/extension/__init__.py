"""Runs users' code: its thread and the checks at its boundary (host.py), and tasks that are restarted when they end (watched.py)."""

from .host import ExtensionHost, describe_error
from .watched import WatchedTask

__all__ = ["ExtensionHost", "WatchedTask", "describe_error"]
