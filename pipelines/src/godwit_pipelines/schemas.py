"""The journal's streams as Spark reads them: every field with its type, whether it may be null, and what it means.

Generated from protocol/events.toml by `make generate`; change it there.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)


def _field(name: str, kind: DataType, is_nullable: bool, comment: str) -> StructField:
    return StructField(name, kind, is_nullable, {"comment": comment})


MESSAGES = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("subject", StringType(), False, "The subject."),
        _field("epoch", LongType(), False, "The run that numbered it."),
        _field("sequence", LongType(), False, "Its number in the subject and epoch, from 1; with `epoch` its position."),
        _field("arrival", LongType(), False, "The message's number in the node's order of acceptance in this run. At-most-once messages take numbers too, so some are missing here."),
        _field("kind", StringType(), False, "Kind of the content: json, text or bytes."),
        _field("content", BinaryType(), False, "The published content, byte for byte."),
        _field("publisher", StringType(), False, "The identity of the publisher; empty if it has none."),
        _field("key", BinaryType(), True, "The idempotency key, scoped by publisher and subject."),
        _field("flags", IntegerType(), False, "Bit 0: changed the snapshot (retained). Bits 1 and 2: the QoS of the publish (2 without MQTT). Bit 3: published over MQTT. Bit 4: a patch, whose members are merged into the snapshot. Bit 5: removed the snapshot; the content is empty."),
        _field("reply_to", StringType(), True, "The subject on which the publisher expects replies."),
        _field("expiry_s", LongType(), True, "MQTT's message expiry, counted from `time`. Unit: s."),
        _field("properties", BinaryType(), True, "Properties for MQTT clients, encoded as in MQTT 5."),
        _field("authority", StringType(), True, "The authority that authenticated the publisher: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in rows of older nodes. Two authorities can use one name for two people."),
        _field("publisher_id", StringType(), True, "The client object that numbers its publishes; for MQTT QoS 2 with mqtt_ack = disk, the client identifier. Null without a number, and in rows of older nodes."),
        _field("publisher_number", LongType(), True, "The number of the publish among those of `publisher_id`; numbers can be skipped. For MQTT the packet identifier, which later publishes reuse."),
        _field("fields", StringType(), True, "The message's fields, a JSON object: for each name a string, null if the message removes the field, or an object whose member `bytes` is base64; null without fields, and in rows of older nodes."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""Every persistent message that was accepted, in the order of acceptance. At-most-once messages have no position and are not recorded."""

ACCESS = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("kind", StringType(), False, "The event: connected, refused, subscribed, unsubscribed or disconnected."),
        _field("connection", LongType(), False, "The connection, unique in this run; 0 if none was opened."),
        _field("identity", StringType(), False, "The identity; empty if there is none."),
        _field("client", StringType(), False, "The client's own name; empty if it gave none."),
        _field("address", StringType(), False, "The remote address, HOST:PORT."),
        _field("protocol", StringType(), False, "The protocol: json, binary, sse, http, mqtt3 or mqtt5; empty if it was not known yet. An HTTP connection can switch to another one later."),
        _field("selector", StringType(), True, "The subject or pattern of a subscription."),
        _field("outcome", StringType(), True, "How the subscription began: snapshot, recovered, history, live or resync. For MQTT also recovered if a session continues, or if this subscription takes over messages of another one of its client."),
        _field("resumed_from", StringType(), True, "The position that the client resumed from: EPOCH.SEQUENCE, or a resume token RUN.ARRIVAL.TIME; null if it named none, or one for each of several subjects."),
        _field("code", IntegerType(), True, "The code of the refusal or the close."),
        _field("reason", StringType(), True, "The reason given with the code; 256 bytes at most."),
        _field("duration_ms", LongType(), True, "Duration of a connection that ended, accurate to a tenth of a second. Unit: ms."),
        _field("authority", StringType(), True, "The authority that authenticated the identity: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in rows of older nodes. Two authorities can use one name for two people."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""Connections, refusals, subscriptions, and their ends."""

DELIVERIES = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("connection", LongType(), False, "The connection, as in access. Below 0: the group of a shared subscription, numbered in this run while it has members or disconnected sessions. Rows of a group are in the order of their ranges, not of `journal_offset`."),
        _field("identity", StringType(), False, "The identity; empty for a group."),
        _field("client", StringType(), False, "The client's own name."),
        _field("selector", StringType(), False, "The subject or pattern; for a shared subscription with the prefix `$share/GROUP`."),
        _field("is_pattern", BooleanType(), False, "Whether the selector is a pattern or shared. Its range is then one of arrivals."),
        _field("epoch", LongType(), True, "The epoch of a subject's range; null for a pattern."),
        _field("from_sequence", LongType(), True, "The first sequence of a subject's range; null for a pattern, and if the row is `confirmed`."),
        _field("to_sequence", LongType(), True, "The last sequence of a subject's range, inclusive; null for a pattern."),
        _field("from_arrival", LongType(), True, "The first arrival of a pattern's range; null for a subject, and if the row is `confirmed`."),
        _field("to_arrival", LongType(), True, "The last arrival of a pattern's range, inclusive: everything that the pattern matches up to here was delivered or reported as a gap."),
        _field("arrival_run", StringType(), True, "The run that numbers a pattern's arrivals; null for a subject."),
        _field("count", LongType(), False, "Messages of the range that were delivered, each counted once; a merged message counts as one. At-most-once messages are not counted."),
        _field("bytes", LongType(), False, "Bytes of their frames; for a group, of their contents. Unit: bytes."),
        _field("conflated", LongType(), False, "Messages of the range that were merged into later ones, that the client already had, or that it must not receive (MQTT: its own, expired, too large, sent for another of its subscriptions; for a group, what the chosen member must not receive). For a subject without uncounted gaps: count + conflated + gap_count = to_sequence - from_sequence + 1. For a pattern without gaps count + conflated is the size of the range; it can be larger if a merged message was sent whole because the logs no longer had a part, or was sent again after a short write. A client that disconnects within a window has no row for that window."),
        _field("gaps", LongType(), False, "Gaps that the client received in the range."),
        _field("gap_count", LongType(), True, "Messages that these gaps report as missed; null if one of them has no count. For a pattern some can lie before the range: a client can be further behind in one subject."),
        _field("confirmed", BooleanType(), False, "True: nothing was sent; the client resumed from this position, so it has everything before. This proves more than a delivery."),
        _field("authority", StringType(), True, "The authority that authenticated the identity: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in rows of older nodes. Two authorities can use one name for two people."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""What was passed to the kernel for whom, as ranges: one row for each connection, selector and flush, never one for each message. A row never spans two epochs. For a shared MQTT subscription (`$share`) the rows belong to the group: each message of the range was sent to one of its members, which is not recorded."""

LATENCY = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("selector", StringType(), False, "The subject or pattern."),
        _field("period_ms", LongType(), False, "The length of the period, which ends at `time`. Unit: ms."),
        _field("count", LongType(), False, "Deliveries that were timed: the sum of the buckets."),
        _field("buckets", ArrayType(LongType(), False), False, "Deliveries by time: bucket 0 is below 1 microsecond, bucket i from 2^(i-1) to below 2^i microseconds, the 40th and last everything above. Trailing zeros are omitted."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""How long messages took from acceptance until the kernel had them: a histogram for each selector and period."""

STATS = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("metric", StringType(), False, "The metric's name in /v1/stats."),
        _field("scope", StringType(), False, "The scope: node, shards, protocols, codes or reasons."),
        _field("label", StringType(), False, "The shard's number, the protocol's name, the code or the reason; empty for the node."),
        _field("window_name", StringType(), False, "now, or one of the twelve windows: 1min, 5min, … 15mo."),
        _field("covered_s", DoubleType(), False, "How much of the window is known; 0 for now. Unit: s."),
        _field("value", DoubleType(), True, "The value of the last second; only of the window now."),
        _field("max", DoubleType(), True, "The largest value of one second in the window; null for now."),
        _field("mean", DoubleType(), True, "The mean over the time that is known; null for now."),
        _field("deviation", DoubleType(), True, "The standard deviation of the seconds' values from the mean; null for now."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""The metrics of /v1/stats: one row for each metric, scope and window."""

RUNS = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("kind", StringType(), False, "began, ended (the run stopped cleanly and lost nothing), or lost (rows were dropped while the disk failed and the queue was full)."),
        _field("epoch", LongType(), False, "The epoch that the run began with."),
        _field("follows_run", StringType(), True, "For began: the run that it follows; null for the first."),
        _field("follows_arrival", LongType(), True, "For began: the last arrival of that run in the journal."),
        _field("follows_clean", BooleanType(), True, "For began: whether that run ended cleanly, so that nothing followed that arrival."),
        _field("stream", StringType(), True, "For lost: the table that lost rows."),
        _field("from_arrival", LongType(), True, "For lost messages: the first arrival that can be missing."),
        _field("to_arrival", LongType(), True, "For lost messages: the last arrival that can be missing. For ended: the last arrival of the run."),
        _field("count", LongType(), True, "For lost: the number of rows."),
        _field("reason", StringType(), True, "For lost: the error of the disk."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""The node's runs: when each began and which run it follows, when it ended, and rows lost to a failing disk."""

FEEDBACK = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run: a number for each start, in hexadecimal as in resume tokens."),
        _field("tenant", StringType(), False, "The tenant of the publisher (messages) or of the connection (access, deliveries); empty without a tenant, and in latency, stats and runs."),
        _field("journal_offset", LongType(), False, "The row's number in this table on this node, from 0. It rises and is never reused."),
        _field("time", TimestampType(), False, "Time by the node's wall clock; for a message, when it was accepted. In access and deliveries the microseconds keep the order of a connection's rows: a subscription is later than all deliveries under the previous one and never later than its own deliveries, unless the clock is set back by more than a second."),
        _field("event", StringType(), False, "The event of the feed and the number of the delivery in it. They identify duplicates: after a crash rows can occur twice."),
        _field("notification", StringType(), False, "The notification's id; empty if the event has none."),
        _field("receiver", StringType(), False, "The receiver's name; empty if it was erased before the row was written."),
        _field("address", StringType(), False, "The name of the receiver's address, never its value; empty for an inbox."),
        _field("channel", StringType(), False, "The channel: inbox, webhook, email; empty if the event has none."),
        _field("state", StringType(), False, "The state of the delivery (sent, failed, deferred, …), or what its receiver did (seen, read, …)."),
        _field("attempt", IntegerType(), False, "The number of the attempt, from 1; 0 if none was made."),
        _field("reason", StringType(), True, "The reason for this state."),
        _field("accepted", TimestampType(), True, "When the notification was accepted."),
        _field("provider", StringType(), True, "The provider that was used."),
        _field("group_name", StringType(), True, "The group that the notification was sent to."),
        _field("category", StringType(), True, "The notification's category."),
        _field("possible_duplicate", BooleanType(), False, "Whether the receiver may have received it twice."),
        _field("segments", IntegerType(), True, "For a text message: the number of parts."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""The result of each delivery of a notification. Dispatch writes a row for each delivery of each event of its feed, under the node name NODE-dispatch, in its own journal: DIR/dispatch/journal."""

SCHEMAS: dict[str, StructType] = {
    "messages": MESSAGES,
    "access": ACCESS,
    "deliveries": DELIVERIES,
    "latency": LATENCY,
    "stats": STATS,
    "runs": RUNS,
    "feedback": FEEDBACK,
}
"""By the stream's name."""
