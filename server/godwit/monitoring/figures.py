"""The node's figures for monitoring: each with a name, whether it only rises, and one sentence. Bounded by construction.

Figures are per node or per shard, never per subject, connection, pattern or identity: a million subjects must not make a
million time series. Pure; metrics.py writes them in the OpenMetrics form. What the engine counts under another name than
those here is shown as `godwit_engine_…` until it gets its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

SHARDS_MAX = 64


class Figure(NamedTuple):
    """One metric family before it has a value."""

    name: str
    kind: str
    sentence: str


class Sample(NamedTuple):
    """A figure's value, for a shard or (None) the node."""

    figure: Figure
    shard: str | None
    value: float


def list_samples(stats: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of one reading of the engine's statistics."""
    for name, value in stats.items():
        if is_number(value):
            yield Sample(find_figure(name), None, value)
    for number, shard in enumerate(stats.get("shards") or ()):
        if number < SHARDS_MAX and isinstance(shard, Mapping):
            for name, value in shard.items():
                if is_number(value) and name != "shard":
                    yield Sample(find_figure(f"shard_{name}"), str(shard.get("shard", number)), value)


def find_figure(name: str) -> Figure:
    """The figure of one of the engine's counters."""
    if name in GAUGES:
        return Figure(f"godwit_{name}", "gauge", GAUGES[name])
    if name in COUNTERS:
        return Figure(f"godwit_{name}", "counter", COUNTERS[name])
    return Figure(f"godwit_engine_{name}", "gauge", "A figure of the engine without a description yet.")


def is_number(value: object) -> bool:
    """Whether a value can be a sample."""
    return isinstance(value, int | float) and not isinstance(value, bool)


GAUGES: dict[str, str] = {
    "epoch": "The epoch that numbers subjects which begin now.",
    "subjects": "Subjects with messages, a snapshot or a listener.",
    "patterns": "Patterns somebody listens to.",
    "messages": "Messages kept in logs.",
    "message_bytes": "Bytes of the messages kept.",
    "snapshots": "Subjects with a snapshot.",
    "snapshot_bytes": "Bytes of merged fields beside the messages.",
    "keys": "Idempotence keys remembered.",
    "index_entries": "Arrivals remembered for marks.",
    "feed_entries": "Messages that the slowest shard has yet to read.",
    "feed_bytes": "Bytes of the messages that the slowest shard has yet to read.",
    "arrival": "Number of the last accepted message of this run.",
    "forgotten_arrival": "A mark before this arrival gets a gap.",
    "shard_connections": "Connections held.",
    "shard_subscriptions": "Subscriptions held.",
    "shard_streams": "Streams of encoded frames.",
    "shard_window_bytes": "Bytes of the streams' windows.",
    "shard_held_bytes": "Bytes of half-received messages and parked commands.",
    "shard_sockets": "Sockets the driver holds.",
}
COUNTERS: dict[str, str] = {
    "feed_falls": "Times a shard fell a whole feed behind.",
    "accepted": "Messages accepted.",
    "refused": "Messages refused by the node.",
    "repeats": "Publishes whose idempotence key was known.",
    "evicted_count": "Messages that left a log because it held too many.",
    "evicted_age": "Messages that left a log because they were too old.",
    "evicted_bytes": "Messages that left a log because the node held too many bytes.",
    "evicted_snapshots": "Snapshots that went because the node held too many bytes and nothing else was left to go.",
    "forgotten": "Subjects forgotten.",
    "reports_dropped": "Reports that came faster than Python took them.",
    "shard_accepted": "Connections accepted.",
    "shard_refused": "Connections refused.",
    "shard_disconnected": "Connections that ended.",
    "shard_messages_in": "Frames and requests received.",
    "shard_bytes_in": "Bytes received.",
    "shard_bytes_out": "Bytes sent.",
    "shard_sends": "Sends that carried messages.",
    "shard_short_sends": "Sends of which a socket took only a part.",
    "shard_blocked_sends": "Sends that a full socket did not take.",
    "shard_publishes_refused": "Publishes refused.",
    "shard_commands_refused": "Commands refused.",
    "shard_gaps": "Gaps told.",
    "shard_recovered": "Subscriptions that went on where they stood.",
    "shard_resynced": "Subscriptions that could not go on where they stood.",
    "shard_dropped": "Standard messages lost to slow readers.",
    "shard_caught_up": "Messages read from logs for connections that were behind.",
    "shard_fell_off": "Times a subscription fell off its stream's window.",
    "shard_reports_dropped": "Reports of this shard that were not made.",
    "shard_faults": "Connections given up for a fault of the node.",
    "shard_turns": "Turns of the shard's loop.",
    "shard_sockets_refused": "Connections closed at once because no descriptor was left.",
    "shard_receives_starved": "Receives that waited for a buffer.",
    "shard_enters": "System calls of the driver.",
}
