//! What the engine tells the server (reports) and what the server tells the engine (orders), both in batches.
//! Owns the two lists; how they cross to Python is the bridge's.
mod counters;

use std::net::SocketAddr;
use std::sync::Arc;

use crate::codes::Code;
use crate::command::Outcome;
use crate::holder::{Holder, Revoked};
use crate::message::LogId;
use crate::position::Position;
use crate::rights::{Action, Rights, Rule};
use crate::settings::Settings;

pub use counters::{Codes, Counters, Hits, Tally, WireCounters, Wires};

/// A connection for as long as the node runs: shard (8 bits), serial (32), slot (24). Never reused within 2³² connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    pub fn new(shard: u8, serial: u32, slot: u32) -> Self {
        Self(u64::from(shard) << 56 | u64::from(serial) << 24 | u64::from(slot & 0xff_ffff))
    }

    pub fn shard(self) -> u8 {
        (self.0 >> 56) as u8
    }

    pub fn serial(self) -> u32 {
        (self.0 >> 24) as u32
    }

    pub fn slot(self) -> u32 {
        (self.0 & 0xff_ffff) as u32
    }
}

/// What happened, for the server. Questions (`Authorize`, `Ask`) are never dropped; the rest may be, and is counted.
#[derive(Clone, Debug)]
pub enum Report {
    /// A token was shown; the connection is not read until an order answers.
    Authorize {
        connection: ConnectionId,
        token: Option<String>,
        client: Option<String>,
        address: SocketAddr,
        /// What it may do now was granted by the server before.
        is_renewal: bool,
        /// The certificate that its TLS connection was verified by, then those sent with it (DER), where it is to say who comes.
        certificate: Option<Arc<[u8]>>,
    },
    /// A rule says "ask": the connection is not read until an order answers.
    Ask {
        connection: ConnectionId,
        holder: Arc<Holder>,
        action: Action,
        selector: String,
        /// Nothing waits for it: a subscription that an answer granted goes on meanwhile.
        is_background: bool,
    },
    Connected {
        connection: ConnectionId,
        holder: Arc<Holder>,
        client: Arc<str>,
        address: SocketAddr,
        protocol: &'static str,
    },
    /// A client that is connected showed another token, which was granted; `token` is its name.
    Renewed {
        connection: ConnectionId,
        holder: Arc<Holder>,
        token: Option<Arc<str>>,
    },
    Subscribed {
        connection: ConnectionId,
        selector: String,
        outcome: Outcome,
        at: Option<Position>,
    },
    Unsubscribed {
        connection: ConnectionId,
        selector: String,
    },
    /// `code` may be one that the peer chose.
    Disconnected {
        connection: ConnectionId,
        code: u16,
        duration_ms: u64,
    },
    /// A command was answered with an error: a few a second are told, the counters have all.
    CommandRefused {
        connection: ConnectionId,
        holder: Arc<Holder>,
        address: SocketAddr,
        code: Code,
        reason: String,
        /// An MQTT client's identifier; none: it speaks another protocol.
        client: Option<Arc<str>>,
    },
    /// A connection that never became a session, or a handshake that was refused.
    Refused {
        address: SocketAddr,
        code: Code,
        reason: String,
    },
    /// A login was refused, or the token of a renewal; `client` is what the peer calls itself.
    LoginRefused {
        connection: ConnectionId,
        client: Arc<str>,
        address: SocketAddr,
        code: Code,
        reason: String,
    },
    /// Messages that an MQTT session was owed are gone; none: nobody can count them.
    MqttMissed {
        client: Arc<str>,
        selector: String,
        missed: Option<u64>,
        reason: &'static str,
    },
    /// An MQTT session or group was owed more than it may be: its oldest messages are kept for it no longer.
    MqttOverdue {
        name: Arc<str>,
        messages: u64,
        bytes: u64,
    },
    Drained {
        shard: u8,
    },
    /// A shard's thread gave up; its connections are gone.
    ShardFailed {
        shard: u8,
        reason: String,
    },
    /// The journal's disk fails, and this is what it says; none: it does no longer.
    Journal {
        reason: Option<String>,
    },
    /// The journal's file of snapshots cannot be written, and this is why; none: it can again.
    SnapshotsFile {
        reason: Option<String>,
    },
    /// Segments of the journal cannot be sealed, or old ones removed, and this is why; none: they can again.
    Sealing {
        reason: Option<String>,
    },
    /// Answers a list, or a part of it: `next` is where to go on when not every connection was looked at.
    Connections {
        ask: u64,
        shard: u8,
        rows: Vec<ConnectionRow>,
        next: Option<ConnectionId>,
    },
}

/// One connection, as operators see it.
#[derive(Clone, Debug)]
pub struct ConnectionRow {
    pub connection: ConnectionId,
    pub address: SocketAddr,
    pub holder: Arc<Holder>,
    pub client: Arc<str>,
    pub protocol: &'static str,
    pub connected_ms: u64,
    pub subscriptions: u32,
    /// Subscriptions that are not at the head of their stream.
    pub behind: u32,
    /// Encoded bytes between where it stands and the heads of its streams' windows.
    pub lag_bytes: u64,
    /// For what comes from the logs: messages the node accepted since the one that the furthest subscription stands at.
    pub lag_arrivals: u64,
    /// Where each subscription stands; only of a connection that is shown alone, and not more than `STANDS_MAX`.
    pub stands: Vec<SubscriptionRow>,
}

/// Most subscriptions that are told of one connection.
pub const STANDS_MAX: usize = 1000;

/// Where one subscription stands behind the head.
#[derive(Clone, Debug)]
pub struct SubscriptionRow {
    pub selector: Arc<str>,
    /// `live`, `behind` (it is caught up from the logs) or `joining`.
    pub stand: &'static str,
    pub lag_bytes: u64,
    pub lag_arrivals: u64,
    /// Messages of its subject that it has not been sent; none where that is not known without counting.
    pub lag_messages: Option<u64>,
    /// Its window of conflation; 0: every message.
    pub conflate_ms: u32,
}

/// Which connections an operator asks for.
#[derive(Clone, Debug)]
pub struct ConnectionList {
    /// A connection; or, with the serial 0 that none has, the place to go on from.
    pub after: ConnectionId,
    pub limit: u32,
    /// Only those in whose address, identity, client name or id this is found.
    pub search: Option<String>,
    /// Only those that are not at the head of all their streams.
    pub is_behind: bool,
}

/// One subject, as operators see it.
#[derive(Clone, Debug)]
pub struct SubjectRow {
    pub subject: Arc<str>,
    pub log: LogId,
    pub at: Position,
    pub messages: u64,
    pub bytes: u64,
    /// Subscriptions to the subject itself, those of patterns not counted; who left may count for a second or so.
    pub subscribers: u32,
    pub has_snapshot: bool,
    pub last_ms: u64,
}

/// What the server decided.
#[derive(Clone, Debug)]
pub enum Order {
    /// Answers `Authorize`: who it is, what it may do, and until when (wall clock; none: no end).
    Grant {
        connection: ConnectionId,
        holder: Arc<Holder>,
        rights: Arc<Rights>,
        expires_ms: Option<u64>,
        /// The token's own name, which a revocation may name.
        token: Option<Arc<str>>,
    },
    /// Closes every connection whose rights come from a source, as its grant named it.
    Withdraw {
        /// A source, or one of its keys: `SOURCE`, a line's end and the key.
        source: Arc<str>,
        code: Code,
        /// They may show another token first, each within its part of this time; 0: they end at once.
        within_ms: u64,
    },
    /// Answers to `Ask` may have changed: those about an identity of a tenant, or about all, are forgotten and asked for again.
    AskAgain {
        identity: Option<Arc<str>>,
        tenant: Option<Arc<str>>,
    },
    /// Closes every connection of an identity, or that came with a token of this name.
    Revoke {
        revoked: Revoked,
        code: Code,
    },
    /// Answers `Authorize` with a no: the connection is closed with the code.
    Refuse {
        connection: ConnectionId,
        code: Code,
        reason: String,
    },
    /// Answers `Ask` with a rule that is added to the connection's rights; one that says `ask` too: there is no answer now, and
    /// the command is refused as one that may be sent again.
    Answer {
        connection: ConnectionId,
        rule: Rule,
        /// The question was asked in the background.
        is_background: bool,
    },
    Close {
        connection: ConnectionId,
        code: Code,
        reason: String,
    },
    /// Stop accepting, tell every client to reconnect within `spread_ms`, close what is left after `grace_ms`.
    Drain {
        grace_ms: u64,
        spread_ms: u64,
    },
    /// A subject's messages were taken back: encoded copies of them go too.
    Purge {
        subject: Arc<str>,
        log: LogId,
    },
    /// Other settings; those of the start (listeners, driver, shards) stay.
    Configure(Arc<Settings>),
    ListConnections {
        ask: u64,
        list: ConnectionList,
    },
    ShowConnection {
        ask: u64,
        connection: ConnectionId,
    },
    /// What one of its cursors asked the journal for.
    Page(Box<crate::journal::Page>),
    Stop,
}
