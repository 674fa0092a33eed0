//! What a shard knows of one socket. Owns the fields and their small questions; about 150 bytes, because there are very
//! many: what most connections do not need lies behind `details`, and who it is and may do is shared by identity.
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) use super::access::Peer;
use super::access::{Door, Excess, Prepaid, Reasked};
use super::http::Exchange;
use super::mqtt::{Mqtt, Stage};
use super::outbound::Rest;
use crate::account::{Member, RateCost};
use crate::codec::Wire;
use crate::cursor::NONE;
use crate::holder::Holder;
use crate::limits::FRAME_BYTES_DEFAULT;
use crate::position::Moment;
use crate::report::ConnectionId;
use crate::rights::{Rights, Rule};
use crate::settings::Settings;
use crate::websocket::Reader;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It sends requests, one of which may be half received, or wait for its answer.
    Http,
    Open,
    /// A close frame or a refusal is on its way out; nothing is read any more.
    Closing,
}

/// Who a connection is and what it may do, shared by all connections of one identity.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub holder: Arc<Holder>,
    pub rights: Arc<Rights>,
    pub token: Option<Arc<str>>,
    pub is_anonymous: bool,
    /// It is what every connection without a token has, of the settings.
    pub is_basis: bool,
    /// Where it is counted, if its identity or its tenant has limits.
    pub identity_member: Option<Arc<Member>>,
    pub tenant_member: Option<Arc<Member>>,
}

impl Access {
    /// What a connection has that showed no token; none where it must show one. Rules that do not compile grant nothing.
    pub(super) fn anonymous(settings: &Settings) -> Option<Arc<Self>> {
        let rules = settings.anonymous.as_ref()?;
        let rights = Rights::compile(rules).unwrap_or_default();
        Some(Arc::new(Self {
            holder: Holder::nobody(),
            rights: Arc::new(rights),
            token: None,
            is_anonymous: true,
            is_basis: true,
            identity_member: None,
            tenant_member: None,
        }))
    }

    pub(super) fn granted(holder: Arc<Holder>, rights: Arc<Rights>, token: Option<Arc<str>>) -> Self {
        let is_anonymous = holder.identity.is_empty();
        let (identity_member, tenant_member) = (None, None);
        Self { holder, rights, token, is_anonymous, is_basis: false, identity_member, tenant_member }
    }

    /// Who vouches for it, as `Settings::trusts` takes it.
    pub(super) fn voucher(&self) -> Arc<str> {
        match &self.rights.source {
            Some(source) => Arc::clone(source),
            None => Arc::from(format!("{}\n{}", self.holder.authority, self.holder.identity)),
        }
    }

    /// Whether a connection stays counted where it is.
    pub(super) fn is_same_member(&self, other: &Self) -> bool {
        !self.is_anonymous && self.holder == other.holder
    }

    /// The same for one connection alone, with answers of its own.
    pub(super) fn alone(&self) -> Arc<Self> {
        Arc::new(Self { rights: Arc::new(self.rights.unanswered()), is_basis: false, ..self.clone() })
    }
}

/// The session's public name: the connection's, in hexadecimal.
pub(super) fn session_name(connection: ConnectionId) -> String {
    format!("{:x}", connection.0)
}

/// Why nothing may be sent to a client now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    Free,
    /// What it is sent next has to be on the disk before.
    Disk,
    /// The socket takes nothing; `writable` will come. It is counted as a slow consumer.
    Socket,
}

/// Its fields stand in this order: what a delivery looks at comes first and lies together, since it is seldom in a cache.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Connection {
    /// Bytes of its own that have to leave before any stream's: answers, gaps, snapshots, a frame's rest.
    pub private: Vec<u8>,
    pub cursors: u32,
    /// What its address is counted under among all connections; 0: it is not.
    pub origin: u32,
    /// Head of the list of cursors with something to send this turn.
    pub first_ready: u32,
    /// When it last gave a sign of life.
    pub heard: Moment,
    pub wire: Wire,
    pub phase: Phase,
    /// Its place in the counters by wire.
    pub counted: u8,
    pub blocked: Blocked,
    /// A send is not answered yet.
    pub is_sending: bool,
    /// A large frame's rest has to leave first.
    pub has_rest: bool,
    /// It stands in the shard's `ready` list.
    pub is_ready: bool,
    pub is_pinged: bool,
    /// Of the window within which its messages are deflated (permessage-deflate); 0: that was not agreed.
    pub window_bits: u8,
    pub first_cursor: u32,
    pub serial: u32,
    /// When it came.
    pub since: Moment,
    pub peer: Peer,
    /// The listener it came to, in the order of the settings.
    pub listener: u8,
    pub door: Door,
    /// Its requests come through a trusted proxy, which says whose each is.
    pub is_forwarded: bool,
    /// Its socket is not read: a question is with the server, or its answers do not leave.
    pub is_paused: bool,
    /// A question is with the server; commands wait.
    pub is_asking: bool,
    /// Its answers do not leave.
    pub is_choked: bool,
    /// It publishes faster than the slowest shard delivers.
    pub is_congesting: bool,
    pub is_watching: bool,
    /// It is known that it came: the journal and the server have been told.
    pub is_announced: bool,
    /// The peer has closed, or never spoke WebSocket: it is let go once its bytes have left.
    pub is_finished: bool,
    pub access: Option<Arc<Access>>,
    /// Where its address is counted, if addresses have limits.
    pub member: Option<Member>,
    /// What it has shown of itself, if anything.
    pub papers: Option<Box<Papers>>,
    pub reader: Reader,
    pub details: Option<Box<Details>>,
    /// What it is in MQTT, if it speaks that.
    pub mqtt: Option<Box<Mqtt>>,
}

/// What a client has shown of itself, for as long as it stays.
#[derive(Debug, Default)]
pub(super) struct Papers {
    /// The name it gave itself.
    pub client: Option<Arc<str>>,
    /// Its verified certificate, then those it sent with it (DER).
    pub certificate: Option<Arc<[u8]>>,
    /// When its token expires (Unix ms).
    pub expires_ms: Option<u64>,
    /// When it is notified that its token expires soon (Unix ms); `NOTIFIED` once it has been.
    pub notice_ms: u64,
    /// The longest frame that it takes; none: the default.
    pub frame_bytes_max: Option<u32>,
    /// Under whom its publishes are numbered.
    pub publisher: Option<Box<Publisher>>,
}

/// Of `Papers::notice_ms`: the notice was sent.
pub(super) const NOTIFIED: u64 = u64::MAX;

/// The publisher of a connection.
#[derive(Debug)]
pub(super) struct Publisher {
    pub name: Arc<str>,
    /// The first number that it had not used when it was named.
    pub first: Option<u64>,
    /// What the node remembers it under; none: it is not known there, for want of room or until the client is.
    pub scope: Option<u128>,
}

/// What few connections need, or need only for a while: let go of when it holds nothing any more.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// The request head so far; then commands that wait for an answer of the server.
    pub held: Vec<u8>,
    pub parked: Option<Parked>,
    pub rest: Option<Rest>,
    /// Rests that are this connection's alone, as far as they are counted.
    pub rest_bytes: usize,
    /// The id of the `connect` that the server is judging.
    pub connect_id: Option<crate::command::Id>,
    /// What the command under way asked, and nobody answered.
    pub unanswered: Vec<Rule>,
    /// How many parts of it have been judged, where it has many to ask about.
    pub asked: usize,
    /// What it has paid before it asked.
    pub prepaid: Prepaid,
    /// Subscriptions that the server is asked about again.
    pub reasked: Vec<Reasked>,
    /// Answers that wait for the disk.
    pub awaiting: u32,
    /// What it has taken of the rates of one connection.
    pub rate_cost: RateCost,
    /// Its address has as much as it may have: its first words are answered with that.
    pub turned_away: Option<Excess>,
    /// The hash of the token that is being judged, and for a renewal that of its holder.
    pub tried: Option<(u64, Option<u64>)>,
    pub close: Option<Close>,
    pub exchange: Option<Box<Exchange>>,
    /// Since when a message has been half received (monotonic ms).
    pub half_since_ms: Option<u64>,
}

/// How a connection ends.
#[derive(Debug)]
pub(super) struct Close {
    pub code: u16,
    /// What was said beside the code by whoever closed it, if anything was.
    pub reason: Option<Box<str>>,
    /// When it is cut off (monotonic ms).
    pub deadline_ms: u64,
}

/// A message whose commands wait: its payload, how many of them are done, and what came behind it.
#[derive(Debug)]
pub(super) struct Parked {
    pub payload: Vec<u8>,
    pub done: usize,
    pub rest: Vec<u8>,
}

impl Details {
    /// Whether nothing of it is needed; what was taken of rates is made good by `now_ns`.
    fn is_empty(&self, now_ns: u64) -> bool {
        let Self { held, parked, rest, rest_bytes, connect_id, tried, .. } = self;
        let Self {
            unanswered, prepaid, reasked, awaiting, rate_cost, turned_away, close, exchange, half_since_ms, ..
        } = self;
        let is_read = held.is_empty() && parked.is_none() && half_since_ms.is_none() && exchange.is_none();
        let is_sent = rest.is_none() && *rest_bytes == 0 && *awaiting == 0 && close.is_none();
        let is_asking = connect_id.is_some() || tried.is_some() || !unanswered.is_empty() || !reasked.is_empty();
        let has_paid = *prepaid != Prepaid::default();
        is_read && is_sent && !is_asking && !has_paid && turned_away.is_none() && rate_cost.owed_ns(now_ns) == 0
    }
}

impl Connection {
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked != Blocked::Free
    }

    pub(super) fn is_slow(&self) -> bool {
        self.blocked == Blocked::Socket
    }

    pub(super) fn wait_for_disk(&mut self) {
        if self.blocked == Blocked::Free {
            self.blocked = Blocked::Disk;
        }
    }

    pub(super) fn new(serial: u32, address: SocketAddr, listener: u8, door: Door, now: Moment) -> Self {
        Self {
            serial,
            first_cursor: NONE,
            first_ready: NONE,
            cursors: 0,
            origin: 0,
            since: now,
            heard: now,
            phase: Phase::Http,
            wire: Wire::Poll,
            window_bits: 0,
            counted: 0,
            blocked: Blocked::Free,
            is_sending: false,
            has_rest: false,
            is_ready: false,
            is_paused: false,
            is_asking: false,
            is_choked: false,
            is_congesting: false,
            is_pinged: false,
            is_watching: false,
            is_announced: false,
            is_finished: false,
            peer: Peer::new(address),
            listener,
            door,
            is_forwarded: false,
            access: None,
            member: None,
            papers: None,
            private: Vec::new(),
            reader: Reader::default(),
            details: None,
            mqtt: None,
        }
    }

    pub(super) fn details(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    pub(super) fn papers(&mut self) -> &mut Papers {
        self.papers.get_or_insert_default()
    }

    /// The certificate it showed, which the server is told of.
    pub(super) fn certificate(&self) -> Option<Arc<[u8]>> {
        self.papers.as_ref()?.certificate.clone()
    }

    /// Lets go of details that hold nothing any more.
    pub(super) fn release_details(&mut self, now_ns: u64) {
        if self.details.as_ref().is_some_and(|details| details.is_empty(now_ns)) {
            self.details = None;
        }
    }

    /// The longest frame that its client takes; 0: any, for MQTT has a limit of its own.
    pub(super) fn frame_bytes_max(&self) -> u32 {
        let said = self.papers.as_ref().and_then(|papers| papers.frame_bytes_max);
        if self.wire.is_mqtt() { 0 } else { said.unwrap_or(FRAME_BYTES_DEFAULT as u32) }
    }

    /// Bytes of its own that its socket has not taken.
    pub(super) fn owed_bytes(&self) -> usize {
        let rest =
            self.details.as_ref().filter(|details| details.rest_bytes > 0).and_then(|details| details.rest.as_ref());
        self.private.len() + rest.map_or(0, |rest| rest.bytes.len() - rest.from)
    }

    /// What it needs that speaks HTTP.
    pub(super) fn exchange(&mut self) -> &mut Exchange {
        self.details().exchange.get_or_insert_default()
    }

    /// Whether it waits between requests, or has never said a word: nothing of its peer's is under way.
    pub(super) fn has_asked_nothing(&self) -> bool {
        let is_open_to_ask = match &self.mqtt {
            Some(mqtt) => mqtt.stage == Stage::Fresh && mqtt.held.is_empty(),
            None => self.phase == Phase::Http,
        };
        let is_idle = |details: &Details| {
            details.exchange.is_none() && details.half_since_ms.is_none() && details.held.is_empty()
        };
        is_open_to_ask && !self.is_asking && self.private.is_empty() && self.details.as_deref().is_none_or(is_idle)
    }

    /// Whether a stream's frames can be handed to the socket right now.
    pub(super) fn takes_frames(&self) -> bool {
        !self.is_blocked() && !self.is_sending && !self.has_rest && self.private.is_empty() && self.phase == Phase::Open
    }

    /// Whether its bytes are MQTT packets, without a WebSocket around them.
    pub(super) fn speaks_packets(&self) -> bool {
        self.mqtt.as_ref().is_some_and(|mqtt| !mqtt.writer.is_websocket)
    }

    pub(super) fn client(&self) -> Option<&Arc<str>> {
        let named = self.papers.as_ref().and_then(|papers| papers.client.as_ref());
        named.or_else(|| self.mqtt.as_ref().and_then(|mqtt| mqtt.name()))
    }
}

#[cfg(test)]
mod tests {
    use crate::{cursor::Cursor, shard::connection::Connection};

    #[test]
    fn a_connection_and_a_cursor_are_small() {
        assert!(size_of::<Option<Connection>>() <= 144, "{}", size_of::<Option<Connection>>());
        assert!(size_of::<Option<Cursor>>() <= 72, "{}", size_of::<Option<Cursor>>());
    }
}
