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
/// Longest frame that a client is sent that does not set `frame_bytes_max` (4.4).
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
    /// Most frames that one WebSocket message may come in.
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
    /// Most commands in one array, and most commands that wait for an answer; past it the connection is not read.
    pub commands_in_flight_max: usize,
    /// Most subjects in the map that `after` may be for a pattern.
    pub positions_per_subscribe_max: usize,
    /// Most publishes of one connection in a second; 0: no such limit.
    pub publishes_per_second_max: usize,
    /// Most bytes of content that one connection publishes in a second; 0: no such limit.
    pub publish_bytes_per_second_max: usize,
    /// Most subscribe commands of one connection in a second; 0: no such limit.
    pub subscribes_per_second_max: usize,
    /// Most connections that one address begins in a second; 0: no such limit.
    pub connects_per_second_per_address_max: usize,
    /// Most tokens that were refused to one address in a minute; past it, whoever shows a token from there waits. 0: no such limit.
    pub token_failures_per_minute_per_address_max: usize,
    /// Most connections of one address at once; 0: no such limit.
    pub connections_per_address_max: usize,
    /// Most subscriptions of one address at once, all its connections together; 0: no such limit.
    pub subscriptions_per_address_max: usize,
    /// Most subscribe commands of one address in a second; 0: no such limit.
    pub subscribes_per_second_per_address_max: usize,
    /// Most publishes of one address in a second, all its connections together; 0: no such limit.
    pub publishes_per_second_per_address_max: usize,
    /// Most bytes of content that one address publishes in a second; 0: no such limit.
    pub publish_bytes_per_second_per_address_max: usize,
    /// Most connections that one identity begins in a second; 0: no such limit.
    pub connects_per_second_per_identity_max: usize,
    /// Most connections of one identity at once; 0: no such limit.
    pub connections_per_identity_max: usize,
    /// Most subscriptions of one identity at once, all its connections together; 0: no such limit.
    pub subscriptions_per_identity_max: usize,
    /// Most subscribe commands of one identity in a second; 0: no such limit.
    pub subscribes_per_second_per_identity_max: usize,
    /// Most publishes of one identity in a second, all its connections together; 0: no such limit.
    pub publishes_per_second_per_identity_max: usize,
    /// Most bytes of content that one identity publishes in a second; 0: no such limit.
    pub publish_bytes_per_second_per_identity_max: usize,
    /// Most connections of one tenant at once; 0: no such limit.
    pub connections_per_tenant_max: usize,
    /// Most subscriptions of one tenant at once, all its connections together; 0: no such limit.
    pub subscriptions_per_tenant_max: usize,
    /// Most publishes of one tenant in a second, all its connections together; 0: no such limit.
    pub publishes_per_second_per_tenant_max: usize,
    /// Most bytes of content that one tenant publishes in a second; 0: no such limit.
    pub publish_bytes_per_second_per_tenant_max: usize,
    /// How much of a rate may come at once after a pause: so many milliseconds' worth.
    pub burst_ms_max: u64,
    /// Addresses, identities and tenants whose use is remembered; those with connections are kept beyond it, of the others who owes least goes first.
    pub rate_limit_entries_max: usize,
    /// Time from accepting a connection to its complete request head, and from there to `connect` where one is asked for.
    pub handshake_ms_max: u64,
    /// Time from the first byte of a message to its last.
    pub message_ms_max: u64,
    /// Longest time an HTTP request may wait for a message; one that asks for more gets this.
    pub poll_ms_max: u64,
    /// A connection that was silent this long is sent a ping.
    pub ping_interval_ms: u64,
    /// A connection from which nothing came, and whose socket took nothing, for this long is closed.
    pub idle_ms_max: u64,
    /// Time the peer has to answer a close; then the socket is closed.
    pub close_ms_max: u64,
    /// Bytes of the authorizer's answers that one connection keeps; the oldest go, and are asked for again.
    pub answers_bytes_max: usize,
    /// Age at which an answer of the authorizer is asked for again; a live subscription goes on meanwhile, at most for one more age. 0: an answer does not age.
    pub answers_age_ms: u64,
    /// Age at which messages go on subjects that were first named by a `reply_to`, where their pattern says no less.
    pub reply_age_ms_max: u64,
    /// Replies kept for one connection; past it the connection is not read.
    pub reply_buffer_bytes_max: usize,
    /// Most bytes read from logs in one turn for connections that catch up; the rest waits a turn.
    pub catch_up_bytes_max: usize,
    /// Most streams; those that linger without a listener go first.
    pub streams_per_shard_max: usize,
    /// Most segments of a pattern with a wildcard that is subscribed to or watched.
    pub pattern_segments_max: usize,
    /// Bytes that the node's index of subscribed patterns takes, and as many again for watched ones; one more is refused.
    pub patterns_bytes_max: usize,
    /// Encoded frames one stream keeps; who is further behind is caught up from the logs.
    pub stream_window_bytes_max: usize,
    /// Encoded frames all streams of a shard keep; past it the oldest go.
    pub windows_bytes_max: usize,
    /// Time a stream outlives its last listener.
    pub stream_linger_ms: u64,
    /// Half-received messages, parked commands and partly sent frames of all connections.
    pub partial_bytes_max: usize,
    /// Most subjects with messages, a snapshot or a listener.
    pub subjects_max: usize,
    /// Messages a log keeps; the oldest go.
    pub log_messages_max: usize,
    /// Age at which a log lets a message go.
    pub log_age_ms_max: u64,
    /// Messages of all logs and snapshots; past it the largest of a few sampled logs lose their oldest, and at last their snapshot.
    pub logs_bytes_max: usize,
    /// Largest merged snapshot of a subject; a publish past it is refused (4130).
    pub snapshot_bytes_max: usize,
    /// Age at which a snapshot expires; 0 keeps it.
    pub snapshot_age_ms_max: u64,
    /// Bytes of all merged states (publishes with `merge`); past it such a publish is refused.
    pub snapshots_bytes_max: usize,
    /// Idempotency keys remembered; the oldest go.
    pub idempotency_keys_max: usize,
    /// Age at which an idempotency key is forgotten.
    pub idempotency_keys_age_ms_max: u64,
    /// Publishers whose numbers are remembered; `connected` says `publisher: false` to one more. All together have room for 16 numbers each.
    pub publishers_max: usize,
    /// Age at which a publisher without a connection is forgotten, from its last connection or publish.
    pub publishers_age_ms_max: u64,
    /// Entries of the feed that a shard has not read; publishers are not read while one is half of it behind.
    pub feed_entries_max: usize,
    /// Messages the feed may hold for a shard that has not read them; as feed_entries_max.
    pub feed_bytes_max: usize,
    /// Arrivals the feed remembers for resume tokens; a resume token before them gets a gap.
    pub index_entries_max: usize,
    /// Pages read from the journal at once for clients that go on from further back than memory; who finds no room waits its turn. 0: nothing is read back.
    pub journal_readings_max: usize,
    /// Content of one such page; its last message may pass it.
    pub journal_page_bytes_max: usize,
    /// Time between two resume tokens of a wildcard subscription.
    pub resume_token_interval_ms: u64,
    /// Time after the last listener left before watchers hear of it.
    pub interest_debounce_ms: u64,
    /// Shortest conflation window a subscription may ask for.
    pub conflate_ms_min: u64,
    /// Longest conflation window a subscription may ask for.
    pub conflate_ms_max: u64,
    /// Deepest nesting of JSON content.
    pub content_depth_max: usize,
    /// MQTT: messages of QoS 1 and 2 that a client may have sent and not yet settled (Receive Maximum); in 3.1.1, eight times as many of QoS 2. Past it the connection is closed (0x93).
    pub mqtt_receive_max: usize,
    /// MQTT: messages of QoS 1 and 2 sent to a client that it has not settled, where it does not ask for fewer; more wait in the log.
    pub mqtt_inflight_max: usize,
    /// MQTT: topic aliases a client may use, and at most as many are used towards it; past it the connection is closed (0x94).
    pub mqtt_aliases_max: usize,
    /// MQTT: messages that the logs keep for one session or group because it has still to be sent or to settle them; past it the oldest that wait are skipped, counted and reported.
    pub mqtt_owed_messages_max: usize,
    /// MQTT: the same in bytes.
    pub mqtt_owed_bytes_max: usize,
    /// MQTT: bytes that logs keep only because sessions or groups are owed them, each message counted once; past it whoever holds most of its identity's share skips first. 0: a quarter of `logs_bytes_max`; at most half of it.
    pub mqtt_owed_node_bytes_max: usize,
    /// MQTT: sessions that outlive their connection, of clients that are connected or away; at it a CONNECT that asks for one more is refused. 0: none is kept.
    pub mqtt_sessions_max: usize,
    /// MQTT: the longest that a session outlives its connection; who asks for more is told in CONNACK.
    pub mqtt_session_ms_max: u64,
    /// MQTT 5: the longest keep alive; who asks for more, or for none, is told in CONNACK (Server Keep Alive).
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
            snapshot_bytes_max: 1_048_576,
            snapshot_age_ms_max: 0,
            snapshots_bytes_max: 268_435_456,
            idempotency_keys_max: 100_000,
            idempotency_keys_age_ms_max: 300_000,
            publishers_max: 1_000_000,
            publishers_age_ms_max: 900_000,
            feed_entries_max: 1_048_576,
            feed_bytes_max: 268_435_456,
            index_entries_max: 4_194_304,
            journal_readings_max: 16,
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
            mqtt_session_ms_max: 604_800_000,
            mqtt_keep_alive_ms_max: 3_600_000,
        }
    }
}
