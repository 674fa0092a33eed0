"""Where users' code runs: its thread and what may pass its boundary (host.py), and tasks around it that begin again (watched.py)."""

from .host import ExtensionHost, describe_error
from .watched import WatchedTask

__all__ = ["ExtensionHost", "WatchedTask", "describe_error"]
