"""Every figure of a node: name, kind, unit and one sentence. /v1/stats, $node, /metrics, the reference page come from here.

Figures are the node's, a shard's, a wire's, a code's or a reason's, never a subject's, connection's, pattern's or identity's: a
million subjects must not make a million time series. Pure. The engine counts under these names; what it should count
under another is shown by nobody, and a test says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

SHARDS_MAX = 64


class Kind(StrEnum):
    """A gauge goes up and down, a counter only up; a number says where something stands and has no statistics."""

    GAUGE = "gauge"
    COUNTER = "counter"
    NUMBER = "number"


class MetricSpec(NamedTuple):
    """One figure before it has a value. A counter's metric is its growth a second, under a name of its own."""

    name: str
    kind: Kind
    unit: str
    sentence: str
    rate: str = ""

    @property
    def metric(self) -> str:
        """Its name in /v1/stats and on `$node`; empty for what has no statistics."""
        if self.kind is Kind.NUMBER:
            return ""
        return self.rate or (f"{self.name}_per_second" if self.kind is Kind.COUNTER else self.name)

    @property
    def metric_unit(self) -> str:
        """The unit of the metric."""
        if self.rate:
            return "cores"
        return f"{self.unit} a second" if self.kind is Kind.COUNTER else self.unit


def _gauge(name: str, unit: str, sentence: str) -> MetricSpec:
    return MetricSpec(name, Kind.GAUGE, unit, sentence)


def _counter(name: str, unit: str, sentence: str) -> MetricSpec:
    return MetricSpec(name, Kind.COUNTER, unit, sentence)


def _number(name: str, sentence: str) -> MetricSpec:
    return MetricSpec(name, Kind.NUMBER, "", sentence)


PROTOCOL = (
    _gauge("connections", "connections", "Connections held."),
    _gauge("subscriptions", "subscriptions", "Subscriptions held."),
    _gauge("slow_consumers", "connections", "Connections whose socket takes nothing now."),
    _counter(
        "connects", "connections", "Connections that began; who never opened a wire is counted at its end, as http."
    ),
    _counter("disconnects", "connections", "Connections that ended."),
    _counter("messages_in", "messages", "Messages that clients published and were allowed to."),
    _counter("messages_out", "messages", "Messages handed to sockets, snapshots and conflated ones too."),
    _counter("bytes_in", "bytes", "Bytes received."),
    _counter("bytes_out", "bytes", "Bytes sent."),
    _counter("publishes_refused", "publishes", "Publishes refused."),
    _counter("gaps", "gaps", "Gaps told: a client missed messages, and knows which."),
    _counter("recovered", "subscriptions", "Subscriptions that went on where they stood."),
    _counter("resynced", "subscriptions", "Subscriptions that could not go on where they stood."),
    _counter("dropped", "messages", "Standard messages lost to slow consumers, who were told how many."),
)
"""Of each shard and wire; their sums are the shard's, the wire's and the node's."""

SHARD = (
    _gauge("streams", "streams", "Streams of encoded frames."),
    _gauge("window_bytes", "bytes", "Bytes of the streams' windows."),
    _gauge("held_bytes", "bytes", "Bytes of half-received messages, parked commands and cut frames."),
    _gauge("catching_up", "subscriptions", "Subscriptions that are being brought to the head from the logs."),
    _gauge("sockets", "sockets", "Sockets the driver holds."),
    _counter("connections_refused", "connections", "Connections refused, and requests that could not be read."),
    _counter("commands_refused", "commands", "Commands refused, publishes too."),
    _counter("sends", "sends", "Sends handed to the kernel."),
    _counter("short_sends", "sends", "Sends of which a socket took only a part."),
    _counter("blocked_sends", "sends", "Sends that a full socket did not take."),
    _counter("mqtt_missed", "messages", "Messages of QoS 1 and 2 that MQTT sessions were owed and are not sent."),
    _counter("catch_up_messages", "messages", "Messages read from logs for connections that were behind."),
    _counter("window_misses", "subscriptions", "Times a subscription fell off its stream's window."),
    _counter("reports_dropped", "reports", "Reports of the shard that were not made: nobody took them."),
    _counter("turns", "turns", "Turns of the shard's loop."),
    _counter("sockets_refused", "sockets", "Sockets closed at once because no descriptor was left."),
    _counter("receives_starved", "receives", "Receives that waited for a buffer."),
    _counter("driver_syscalls", "calls", "System calls of the driver."),
    MetricSpec("cpu_seconds", Kind.COUNTER, "seconds", "Time of a processor that the shard's thread used.", rate="cpu"),
)
"""Of each shard; their sums are the node's, but for the time of a processor, which the node measures as a whole."""

NODE = (
    _number("epoch", "The epoch that numbers subjects which begin now."),
    _number("arrival", "Number of the last accepted message of this run."),
    _number("oldest_resumable_arrival", "A resume token before this arrival gets a gap."),
    _gauge("subjects", "subjects", "Subjects with messages, a snapshot or a listener."),
    _gauge("patterns", "patterns", "Patterns somebody listens to."),
    _gauge("messages", "messages", "Messages kept in logs."),
    _gauge("message_bytes", "bytes", "Bytes of the messages kept: the logs' memory."),
    _gauge("snapshots", "snapshots", "Subjects with a snapshot."),
    _gauge("snapshot_bytes", "bytes", "Bytes of merged fields beside the messages."),
    _gauge("owed_bytes", "bytes", "Bytes of messages kept only because MQTT sessions or groups are owed them."),
    _gauge("holders", "sessions", "MQTT sessions and groups that the logs keep messages for."),
    _counter(
        "owed_skips", "times", "Times an MQTT session or group was owed too much and its oldest messages were let go."
    ),
    _gauge(
        "mqtt_sessions",
        "sessions",
        "MQTT sessions that outlive their connection, of clients that are connected or away.",
    ),
    _gauge("keys", "keys", "Idempotency keys remembered."),
    _gauge("index_entries", "arrivals", "Arrivals remembered for resume tokens."),
    _gauge("feed_entries", "messages", "Messages that the slowest shard has yet to read."),
    _gauge("feed_bytes", "bytes", "Bytes of the messages that the slowest shard has yet to read."),
    _counter("feed_overruns", "falls", "Times a shard fell a whole feed behind."),
    _counter("messages_accepted", "messages", "Messages that got their place, the node's own too."),
    _counter("messages_refused", "messages", "Messages that were allowed and yet got no place."),
    _counter("duplicate_publishes", "publishes", "Repeated publishes: the key, or the publisher's number, was known."),
    _counter("messages_evicted_by_count", "messages", "Messages that left a log because it held too many."),
    _counter("messages_evicted_by_age", "messages", "Messages that left a log because they were too old."),
    _counter("messages_evicted_by_bytes", "messages", "Messages that left a log because the node held too many bytes."),
    _counter("evicted_snapshots", "snapshots", "Snapshots that went because the node held too many bytes."),
    _counter("subjects_evicted", "subjects", "Subjects evicted."),
    _gauge("accounts", "accounts", "Addresses, identities and tenants whose use is remembered."),
    _counter("rate_limit_entries_evicted", "accounts", "Accounts forgotten before what they had used was made good."),
    _counter("node_reports_dropped", "reports", "Reports that came faster than Python took them."),
    _gauge("journal_failing", "journals", "1 while the disk refuses what the journal has to write."),
    _counter("journal_failures", "failures", "Times the journal's disk began to fail."),
    _counter("journal_rows", "rows", "Rows written to the journal."),
    _counter("journal_rows_lost", "rows", "Rows that the journal had no room for: the disk failed, or was too slow."),
    _counter("journal_rows_damaged", "rows", "Rows of the journal that were found damaged; they are never served."),
    _counter("journal_bytes", "bytes", "Bytes written to the journal."),
    _counter("journal_syncs", "syncs", "Times the journal made sure that the disk has what was written."),
    _counter("journal_sync_seconds", "seconds", "Time the disk took for that."),
    _gauge("journal_waiting_bytes", "bytes", "Bytes that wait to be on the disk."),
    _counter("journal_snapshot_failures", "failures", "Times the journal's file of snapshots could not be written."),
    _number("journal_arrival", "Number of the last message that is written to the journal."),
    _number("journal_synced_arrival", "Number of the last message that is on the disk."),
    MetricSpec("cpu_seconds", Kind.COUNTER, "seconds", "Time of a processor that the process used.", rate="cpu"),
    _gauge("memory_bytes", "bytes", "Memory of the process that is resident."),
)
"""Of the node as a whole."""

CODE = (
    _counter(
        "connections_refused", "connections", "Connections refused, and requests that could not be read, by code."
    ),
    _counter("publishes_refused", "publishes", "Publishes refused, by code."),
    _counter("commands_refused", "commands", "Commands refused, publishes too, by code."),
    _counter("closes", "connections", "Connections that ended, by the code they ended with; 0 is a peer's own."),
)
"""By code, of all shards."""

REASON = (_counter("gaps", "gaps", "Gaps told, by reason."),)
"""By the reason of a gap, of all shards."""

FAILED = _gauge("failed", "shards", "1 for a shard that gave up; its connections are gone.")
REACHED = _counter("limit_reached", "times", "Times that somebody reached a rate or a quota, by the limit's name.")
LIMIT = _gauge("limit", "as named", "The limits that the node was told, by name; each limit's unit is in its name.")
"""Shown in /metrics alone, these three."""

PROCESS = ("cpu_seconds", "memory_bytes")
"""Figures of the node that /metrics has by the names of every process: process_cpu_seconds, process_resident_memory_bytes."""
ENGINE_NAMES = {
    "driver_syscalls": "enters",
    "subjects_evicted": "forgotten",
    "duplicate_publishes": "repeats",
    "connections_refused": "refused",
    "messages_accepted": "accepted",
    "messages_refused": "refused",
    "node_reports_dropped": "reports_dropped",
}
"""What the engine calls a figure otherwise."""
CODE_NAMES = {
    "connections_refused": "refused_codes",
    "publishes_refused": "publish_codes",
    "commands_refused": "command_codes",
    "closes": "close_codes",
}
"""Under what a shard shows its counts by code."""

AUDIT_FIGURES = (
    MetricSpec("audit_taken", Kind.COUNTER, "events", "Events that audits took."),
    MetricSpec("audit_lost", Kind.COUNTER, "events", "Events that did not reach an audit, which was too slow."),
    MetricSpec("audit_failed", Kind.COUNTER, "batches", "Batches whose take raised or ran past audit.take_timeout_ms."),
    MetricSpec("audit_restarts", Kind.COUNTER, "tasks", "Times that a task around an audit ended and was begun again."),
    MetricSpec("audit_behind", Kind.GAUGE, "events", "Events that wait for audits."),
)
"""Python's own counts of users' audits, all together."""

CERTIFICATE_FIGURE = _gauge(
    "certificate_left_seconds",
    "seconds",
    "Time until the first of the server certificates expires; below 0: it has expired.",
)
"""Only where there are certificates."""

ADMIN_FIGURES = (
    MetricSpec(
        "admin_requests_malformed", Kind.COUNTER, "requests", "Requests to the admin port that were not valid HTTP."
    ),
    MetricSpec(
        "admin_connections_evicted",
        Kind.COUNTER,
        "connections",
        "Connections to the admin port that were closed to make room for others.",
    ),
)
"""Python's own counts of the admin port."""
