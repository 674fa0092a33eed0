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
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("subject", StringType(), False, "What it was published on."),
        _field("epoch", LongType(), False, "The run that numbered it."),
        _field("sequence", LongType(), False, "Its number in the subject and epoch, from 1; with `epoch` its position."),
        _field("arrival", LongType(), False, "Its number in the node's order of acceptance in this run; standard messages take numbers too, so that some are missing here."),
        _field("kind", StringType(), False, "What the content is: json, text or bytes."),
        _field("content", BinaryType(), False, "The content as it was published, byte for byte."),
        _field("publisher", StringType(), False, "The identity that published it; empty where it was nobody in particular."),
        _field("key", BinaryType(), True, "The idempotency key that its publisher gave it, scoped by publisher and subject."),
        _field("flags", IntegerType(), False, "Bit 0: it changed the snapshot (retained). Bits 1 and 2: the QoS of its publisher's hop (2 where it had none). Bit 3: it came over MQTT. Bit 4: a patch, whose members are merged into the snapshot. Bit 5: it removed the snapshot; the content is empty."),
        _field("reply_to", StringType(), True, "The subject on which its publisher awaits answers."),
        _field("expiry_s", LongType(), True, "MQTT's message expiry, counted from `time`. Unit: s."),
        _field("properties", BinaryType(), True, "Properties that its publisher gave it for other MQTT clients, as MQTT 5 writes them, one after the other."),
        _field("authority", StringType(), True, "Who vouches for the publisher: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in rows of older nodes. Two authorities may use one name for two people."),
        _field("publisher_id", StringType(), True, "The client object that numbers its publishes; null where this one has no number, and in rows of older nodes."),
        _field("publisher_number", LongType(), True, "The number of the publish among those of `publisher_id`; holes are allowed."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""Every guaranteed message that was accepted, in the order of acceptance. A standard message has no position and is not here."""

ACCESS = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("kind", StringType(), False, "What happened: connected, refused, subscribed, unsubscribed or disconnected."),
        _field("connection", LongType(), False, "The connection, unique in this run; 0 where there never was one."),
        _field("identity", StringType(), False, "Who it is; empty: nobody in particular."),
        _field("client", StringType(), False, "The name that the client gave itself; empty: none."),
        _field("address", StringType(), False, "Where it came from, HOST:PORT."),
        _field("protocol", StringType(), False, "What it speaks: json, binary, sse, http, mqtt3 or mqtt5; empty where it did not come so far. A connection that makes requests may speak another later."),
        _field("selector", StringType(), True, "The subject or pattern of a subscription."),
        _field("outcome", StringType(), True, "How the subscription began: snapshot, recovered, history, live or resync. MQTT: recovered also where a session goes on, or where this one goes back to send what another one of its client was to send."),
        _field("resumed_from", StringType(), True, "Where the client said it stood when it subscribed: a position EPOCH.SEQUENCE, or a resume token RUN.ARRIVAL.TIME; null: it named no place, or one for each of several subjects."),
        _field("code", IntegerType(), True, "The code of the refusal or the close."),
        _field("reason", StringType(), True, "What was said beside the code, by whoever ended it; 256 bytes at most."),
        _field("duration_ms", LongType(), True, "How long a connection that ended had lived, or up to a tenth of a second less. Unit: ms."),
        _field("authority", StringType(), True, "Who vouches for the identity: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in rows of older nodes. Two authorities may use one name for two people."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""Who came, what they asked to hear, and how they left."""

DELIVERIES = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("connection", LongType(), False, "The connection, as in access. Below 0: the group of a shared subscription, a number of its own in this run as long as it has members, or sessions that are away. Its rows are written by whichever core looks first: they are in the order of their ranges, not of `offset`."),
        _field("identity", StringType(), False, "Who it is; of a group empty."),
        _field("client", StringType(), False, "The name that the client gave itself."),
        _field("selector", StringType(), False, "The subject or pattern that was subscribed to; of a shared subscription with `$share/GROUP` before it."),
        _field("is_pattern", BooleanType(), False, "Whether the selector is a pattern, or shared: then its range is one of arrivals."),
        _field("epoch", LongType(), True, "The epoch of a subject's range; null for a pattern."),
        _field("from_sequence", LongType(), True, "The first sequence of a subject's range; null for a pattern, and where a row is `confirmed`."),
        _field("to_sequence", LongType(), True, "The last sequence of a subject's range, inclusive; null for a pattern."),
        _field("from_arrival", LongType(), True, "The first arrival of a pattern's range; null for a subject, and where a row is `confirmed`."),
        _field("to_arrival", LongType(), True, "The last arrival of a pattern's range, inclusive: everything that the pattern matches up to here was handed over or told as a gap."),
        _field("arrival_run", StringType(), True, "The run that a pattern's arrivals are numbered in; null for a subject."),
        _field("count", LongType(), False, "Messages of the range that were handed over, each counted once; a merged message counts as one. A standard message has no place in a range and is not counted."),
        _field("bytes", LongType(), False, "Bytes of their frames; of a group of their contents. Unit: bytes."),
        _field("conflated", LongType(), False, "Messages of the range that were merged into later ones, that the client said it has, or that it is not to have (MQTT: its own, expired, too large for it, sent for another of its subscriptions; of a group what the member that it was dealt to is not to have). Of a subject without unknown gaps: count + conflated + gap_count = to_sequence - from_sequence + 1. Of a pattern without gaps count + conflated is what the range holds, but where a merged message came whole because the logs had let go of a part, or came again after a short write: then it may be more. Who left in the midst of a window has no row for what it was handed of that window."),
        _field("gaps", LongType(), False, "Gaps that the client was told of in the range."),
        _field("gap_count", LongType(), True, "Messages that those gaps told missing; null where one of them could not count. Of a pattern, some may lie before the range: a client may stand further back in one subject."),
        _field("confirmed", BooleanType(), False, "True: nothing was sent; the client itself named this place when it resumed, so it has everything before. Stronger than handed over."),
        _field("authority", StringType(), True, "Who vouches for the identity: jwt:ISSUER, certificate, authorizer, basic or anonymous; null in rows of older nodes. Two authorities may use one name for two people."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""What was handed to the kernel for whom, as ranges: one row for each connection, selector and flush, and never one for each message. A row never spans two epochs. Of a shared subscription of MQTT (`$share`) the rows are its group's: each message of the range went to one of its members, which of them is not written down."""

LATENCY = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("selector", StringType(), False, "The subject or pattern that was listened to."),
        _field("period_ms", LongType(), False, "The length of the period, which ends at `time`. Unit: ms."),
        _field("count", LongType(), False, "Deliveries that were timed: the sum of the buckets."),
        _field("buckets", ArrayType(LongType(), False), False, "Deliveries by time: bucket 0 below 1 microsecond, bucket i from 2^(i-1) up to, not including, 2^i microseconds, the 40th and last all above. Zeros at the end are left off."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""How long messages took from acceptance until the kernel had them: a histogram for each selector and period."""

STATS = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("metric", StringType(), False, "Which figure, by its name in /v1/stats."),
        _field("scope", StringType(), False, "Of what: node, shards, protocols, codes or reasons."),
        _field("label", StringType(), False, "Of which one: the shard's number, the protocol's name, the code, the reason; empty for the node."),
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
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("kind", StringType(), False, "began, ended (the run stopped in order and lost nothing), or lost (rows were dropped while the disk failed and the queue was full)."),
        _field("epoch", LongType(), False, "The epoch that the run began with."),
        _field("follows_run", StringType(), True, "Of began: the run that it follows; null: the first."),
        _field("follows_arrival", LongType(), True, "Of began: the last arrival of that run that the journal holds."),
        _field("follows_clean", BooleanType(), True, "Of began: whether that run ended in order, so that nothing came after that arrival."),
        _field("stream", StringType(), True, "Of lost: which stream lost rows."),
        _field("from_arrival", LongType(), True, "Of lost messages: the first arrival that may be missing."),
        _field("to_arrival", LongType(), True, "Of lost messages: the last arrival that may be missing. Of ended: the last arrival that the run gave."),
        _field("count", LongType(), True, "Of lost: how many rows."),
        _field("reason", StringType(), True, "Of lost: what the disk said."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""What the node knows of its own runs: when each began and what it follows, when it ended, and rows that a failing disk made it lose."""

FEEDBACK = StructType(
    [
        _field("node", StringType(), False, "The node that wrote the row."),
        _field("run", StringType(), False, "The node's run, in hexadecimal as resume tokens carry it: a number for each start."),
        _field("tenant", StringType(), False, "Whose row it is, by a claim of the identity: of a message its publisher's, of access and deliveries the connection's; empty where there is none, and in streams that are the whole node's (latency, stats, runs)."),
        _field("journal_offset", LongType(), False, "The row's number in this stream on this node, from 0; it rises and is never given twice."),
        _field("time", TimestampType(), False, "When it happened by the node's wall clock; of a message, when it was accepted. Of access and deliveries microseconds keep the order of a connection's rows: a subscription is later than all that was handed over under the one before it, and never later than what is handed over under it, unless the clock is set back by more than a second."),
        _field("event", StringType(), False, "The event's own name, by which a repeat is known."),
        _field("subject", StringType(), False, "The message's subject."),
        _field("epoch", LongType(), True, "The message's epoch, where it has a position."),
        _field("sequence", LongType(), True, "The message's sequence, where it has a position."),
        _field("recipient", StringType(), False, "Whom it is for."),
        _field("receiver", StringType(), False, "What takes it there."),
        _field("channel", StringType(), False, "By which medium: ws, http, sms, email, apns, fcm, webpush."),
        _field("attempt", IntegerType(), False, "Which attempt, from 1."),
        _field("status", StringType(), False, "accepted, routed, sent, delivered, read, failed, expired or suppressed."),
        _field("reason", StringType(), True, "Why it failed or was suppressed."),
        _field("accepted", TimestampType(), True, "When the message was accepted."),
        _field("provider_ms", LongType(), True, "How long the provider took. Unit: ms."),
        _field("cost_micros", LongType(), True, "What it cost, in millionths of the currency."),
        _field("crc", LongType(), False, "CRC-32C over all other fields of the row, in their order; 0 to 4,294,967,295."),
    ]
)
"""What became of a message on its way to a recipient outside of the node. No node writes this stream yet; its fields are settled so that jobs can be."""

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
