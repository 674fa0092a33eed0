"""The limits that bound tables of the node, their use, and one warning when a shared table is nearly full.

Pure, except for the log. The last fifth of a shared table is reserved for holders and addresses that use less than a
hundredth of it; beyond it others are refused. The warning comes before that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..logs import read_logger

USED_BY_NODE = {
    "subjects_max": "subjects",
    "logs_bytes_max": "message_bytes",
    "snapshots_bytes_max": "snapshot_bytes",
    "idempotency_keys_max": "keys",
    "mqtt_sessions_max": "mqtt_sessions",
    "mqtt_wills_bytes_max": "mqtt_wills_bytes",
    "feed_entries_max": "feed_entries",
    "feed_bytes_max": "feed_bytes",
    "index_entries_max": "index_entries",
    "rate_limit_entries_max": "accounts",
}
USED_BY_ALL_SHARDS = {"connections_max": "connections", "partial_bytes_max": "held_bytes"}
USED_BY_A_SHARD = {"windows_bytes_max": "window_bytes", "streams_per_shard_max": "streams"}
"""The value of the fullest shard, because each shard has the limit."""

SHARED = (
    "connections_max",
    "subjects_max",
    "mqtt_sessions_max",
    "mqtt_wills_bytes_max",
    "idempotency_keys_max",
    "streams_per_shard_max",
)
NEARLY_FULL, ROOM_AGAIN = 0.8, 0.7
"""Shares of the limit; between the two the state of a table does not change."""


def count_used(name: str, stats: Mapping[str, Any], shards: Sequence[Mapping[str, Any]]) -> int | None:
    """How much of a limit is used now; None if nothing counts it."""
    if name in USED_BY_NODE:
        return read_count(stats, USED_BY_NODE[name])
    if name in USED_BY_ALL_SHARDS:
        return sum(read_count(shard, USED_BY_ALL_SHARDS[name]) or 0 for shard in shards)
    if name in USED_BY_A_SHARD:
        return max((read_count(shard, USED_BY_A_SHARD[name]) or 0 for shard in shards), default=0)
    return None


def read_count(figures: Mapping[str, Any], name: str) -> int | None:
    value = figures.get(name)
    return int(value) if isinstance(value, int | float) else None


class FullnessWatch:
    """Warns once when a shared table exceeds 80 % of its limit, and logs once when it falls below 70 %."""

    def __init__(self) -> None:
        self.nearly_full: set[str] = set()
        self._evicted = 0

    def look(self, stats: Mapping[str, Any], limits: Mapping[str, int]) -> None:
        shards = list(stats.get("shards") or ())
        self._look_for_evicted(stats)
        for name in SHARED:
            used, limit = count_used(name, stats, shards), limits.get(name, 0)
            if used is None or limit <= 0:
                continue
            if used >= NEARLY_FULL * limit and name not in self.nearly_full:
                self.nearly_full.add(name)
                effect = "the rest is for holders and addresses that use less than a hundredth of it"
                read_logger().warning("table_nearly_full", limit=name, used=used, max=limit, effect=effect)
            elif used < ROOM_AGAIN * limit and name in self.nearly_full:
                self.nearly_full.remove(name)
                read_logger().info("table_recovered", limit=name, used=used, max=limit)

    def _look_for_evicted(self, stats: Mapping[str, Any]) -> None:
        """Warn about evicted snapshots, because their state is lost for new subscribers."""
        evicted = read_count(stats, "evicted_snapshots") or 0
        if evicted > self._evicted:
            raise_limit = "limits.snapshots_bytes_max or limits.logs_bytes_max"
            read_logger().warning("snapshots_evicted", count=evicted - self._evicted, set=raise_limit)
        self._evicted = evicted
