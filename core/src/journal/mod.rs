//! What a node has to write down, as plain values: the rows of the journal's streams, as `protocol/events.toml` lays them down.
//! Owns their shapes and what they cost while they wait; how they are encoded, numbered and kept is the crate `godwit-journal`'s,
//! which also puts node, run, offset and crc to them. A row is cheap to make: what it names is shared, not copied.
mod kept;
mod reading;
mod saved_state;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::command::Outcome;
use crate::holder::Holder;
use crate::message::Message;
use crate::report::ConnectionId;

pub use kept::KeptMessage;
pub use reading::{Ask, Last, Page, PageStart};
pub use saved_state::SavedState;

/// One accepted guaranteed message, in the order of arrival.
#[derive(Clone, Debug)]
pub struct MessageRow {
    pub message: Arc<Message>,
    /// Who published it.
    pub holder: Arc<Holder>,
    /// The idempotency key of its publish.
    pub key: Option<Box<[u8]>>,
    /// The publisher that numbered it, and its number.
    pub numbered: Option<(Arc<str>, u64)>,
    pub is_mqtt: bool,
    /// Its publisher waits until it is on the disk.
    pub needs_disk: bool,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Connected,
    Refused,
    Subscribed,
    Unsubscribed,
    Disconnected,
}

impl AccessKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Refused => "refused",
            Self::Subscribed => "subscribed",
            Self::Unsubscribed => "unsubscribed",
            Self::Disconnected => "disconnected",
        }
    }
}

/// Who a row is about.
#[derive(Clone, Debug)]
pub struct Peer {
    pub connection: ConnectionId,
    pub holder: Arc<Holder>,
    pub client: Arc<str>,
}

/// Who came, what they asked to hear, how they left.
#[derive(Clone, Debug)]
pub struct AccessRow {
    /// By the wall clock: a subscription's is later than all that was handed over under the one that it replaces.
    pub time_us: u64,
    pub kind: AccessKind,
    pub peer: Peer,
    pub address: SocketAddr,
    pub protocol: &'static str,
    pub selector: Option<Arc<str>>,
    pub outcome: Option<Outcome>,
    /// Where the client said it stood: the text of a position or a resume token.
    pub at: Option<Box<str>>,
    pub code: Option<u16>,
    pub reason: Option<Box<str>>,
    pub duration_ms: Option<u64>,
}

/// What a row of deliveries covers. `from` is none where a client confirms everything up to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Sequences of one subject and epoch, both ends included.
    Subject { epoch: u64, from: Option<u64>, to: u64 },
    /// Arrivals of a run, both ends included.
    Pattern { run: u64, from: Option<u64>, to: u64 },
}

/// What was handed to the kernel for one connection and selector since its last row.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    /// By the wall clock, and never before the subscription under which it was handed over.
    pub time_us: u64,
    pub peer: Peer,
    pub selector: Arc<str>,
    pub range: Range,
    pub count: u64,
    pub bytes: u64,
    pub conflated: u64,
    pub gaps: u64,
    /// None: one of the gaps could not count.
    pub gap_count: Option<u64>,
    pub is_confirmed: bool,
}

/// How many buckets of latency there are at most; the last holds all above.
pub const LATENCY_BUCKETS: usize = 40;

/// The bucket of a latency: 0 below 1 µs, i from 2^(i-1) up to 2^i µs.
pub fn latency_bucket(latency_us: u64) -> usize {
    ((u64::BITS - latency_us.leading_zeros()) as usize).min(LATENCY_BUCKETS - 1)
}

/// From acceptance to the kernel, for one selector and period that ends at `time_ms`.
#[derive(Clone, Debug)]
pub struct LatencyRow {
    pub time_ms: u64,
    pub tenant: Option<Arc<str>>,
    pub selector: Arc<str>,
    pub period_ms: u64,
    /// Zeros at the end may be left off.
    pub buckets: Box<[u64]>,
}

/// One metric of `/v1/stats`; the server makes these.
#[derive(Clone, Debug)]
pub struct StatsRow {
    pub time_ms: u64,
    pub metric: Box<str>,
    pub scope: Box<str>,
    pub label: Box<str>,
    pub window: Box<str>,
    pub covered_s: f64,
    pub value: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    pub deviation: Option<f64>,
}

/// What became of one delivery of a notification; dispatch makes these.
#[derive(Clone, Debug, Default)]
pub struct FeedbackRow {
    pub tenant: Box<str>,
    pub time_ms: u64,
    pub event: Box<str>,
    pub notification: Box<str>,
    pub receiver: Box<str>,
    pub address: Box<str>,
    pub channel: Box<str>,
    pub state: Box<str>,
    pub attempt: u32,
    pub reason: Option<Box<str>>,
    pub accepted_ms: Option<u64>,
    pub provider: Option<Box<str>>,
    pub group_name: Option<Box<str>>,
    pub category: Option<Box<str>>,
    pub possible_duplicate: bool,
    pub segments: Option<u32>,
}

/// Rows of one stream, in order.
#[derive(Clone, Debug)]
pub enum Rows {
    Messages(Vec<MessageRow>),
    Access(Vec<AccessRow>),
    Deliveries(Vec<DeliveryRow>),
    Latency(Vec<LatencyRow>),
    Stats(Vec<StatsRow>),
    Feedback(Vec<FeedbackRow>),
}

impl MessageRow {
    /// Bytes that it holds while it waits; the message's own are counted, though the log may share them.
    pub fn cost_bytes(&self) -> usize {
        size_of::<Self>() + self.message.cost_bytes() + self.key.as_ref().map_or(0, |key| key.len())
    }
}

impl AccessRow {
    pub fn cost_bytes(&self) -> usize {
        let texts = [self.at.as_deref(), self.reason.as_deref(), self.selector.as_deref()];
        size_of::<Self>() + texts.iter().flatten().map(|text| text.len()).sum::<usize>()
    }
}

impl DeliveryRow {
    pub fn cost_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl LatencyRow {
    pub fn cost_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets)
    }
}

impl StatsRow {
    pub fn cost_bytes(&self) -> usize {
        size_of::<Self>() + self.metric.len() + self.scope.len() + self.label.len() + self.window.len()
    }
}

impl FeedbackRow {
    pub fn cost_bytes(&self) -> usize {
        let optional = [&self.reason, &self.provider, &self.group_name, &self.category];
        let texts = [&self.tenant, &self.event, &self.notification, &self.receiver, &self.address];
        let held = texts.iter().map(|text| text.len()).sum::<usize>() + self.channel.len() + self.state.len();
        size_of::<Self>() + held + optional.iter().filter_map(|text| text.as_deref()).map(str::len).sum::<usize>()
    }
}

impl Rows {
    pub fn len(&self) -> usize {
        match self {
            Self::Messages(rows) => rows.len(),
            Self::Access(rows) => rows.len(),
            Self::Deliveries(rows) => rows.len(),
            Self::Latency(rows) => rows.len(),
            Self::Stats(rows) => rows.len(),
            Self::Feedback(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that they hold while they wait.
    pub fn cost_bytes(&self) -> usize {
        match self {
            Self::Messages(rows) => rows.iter().map(MessageRow::cost_bytes).sum(),
            Self::Access(rows) => rows.iter().map(AccessRow::cost_bytes).sum(),
            Self::Deliveries(rows) => rows.iter().map(DeliveryRow::cost_bytes).sum(),
            Self::Latency(rows) => rows.iter().map(LatencyRow::cost_bytes).sum(),
            Self::Stats(rows) => rows.iter().map(StatsRow::cost_bytes).sum(),
            Self::Feedback(rows) => rows.iter().map(FeedbackRow::cost_bytes).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_falls_into_the_bucket_whose_bounds_hold_it() {
        for (latency_us, bucket) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11)] {
            assert_eq!(latency_bucket(latency_us), bucket, "{latency_us}");
        }
        assert_eq!(latency_bucket(u64::MAX), LATENCY_BUCKETS - 1);
        assert_eq!(latency_bucket(1 << 38), LATENCY_BUCKETS - 1);
        assert_eq!(latency_bucket((1 << 38) - 1), LATENCY_BUCKETS - 2);
    }
}
