"""Every metric of a node: name, kind, unit and one sentence. /v1/stats, $node, /metrics and the reference page are made from it.

Metrics belong to the node, a shard, a protocol, a code or a reason, never to a subject, connection, pattern or identity: a million subjects
must not make a million time series. Pure. The engine counts under these names, or those of ENGINE_NAMES; a test checks that.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

SHARDS_MAX = 64


class Kind(StrEnum):
    """A gauge rises and falls, a counter only rises. A number, such as an epoch, has no statistics."""

    GAUGE = "gauge"
    COUNTER = "counter"
    NUMBER = "number"


class MetricSpec(NamedTuple):
    """One metric, without its value. In /v1/stats a counter is shown by its growth per second, under another name."""

    name: str
    kind: Kind
    unit: str
    sentence: str
    rate: str = ""

    @property
    def metric(self) -> str:
        """Its name in /v1/stats and on `$node`; empty for a number."""
        if self.kind is Kind.NUMBER:
            return ""
        return self.rate or (f"{self.name}_per_second" if self.kind is Kind.COUNTER else self.name)

    @property
    def metric_unit(self) -> str:
        """The unit of the metric."""
        if self.rate:
            return "cores"
        return f"{self.unit} per second" if self.kind is Kind.COUNTER else self.unit


def _gauge(name: str, unit: str, sentence: str) -> MetricSpec:
    return MetricSpec(name, Kind.GAUGE, unit, sentence)


def _counter(name: str, unit: str, sentence: str) -> MetricSpec:
    return MetricSpec(name, Kind.COUNTER, unit, sentence)


def _number(name: str, sentence: str) -> MetricSpec:
    return MetricSpec(name, Kind.NUMBER, "", sentence)


PROTOCOL = (
    _gauge("connections", "connections", "Open connections."),
    _gauge("subscriptions", "subscriptions", "Subscriptions of connected clients."),
    _gauge("slow_consumers", "connections", "Connections whose socket accepts no more bytes now."),
    _counter(
        "connects",
        "connections",
        "Connections that began. One that never chose a protocol is counted at its end, as http.",
    ),
    _counter("disconnects", "connections", "Connections that ended."),
    _counter("messages_in", "messages", "Messages that clients published and were allowed to."),
    _counter("messages_out", "messages", "Messages passed to sockets, including snapshots and conflated messages."),
    _counter("bytes_in", "bytes", "Bytes received."),
    _counter("bytes_out", "bytes", "Bytes sent."),
    _counter("publishes_refused", "publishes", "Publishes refused."),
    _counter("gaps", "gaps", "Gaps sent to clients that missed messages."),
    _counter("recovered", "subscriptions", "Subscriptions that resumed at their position and missed nothing."),
    _counter("resynced", "subscriptions", "Subscriptions that could not resume at their position and received a gap."),
    _counter(
        "dropped", "messages", "At-most-once messages dropped for slow consumers. The client receives their count."
    ),
)
"""For each shard and protocol; the sums are those of the shard, the protocol and the node."""

SHARD = (
    _gauge("streams", "streams", "Streams of encoded frames."),
    _gauge("window_bytes", "bytes", "Bytes of the streams' windows."),
    _gauge("partial_bytes", "bytes", "Bytes of half-received messages, waiting commands and partly sent frames."),
    _gauge("catching_up", "subscriptions", "Subscriptions that receive older messages from the logs."),
    _gauge("sockets", "sockets", "Open sockets."),
    _counter("connections_refused", "connections", "Connections refused, and requests that could not be read."),
    _counter("commands_refused", "commands", "Commands refused, including publishes."),
    _counter("sends", "sends", "Sends to the kernel."),
    _counter("short_sends", "sends", "Sends that a socket accepted only in part."),
    _counter("blocked_sends", "sends", "Sends that a full socket did not accept."),
    _counter(
        "mqtt_missed",
        "messages",
        "Messages of QoS 1 and 2 that MQTT sessions skipped because too many waited for them.",
    ),
    _counter("catch_up_messages", "messages", "Messages read from logs for connections that were behind."),
    _counter(
        "window_misses",
        "subscriptions",
        "Times a subscription fell behind its stream's window and was served from the log.",
    ),
    _counter("reports_dropped", "reports", "Reports of the shard that were dropped because Python did not read them."),
    _counter("turns", "turns", "Turns of the shard's loop."),
    _counter("sockets_refused", "sockets", "Sockets closed at once because no file descriptor was left."),
    _counter("receives_starved", "receives", "Receives that waited for a buffer."),
    _counter("driver_syscalls", "calls", "System calls of the driver."),
    MetricSpec("cpu_seconds", Kind.COUNTER, "seconds", "CPU time of the shard's thread.", rate="cpu"),
)
"""For each shard; the sums are the node's, except CPU time, which the node measures as a whole."""

NODE = (
    _number("epoch", "The epoch of subjects that are created now."),
    _number("arrival", "Number of the last accepted message of this run."),
    _number("oldest_resumable_arrival", "A resume token before this arrival gets a gap."),
    _gauge("subjects", "subjects", "Subjects with messages, a snapshot or a subscriber."),
    _gauge("patterns", "patterns", "Patterns with a subscriber."),
    _gauge("messages", "messages", "Messages kept in logs."),
    _gauge("message_bytes", "bytes", "Bytes of the messages kept: the logs' memory."),
    _gauge("snapshots", "snapshots", "Subjects with a snapshot."),
    _gauge("snapshot_bytes", "bytes", "Bytes of snapshots that are merged from several messages."),
    _gauge(
        "owed_bytes",
        "bytes",
        "Bytes of messages kept only for MQTT sessions and groups that have not acknowledged them.",
    ),
    _gauge("holders", "sessions", "MQTT sessions and groups that the logs keep messages for."),
    _counter(
        "owed_skips",
        "times",
        "Times an MQTT session or group skipped its oldest messages because too many waited for it.",
    ),
    _gauge(
        "mqtt_sessions",
        "sessions",
        "MQTT sessions that outlive their connection, of connected and disconnected clients.",
    ),
    _gauge("mqtt_wills_bytes", "bytes", "Memory of the wills of MQTT clients, connected or not."),
    _gauge("idempotency_keys", "keys", "Idempotency keys remembered."),
    _gauge("index_entries", "arrivals", "Arrivals remembered for resume tokens."),
    _gauge("feed_entries", "messages", "Messages that the slowest shard has not read yet."),
    _gauge("feed_bytes", "bytes", "Bytes of the messages that the slowest shard has not read yet."),
    _counter("feed_overruns", "times", "Times a shard fell behind by the whole feed."),
    _counter("messages_accepted", "messages", "Messages accepted, including the node's own."),
    _counter("messages_refused", "messages", "Messages that were allowed, but could not be accepted."),
    _counter("duplicate_publishes", "publishes", "Repeated publishes, recognized by their key or number."),
    _counter("messages_evicted_by_count", "messages", "Messages evicted because their log had too many."),
    _counter("messages_evicted_by_age", "messages", "Messages evicted because they were too old."),
    _counter("messages_evicted_by_bytes", "messages", "Messages evicted because the node's logs had too many bytes."),
    _counter("evicted_snapshots", "snapshots", "Snapshots evicted because the node's snapshots had too many bytes."),
    _counter("subjects_evicted", "subjects", "Subjects evicted."),
    _gauge(
        "rate_limit_entries",
        "entries",
        "Rate limit entries: addresses, identities and tenants whose usage is remembered.",
    ),
    _counter(
        "rate_limit_entries_evicted",
        "entries",
        "Rate limit entries evicted to make room before their limits had recovered.",
    ),
    _counter("node_reports_dropped", "reports", "Reports dropped because Python did not read them in time."),
    _gauge("journal_failing", "journals", "1 while the journal cannot write to the disk."),
    _counter("journal_failures", "failures", "Times the journal's disk began to fail."),
    _counter("journal_rows", "rows", "Rows written to the journal."),
    _counter("journal_rows_lost", "rows", "Rows that the journal lost because the disk failed or was too slow."),
    _counter("journal_rows_damaged", "rows", "Damaged rows found in the journal; they are never delivered."),
    _counter("journal_bytes", "bytes", "Bytes written to the journal."),
    _counter("journal_syncs", "syncs", "Times the journal synced its files to the disk."),
    _counter("journal_sync_seconds", "seconds", "Time that these syncs took."),
    _gauge("journal_waiting_bytes", "bytes", "Bytes that are not on the disk yet."),
    _counter("journal_snapshot_failures", "failures", "Times the journal's file of snapshots could not be written."),
    _number("journal_arrival", "Number of the last message written to the journal."),
    _number("journal_synced_arrival", "Number of the last message that is on the disk."),
    MetricSpec("cpu_seconds", Kind.COUNTER, "seconds", "CPU time of the process.", rate="cpu"),
    _gauge("memory_bytes", "bytes", "Resident memory of the process."),
)
"""Of the whole node."""

CODE = (
    _counter(
        "connections_refused", "connections", "Connections refused, and requests that could not be read, by code."
    ),
    _counter("publishes_refused", "publishes", "Publishes refused, by code."),
    _counter("commands_refused", "commands", "Commands refused, including publishes, by code."),
    _counter("closes", "connections", "Connections that ended, by code; 0 if the client ended it without one."),
)
"""By code, of all shards."""

REASON = (_counter("gaps", "gaps", "Gaps sent, by reason."),)
"""By the reason of a gap, of all shards."""

FAILED = _gauge("failed", "shards", "1 for a shard that failed; its connections are closed.")
REACHED = _counter("limit_reached", "times", "Times that a client reached a rate limit or quota, by the limit's name.")
LIMIT = _gauge("limit", "as named", "The limits in force, by name. The unit is in the name.")
"""These three are shown in /metrics only."""

PROCESS = ("cpu_seconds", "memory_bytes")
"""Metrics of the node that have the usual process names in /metrics: process_cpu_seconds, process_resident_memory_bytes."""
ENGINE_NAMES = {
    "driver_syscalls": "enters",
    "idempotency_keys": "keys",
    "partial_bytes": "held_bytes",
    "rate_limit_entries": "accounts",
    "subjects_evicted": "forgotten",
    "duplicate_publishes": "repeats",
    "connections_refused": "refused",
    "messages_accepted": "accepted",
    "messages_refused": "refused",
    "node_reports_dropped": "reports_dropped",
}
"""The engine's names of metrics, where they differ."""
CODE_NAMES = {
    "connections_refused": "refused_codes",
    "publishes_refused": "publish_codes",
    "commands_refused": "command_codes",
    "closes": "close_codes",
}
"""The names under which a shard has its counts by code."""

AUDIT_FIGURES = (
    MetricSpec("audit_taken", Kind.COUNTER, "events", "Events that audits received."),
    MetricSpec("audit_lost", Kind.COUNTER, "events", "Events that did not reach an audit because it was too slow."),
    MetricSpec(
        "audit_failed",
        Kind.COUNTER,
        "batches",
        "Batches whose `take` raised an error or exceeded audit.take_timeout_ms.",
    ),
    MetricSpec("audit_restarts", Kind.COUNTER, "tasks", "Times that the task of an audit ended and was restarted."),
    MetricSpec("audit_lag", Kind.GAUGE, "events", "Events that wait for audits."),
)
"""Counts of all audit extensions together, made in Python."""

CERTIFICATE_FIGURE = _gauge(
    "certificate_left_seconds",
    "seconds",
    "Time until the first server certificate expires; below 0 if it has expired.",
)
"""Only if TLS is configured."""

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
"""Counts of the admin port, made in Python."""
