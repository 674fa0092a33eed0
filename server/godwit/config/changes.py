"""What differs between two configurations, and which of it a running node can take over.

Pure. Whatever is not live (ports, limits, shards, the authorizer) is named as waiting for a restart, never half applied.
"""

from __future__ import annotations

from typing import NamedTuple

from .tree import OPTIONS, Config, read_value

LIVE_KEYS = frozenset(
    {"access.publish_tokens", "access.publish_tokens_file"}
    | {key for key in OPTIONS if key.startswith(("logging.", "drain."))} - {"logging.format"}
)
"""Keys that a running node takes over."""


class Changes(NamedTuple):
    """Keys that differ: those a running node takes over, and those that wait for its next start."""

    live: list[str]
    waiting: list[str]


def compare_configs(before: Config, after: Config) -> Changes:
    """The changes from one to the other, by key; patterns as one."""
    changed = [key for key in OPTIONS if read_value(before, key) != read_value(after, key)]
    waiting = [key for key in changed if key not in LIVE_KEYS]
    if before.patterns != after.patterns:
        waiting.append("patterns")
    return Changes([key for key in changed if key in LIVE_KEYS], waiting)
