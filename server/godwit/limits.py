"""Every limit of a node with its default, bounds and meaning, and the fixed limits of the wire.

Generated from protocol/limits.toml by `make generate`; change it there.
"""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """One configurable limit; `code` is the name of what a client is told at it, empty when it is told nothing."""

    name: str
    default: int
    minimum: int
    maximum: int
    scope: str
    code: str
    sentence: str


LIMITS: tuple[Limit, ...] = (
    Limit("message_bytes_max", 1_048_576, 1_024, 67_108_864,
          "connection", "MessageTooBig",
          "Largest WebSocket message or HTTP body, all fragments together."),
    Limit("header_bytes_max", 16_384, 1_024, 1_048_576,
          "connection", "HeaderTooBig",
          "Largest HTTP request head."),
    Limit("headers_max", 100, 16, 1_000,
          "connection", "HeaderTooBig",
          "Most fields in an HTTP request head."),
    Limit("connections_max", 1_000_000, 1, 16_000_000,
          "node", "ConnectionsTooMany",
          "Most connections at once; one more is closed at once or answered 503."),
    Limit("subscriptions_per_connection_max", 1_000, 1, 100_000,
          "connection", "SubscriptionsTooMany",
          "Most subscriptions and watches of one connection."),
    Limit("commands_in_flight_max", 1_000, 1, 100_000,
          "connection", "CommandsTooMany",
          "Most commands in one array, and most commands that wait for an answer; past it the connection is not read."),
    Limit("positions_per_subscribe_max", 10_000, 1, 1_000_000,
          "connection", "FieldInvalid",
          "Most subjects in the map that `after` may be for a pattern."),
    Limit("publishes_per_second_max", 1_000_000, 1, 100_000_000,
          "connection", "RateExceeded",
          "Most publishes of one connection in a second."),
    Limit("handshake_ms_max", 10_000, 100, 600_000,
          "connection", "RequestSlow",
          "Time from accepting a connection to its complete request head, and from there to `connect` where one is asked for."),
    Limit("message_ms_max", 10_000, 100, 600_000,
          "connection", "MessageSlow",
          "Time from the first byte of a message to its last."),
    Limit("poll_ms_max", 60_000, 0, 3_600_000,
          "connection", "",
          "Longest time an HTTP request may wait for a message; one that asks for more gets this."),
    Limit("ping_interval_ms", 25_000, 100, 3_600_000,
          "connection", "",
          "A connection that was silent this long is sent a ping."),
    Limit("idle_ms_max", 60_000, 200, 7_200_000,
          "connection", "PeerSilent",
          "A connection from which nothing came, and whose socket took nothing, for this long is closed."),
    Limit("close_ms_max", 5_000, 100, 60_000,
          "connection", "",
          "Time the peer has to answer a close; then the socket is closed."),
    Limit("reply_buffer_bytes_max", 16_384, 4_096, 16_777_216,
          "connection", "",
          "Replies kept for one connection; past it the connection is not read."),
    Limit("catch_up_bytes_max", 1_048_576, 16_384, 67_108_864,
          "shard", "",
          "Most bytes read from logs in one turn for connections that catch up; the rest waits a turn."),
    Limit("streams_per_shard_max", 1_000_000, 16, 16_000_000,
          "shard", "StreamsTooMany",
          "Most streams; those that linger without a listener go first."),
    Limit("stream_window_bytes_max", 1_048_576, 4_096, 67_108_864,
          "shard", "",
          "Encoded frames one stream keeps; who is further behind is caught up from the logs."),
    Limit("windows_bytes_max", 134_217_728, 1_048_576, 17_179_869_184,
          "shard", "",
          "Encoded frames all streams of a shard keep; past it the oldest go."),
    Limit("stream_linger_ms", 10_000, 0, 600_000,
          "shard", "",
          "Time a stream outlives its last listener."),
    Limit("held_bytes_max", 268_435_456, 1_048_576, 17_179_869_184,
          "node", "HeldTooMuch",
          "Half-received messages, parked commands and partly sent frames of all connections."),
    Limit("subjects_max", 1_000_000, 16, 100_000_000,
          "node", "SubjectsTooMany",
          "Most subjects with messages, a snapshot or a listener."),
    Limit("log_messages_max", 1_000, 1, 1_000_000,
          "subject", "",
          "Messages a log keeps; the oldest go."),
    Limit("log_age_ms_max", 180_000, 100, 2_592_000_000,
          "subject", "",
          "Age at which a log lets a message go."),
    Limit("logs_bytes_max", 536_870_912, 1_048_576, 1_099_511_627_776,
          "node", "",
          "Messages of all logs and snapshots; past it the largest of a few sampled logs lose their oldest, and at last their snapshot."),
    Limit("snapshot_bytes_max", 1_048_576, 0, 67_108_864,
          "subject", "",
          "Largest merged snapshot of a subject; past it the last content alone is kept."),
    Limit("snapshot_age_ms_max", 0, 0, 31_536_000_000,
          "subject", "",
          "Age at which a snapshot expires; 0 keeps it."),
    Limit("snapshots_bytes_max", 268_435_456, 0, 1_099_511_627_776,
          "node", "",
          "Merged fields of all snapshots; past it a snapshot keeps the last content alone."),
    Limit("keys_max", 100_000, 0, 100_000_000,
          "node", "",
          "Idempotence keys remembered; the oldest go."),
    Limit("keys_age_ms_max", 300_000, 100, 604_800_000,
          "node", "",
          "Age at which an idempotence key is forgotten."),
    Limit("feed_entries_max", 1_048_576, 1_024, 67_108_864,
          "node", "",
          "Entries of the feed that a shard has not read; publishers are not read while one is half of it behind."),
    Limit("feed_bytes_max", 268_435_456, 1_048_576, 17_179_869_184,
          "node", "",
          "Messages the feed may hold for a shard that has not read them; as feed_entries_max."),
    Limit("index_entries_max", 4_194_304, 1_024, 268_435_456,
          "node", "",
          "Arrivals the feed remembers for marks; a mark before them gets a gap."),
    Limit("mark_interval_ms", 1_000, 100, 60_000,
          "connection", "",
          "Time between two marks of a wildcard subscription."),
    Limit("interest_hold_ms", 1_000, 0, 60_000,
          "node", "",
          "Time after the last listener left before watchers hear of it."),
    Limit("conflate_ms_min", 100, 10, 60_000,
          "connection", "FieldInvalid",
          "Shortest conflation window a subscription may ask for."),
    Limit("conflate_ms_max", 3_600_000, 100, 86_400_000,
          "connection", "FieldInvalid",
          "Longest conflation window a subscription may ask for."),
    Limit("content_depth_max", 128, 1, 1_000,
          "connection", "ContentTooDeep",
          "Deepest nesting of JSON content."),
    Limit("mqtt_receive_max", 1_024, 1, 65_535,
          "connection", "",
          "MQTT: messages of QoS 1 and 2 that a client may have sent and not yet settled (Receive Maximum); in 3.1.1, eight times as many of QoS 2. Past it the connection is closed (0x93)."),
    Limit("mqtt_inflight_max", 256, 1, 65_535,
          "connection", "",
          "MQTT: messages of QoS 1 and 2 sent to a client that it has not settled, where it does not ask for fewer; more wait in the log."),
    Limit("mqtt_aliases_max", 64, 0, 65_535,
          "connection", "",
          "MQTT: topic aliases a client may use, and at most as many are used towards it; past it the connection is closed (0x94)."),
    Limit("mqtt_sessions_max", 1_000_000, 0, 100_000_000,
          "node", "",
          "MQTT: sessions kept for clients that are away; past it a session ends with its connection."),
    Limit("mqtt_session_ms_max", 604_800_000, 0, 31_536_000_000,
          "connection", "",
          "MQTT: the longest that a session outlives its connection; who asks for more is told in CONNACK."),
    Limit("mqtt_keep_alive_ms_max", 3_600_000, 1_000, 65_535_000,
          "connection", "",
          "MQTT 5: the longest keep alive; who asks for more, or for none, is told in CONNACK (Server Keep Alive)."),
)

SUBJECT_BYTES_MAX = 1_024
ID_BYTES_MAX = 256
KEY_BYTES_MAX = 256
KEY_BYTES_MIN_ANONYMOUS = 16
TOKEN_BYTES_MAX = 65_536
CLIENT_BYTES_MAX = 256
MARK_BYTES_MAX = 128
