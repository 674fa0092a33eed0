//! Every stream of the journal and its fields, in the order of a row.
//!
//! Generated from protocol/events.toml by `make generate`; change it there.

/// One of the journal's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stream {
    /// Every persistent message that was accepted, in the order of acceptance. At-most-once messages have no position and are not recorded.
    Messages,
    /// Connections, refusals, subscriptions, and their ends.
    Access,
    /// What was passed to the kernel for whom, as ranges: one row for each connection, selector and flush, never one for each message. A row never spans two epochs. For a shared MQTT subscription (`$share`) the rows belong to the group: each message of the range was sent to one of its members, which is not recorded.
    Deliveries,
    /// How long messages took from acceptance until the kernel had them: a histogram for each selector and period.
    Latency,
    /// The metrics of /v1/stats: one row for each metric, scope and window.
    Stats,
    /// The node's runs: when each began and which run it follows, when it ended, and rows lost to a failing disk.
    Runs,
    /// The result of each delivery of a notification. Dispatch writes a row for each delivery of each event of its feed, under the node name NODE-dispatch, in its own journal: DIR/dispatch/journal.
    Feedback,
}

impl Stream {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: [Self; 7] = [Self::Messages, Self::Access, Self::Deliveries, Self::Latency, Self::Stats, Self::Runs, Self::Feedback];

    /// Its name, which is its folder's too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Access => "access",
            Self::Deliveries => "deliveries",
            Self::Latency => "latency",
            Self::Stats => "stats",
            Self::Runs => "runs",
            Self::Feedback => "feedback",
        }
    }

    /// Its fields, in the order of a row.
    #[must_use]
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::Messages => &MESSAGES,
            Self::Access => &ACCESS,
            Self::Deliveries => &DELIVERIES,
            Self::Latency => &LATENCY,
            Self::Stats => &STATS,
            Self::Runs => &RUNS,
            Self::Feedback => &FEEDBACK,
        }
    }
}

/// What a field's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    String,
    Binary,
    Int32,
    Int64,
    Double,
    Boolean,
    Timestamp,
    Int64List,
}

/// One field of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Type,
    pub is_nullable: bool,
}

const fn field(name: &'static str, kind: Type, is_nullable: bool) -> Field {
    Field { name, kind, is_nullable }
}

static MESSAGES: [Field; 22] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("subject", Type::String, false),
    field("epoch", Type::Int64, false),
    field("sequence", Type::Int64, false),
    field("arrival", Type::Int64, false),
    field("kind", Type::String, false),
    field("content", Type::Binary, false),
    field("publisher", Type::String, false),
    field("key", Type::Binary, true),
    field("flags", Type::Int32, false),
    field("reply_to", Type::String, true),
    field("expiry_s", Type::Int64, true),
    field("properties", Type::Binary, true),
    field("authority", Type::String, true),
    field("publisher_id", Type::String, true),
    field("publisher_number", Type::Int64, true),
    field("fields", Type::String, true),
    field("crc", Type::Int64, false),
];

static ACCESS: [Field; 19] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("kind", Type::String, false),
    field("connection", Type::Int64, false),
    field("identity", Type::String, false),
    field("client", Type::String, false),
    field("address", Type::String, false),
    field("protocol", Type::String, false),
    field("selector", Type::String, true),
    field("outcome", Type::String, true),
    field("resumed_from", Type::String, true),
    field("code", Type::Int32, true),
    field("reason", Type::String, true),
    field("duration_ms", Type::Int64, true),
    field("authority", Type::String, true),
    field("crc", Type::Int64, false),
];

static DELIVERIES: [Field; 24] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("connection", Type::Int64, false),
    field("identity", Type::String, false),
    field("client", Type::String, false),
    field("selector", Type::String, false),
    field("is_pattern", Type::Boolean, false),
    field("epoch", Type::Int64, true),
    field("from_sequence", Type::Int64, true),
    field("to_sequence", Type::Int64, true),
    field("from_arrival", Type::Int64, true),
    field("to_arrival", Type::Int64, true),
    field("arrival_run", Type::String, true),
    field("count", Type::Int64, false),
    field("bytes", Type::Int64, false),
    field("conflated", Type::Int64, false),
    field("gaps", Type::Int64, false),
    field("gap_count", Type::Int64, true),
    field("confirmed", Type::Boolean, false),
    field("authority", Type::String, true),
    field("crc", Type::Int64, false),
];

static LATENCY: [Field; 10] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("selector", Type::String, false),
    field("period_ms", Type::Int64, false),
    field("count", Type::Int64, false),
    field("buckets", Type::Int64List, false),
    field("crc", Type::Int64, false),
];

static STATS: [Field; 15] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("metric", Type::String, false),
    field("scope", Type::String, false),
    field("label", Type::String, false),
    field("window_name", Type::String, false),
    field("covered_s", Type::Double, false),
    field("value", Type::Double, true),
    field("max", Type::Double, true),
    field("mean", Type::Double, true),
    field("deviation", Type::Double, true),
    field("crc", Type::Int64, false),
];

static RUNS: [Field; 16] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("kind", Type::String, false),
    field("epoch", Type::Int64, false),
    field("follows_run", Type::String, true),
    field("follows_arrival", Type::Int64, true),
    field("follows_clean", Type::Boolean, true),
    field("stream", Type::String, true),
    field("from_arrival", Type::Int64, true),
    field("to_arrival", Type::Int64, true),
    field("count", Type::Int64, true),
    field("reason", Type::String, true),
    field("crc", Type::Int64, false),
];

static FEEDBACK: [Field; 20] = [
    field("node", Type::String, false),
    field("run", Type::String, false),
    field("tenant", Type::String, false),
    field("journal_offset", Type::Int64, false),
    field("time", Type::Timestamp, false),
    field("event", Type::String, false),
    field("notification", Type::String, false),
    field("receiver", Type::String, false),
    field("address", Type::String, false),
    field("channel", Type::String, false),
    field("state", Type::String, false),
    field("attempt", Type::Int32, false),
    field("reason", Type::String, true),
    field("accepted", Type::Timestamp, true),
    field("provider", Type::String, true),
    field("group_name", Type::String, true),
    field("category", Type::String, true),
    field("possible_duplicate", Type::Boolean, false),
    field("segments", Type::Int32, true),
    field("crc", Type::Int64, false),
];
