//! Every limit of a node, one plain struct, and the fixed limits of the wire.
//!
//! Generated from protocol/limits.toml by `make generate`; change it there. Bounds are checked where the configuration is read.

use serde::Deserialize;

/// Longest subject or pattern.
pub const SUBJECT_BYTES_MAX: usize = 1_024;
/// Longest id, as it is written.
pub const ID_BYTES_MAX: usize = 256;
/// Longest idempotency key.
pub const KEY_BYTES_MAX: usize = 256;
/// Shortest idempotency key of an anonymous client.
pub const KEY_BYTES_MIN_ANONYMOUS: usize = 16;
/// Longest token.
pub const TOKEN_BYTES_MAX: usize = 65_536;
/// Longest client name in `connect`.
pub const CLIENT_BYTES_MAX: usize = 256;
/// Shortest publisher id.
pub const PUBLISHER_BYTES_MIN: usize = 16;
/// Longest publisher id.
pub const PUBLISHER_BYTES_MAX: usize = 64;
/// Longest frame sent to a client that does not set `frame_bytes_max` (4.4).
pub const FRAME_BYTES_DEFAULT: usize = 16_777_216;
/// Smallest `frame_bytes_max` that a client may set.
pub const FRAME_BYTES_MIN: usize = 8_192;
/// Largest `frame_bytes_max` that a client may set.
pub const FRAME_BYTES_TOP: usize = 1_073_741_824;
/// Longest resume token.
pub const RESUME_TOKEN_BYTES_MAX: usize = 128;

/// Limits that can be configured. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Largest WebSocket message or HTTP body, all fragments together.
    pub message_bytes_max: usize,
    /// Most frames of one WebSocket message.
    pub fragments_per_message_max: usize,
    /// Shortest frame that is compressed for WebSocket clients that agreed to it (`client.compression`).
    pub compress_bytes_min: usize,
    /// Largest HTTP request head.
    pub header_bytes_max: usize,
    /// Most fields in an HTTP request head.
    pub headers_max: usize,
    /// Most connections at once; one more is closed at once or answered 503.
    pub connections_max: usize,
    /// Most subscriptions and watches of one connection.
    pub subscriptions_per_connection_max: usize,
    /// Most commands in one array, and most commands waiting for an answer; beyond it the node does not read from the connection.
    pub commands_in_flight_max: usize,
    /// Most positions in the `after` of one subscribe with a pattern.
    pub positions_per_subscribe_max: usize,
    /// Most publishes of one connection in a second; 0: no limit.
    pub publishes_per_second_max: usize,
    /// Most bytes of content that one connection publishes in a second; 0: no limit.
    pub publish_bytes_per_second_max: usize,
    /// Most subscribe commands of one connection in a second; 0: no limit.
    pub subscribes_per_second_max: usize,
    /// Most connections that one address begins in a second; 0: no limit.
    pub connects_per_second_per_address_max: usize,
    /// Most different refused tokens of one address in a minute, and most refusals of one token. Beyond it, new connections with a token from that address must wait. 0: no limit.
    pub token_failures_per_minute_per_address_max: usize,
    /// Most connections of one address at once; 0: no limit.
    pub connections_per_address_max: usize,
    /// Most subscriptions of one address at once, all its connections together; 0: no limit.
    pub subscriptions_per_address_max: usize,
    /// Most subscribe commands of one address in a second; 0: no limit.
    pub subscribes_per_second_per_address_max: usize,
    /// Most publishes of one address in a second, all its connections together; 0: no limit.
    pub publishes_per_second_per_address_max: usize,
    /// Most bytes of content that one address publishes in a second; 0: no limit.
    pub publish_bytes_per_second_per_address_max: usize,
    /// Most connections that one identity begins in a second; 0: no limit.
    pub connects_per_second_per_identity_max: usize,
    /// Most connections of one identity at once; 0: no limit.
    pub connections_per_identity_max: usize,
    /// Most subscriptions of one identity at once, all its connections together; 0: no limit.
    pub subscriptions_per_identity_max: usize,
    /// Most subscribe commands of one identity in a second; 0: no limit.
    pub subscribes_per_second_per_identity_max: usize,
    /// Most publishes of one identity in a second, all its connections together; 0: no limit.
    pub publishes_per_second_per_identity_max: usize,
    /// Most bytes of content that one identity publishes in a second; 0: no limit.
    pub publish_bytes_per_second_per_identity_max: usize,
    /// Most connections of one tenant at once; 0: no limit.
    pub connections_per_tenant_max: usize,
    /// Most subscriptions of one tenant at once, all its connections together; 0: no limit.
    pub subscriptions_per_tenant_max: usize,
    /// Most publishes of one tenant in a second, all its connections together; 0: no limit.
    pub publishes_per_second_per_tenant_max: usize,
    /// Most bytes of content that one tenant publishes in a second; 0: no limit.
    pub publish_bytes_per_second_per_tenant_max: usize,
    /// Burst after a pause: this many milliseconds of the rate at once.
    pub burst_ms_max: u64,
    /// Most rate-limit entries. Entries with open connections are always kept; otherwise the one closest to its full allowance is evicted first.
    pub rate_limit_entries_max: usize,
    /// Time from accepting a connection to its complete request head, and then to `connect` if the listener requires it.
    pub handshake_ms_max: u64,
    /// Time from the first byte of a message to its last.
    pub message_ms_max: u64,
    /// Longest time an HTTP request may wait for a message; one that asks for more gets this.
    pub poll_ms_max: u64,
    /// Silence after which the node sends a ping.
    pub ping_interval_ms: u64,
    /// Time without data in either direction after which a connection is closed.
    pub idle_ms_max: u64,
    /// Time the peer has to answer a close; then the socket is closed.
    pub close_ms_max: u64,
    /// Bytes of authorizer answers cached per connection; the oldest are evicted and requested again when needed.
    pub answers_bytes_max: usize,
    /// Age at which an authorizer answer is requested again; a live subscription continues meanwhile, for at most one more age. 0: answers do not expire.
    pub answers_age_ms: u64,
    /// Age at which messages expire on subjects that were first named by a `reply_to`, unless their pattern sets a shorter one.
    pub reply_age_ms_max: u64,
    /// Replies waiting for one connection; beyond it the node does not read from the connection.
    pub reply_buffer_bytes_max: usize,
    /// Most bytes read from logs in one turn for connections that catch up.
    pub catch_up_bytes_max: usize,
    /// Most streams; those without subscribers are evicted first.
    pub streams_per_shard_max: usize,
    /// Most segments of a pattern with a wildcard that is subscribed to or watched.
    pub pattern_segments_max: usize,
    /// Bytes of the index of subscribed patterns, and as many for watched ones; further patterns are refused.
    pub patterns_bytes_max: usize,
    /// Encoded frames kept per stream; subscribers further behind are served from the logs.
    pub stream_window_bytes_max: usize,
    /// Encoded frames kept by all streams of a shard; the oldest are evicted.
    pub windows_bytes_max: usize,
    /// Time a stream is kept after its last subscriber left.
    pub stream_linger_ms: u64,
    /// Half-received messages, waiting commands and partly sent frames of all connections.
    pub partial_bytes_max: usize,
    /// Most subjects with messages, a snapshot or a subscriber.
    pub subjects_max: usize,
    /// Messages kept in a subject's log; the oldest are evicted, except those that MQTT sessions or groups still have to get.
    pub log_messages_max: usize,
    /// Age at which a message expires from its log, with the same exception.
    pub log_age_ms_max: u64,
    /// Bytes of all logs and snapshots. Beyond it, the largest of a few sampled logs lose their oldest messages, and finally their snapshot. Messages owed to MQTT sessions go after all others; with more than 65,536 logs some may go earlier.
    pub logs_bytes_max: usize,
    /// Most fields of one message.
    pub fields_max: usize,
    /// Largest merged snapshot of a subject; a publish that would exceed it is refused (4130).
    pub snapshot_bytes_max: usize,
    /// Age at which a snapshot expires; 0 keeps it.
    pub snapshot_age_ms_max: u64,
    /// Bytes of all snapshots; beyond it the largest of 32 that are looked at is evicted, or the new one if none is larger.
    pub snapshots_bytes_max: usize,
    /// Idempotency keys remembered; the oldest are evicted.
    pub idempotency_keys_max: usize,
    /// Age at which an idempotency key expires.
    pub idempotency_keys_age_ms_max: u64,
    /// Publishers whose numbers are remembered; a further one receives `publisher: false` in `connected`. Space is shared: 16 numbers each.
    pub publishers_max: usize,
    /// Age at which a publisher without a connection expires, counted from its last connection or publish.
    pub publishers_age_ms_max: u64,
    /// Entries of the feed that a shard has not read; while a shard is half of it behind, the node does not read from publishers.
    pub feed_entries_max: usize,
    /// Bytes of messages that the feed holds for a shard that has not read them; works like feed_entries_max.
    pub feed_bytes_max: usize,
    /// Arrivals remembered for resume tokens; an older resume token gets a gap.
    pub index_entries_max: usize,
    /// Most journal pages read at the same time for clients that resume from before the in-memory logs; others wait. 0: the journal is not read.
    pub journal_reads_max: usize,
    /// Content of one such page in bytes; its last message may exceed it.
    pub journal_page_bytes_max: usize,
    /// Time between two resume tokens of a wildcard subscription.
    pub resume_token_interval_ms: u64,
    /// Delay before watchers are notified that the last subscriber left.
    pub interest_debounce_ms: u64,
    /// Shortest conflation window a subscription may ask for.
    pub conflate_ms_min: u64,
    /// Longest conflation window a subscription may ask for.
    pub conflate_ms_max: u64,
    /// Deepest nesting of JSON content.
    pub content_depth_max: usize,
    /// MQTT: Receive Maximum, the most unacknowledged QoS 1 and 2 messages from a client; with 3.1.1 eight times as many of QoS 2. Beyond it the connection is closed (0x93).
    pub mqtt_receive_max: usize,
    /// MQTT: most unacknowledged QoS 1 and 2 messages to a client, unless it asks for fewer; more wait in the log.
    pub mqtt_inflight_max: usize,
    /// MQTT: topic aliases in each direction; beyond it the connection is closed (0x94).
    pub mqtt_aliases_max: usize,
    /// MQTT: messages that the logs keep for one session or group until it has acknowledged them; beyond it the oldest waiting ones are skipped, counted and reported.
    pub mqtt_owed_messages_max: usize,
    /// MQTT: the same in bytes.
    pub mqtt_owed_bytes_max: usize,
    /// MQTT: bytes that logs keep only for sessions or groups, each message counted once; beyond it the holder of the largest share skips first. 0: a quarter of `logs_bytes_max`; at most half of it.
    pub mqtt_owed_node_bytes_max: usize,
    /// MQTT: persistent sessions, of connected and disconnected clients; beyond it a CONNECT that asks for one is refused. 0: none is kept.
    pub mqtt_sessions_max: usize,
    /// MQTT: memory of the wills of all clients, connected or not; beyond it a CONNECT with a will is refused (0x97; 3.1.1: 3). 0: none is accepted.
    pub mqtt_wills_bytes_max: usize,
    /// MQTT: longest session expiry; a client that asks for more receives this value in CONNACK.
    pub mqtt_session_ms_max: u64,
    /// MQTT 5: longest keep alive; a client that asks for more, or for none, receives this value in CONNACK (Server Keep Alive).
    pub mqtt_keep_alive_ms_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 1_048_576,
            fragments_per_message_max: 16_384,
            compress_bytes_min: 128,
            header_bytes_max: 16_384,
            headers_max: 100,
            connections_max: 1_000_000,
            subscriptions_per_connection_max: 1_000,
            commands_in_flight_max: 1_000,
            positions_per_subscribe_max: 10_000,
            publishes_per_second_max: 1_000_000,
            publish_bytes_per_second_max: 0,
            subscribes_per_second_max: 0,
            connects_per_second_per_address_max: 0,
            token_failures_per_minute_per_address_max: 60,
            connections_per_address_max: 0,
            subscriptions_per_address_max: 0,
            subscribes_per_second_per_address_max: 0,
            publishes_per_second_per_address_max: 0,
            publish_bytes_per_second_per_address_max: 0,
            connects_per_second_per_identity_max: 0,
            connections_per_identity_max: 0,
            subscriptions_per_identity_max: 0,
            subscribes_per_second_per_identity_max: 0,
            publishes_per_second_per_identity_max: 0,
            publish_bytes_per_second_per_identity_max: 0,
            connections_per_tenant_max: 0,
            subscriptions_per_tenant_max: 0,
            publishes_per_second_per_tenant_max: 0,
            publish_bytes_per_second_per_tenant_max: 0,
            burst_ms_max: 1_000,
            rate_limit_entries_max: 200_000,
            handshake_ms_max: 10_000,
            message_ms_max: 10_000,
            poll_ms_max: 60_000,
            ping_interval_ms: 25_000,
            idle_ms_max: 60_000,
            close_ms_max: 5_000,
            answers_bytes_max: 1_048_576,
            answers_age_ms: 300_000,
            reply_age_ms_max: 30_000,
            reply_buffer_bytes_max: 16_384,
            catch_up_bytes_max: 1_048_576,
            streams_per_shard_max: 1_000_000,
            pattern_segments_max: 32,
            patterns_bytes_max: 67_108_864,
            stream_window_bytes_max: 1_048_576,
            windows_bytes_max: 134_217_728,
            stream_linger_ms: 10_000,
            partial_bytes_max: 268_435_456,
            subjects_max: 1_000_000,
            log_messages_max: 1_000,
            log_age_ms_max: 180_000,
            logs_bytes_max: 536_870_912,
            fields_max: 64,
            snapshot_bytes_max: 1_048_576,
            snapshot_age_ms_max: 0,
            snapshots_bytes_max: 402_653_184,
            idempotency_keys_max: 100_000,
            idempotency_keys_age_ms_max: 300_000,
            publishers_max: 1_000_000,
            publishers_age_ms_max: 900_000,
            feed_entries_max: 1_048_576,
            feed_bytes_max: 268_435_456,
            index_entries_max: 4_194_304,
            journal_reads_max: 16,
            journal_page_bytes_max: 262_144,
            resume_token_interval_ms: 1_000,
            interest_debounce_ms: 1_000,
            conflate_ms_min: 100,
            conflate_ms_max: 3_600_000,
            content_depth_max: 128,
            mqtt_receive_max: 1_024,
            mqtt_inflight_max: 256,
            mqtt_aliases_max: 64,
            mqtt_owed_messages_max: 10_000,
            mqtt_owed_bytes_max: 67_108_864,
            mqtt_owed_node_bytes_max: 0,
            mqtt_sessions_max: 1_000_000,
            mqtt_wills_bytes_max: 268_435_456,
            mqtt_session_ms_max: 604_800_000,
            mqtt_keep_alive_ms_max: 3_600_000,
        }
    }
}
