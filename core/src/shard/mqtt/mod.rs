//! MQTT sessions, as further wires of the same streams. Owns what a connection is in MQTT: its client, what is in flight both
//! ways, its will and its aliases; streams, cursors, joins and rights are everybody's. At QoS 0 a plain subscriber sits in a
//! stream of ready packets that all share; whoever wants something of its own sits in a stream of parts, and its packets are
//! put together as they are sent. Nothing is queued for a client: what it cannot take yet waits in the stream or the log.
mod admit;
mod arrive;
mod close;
mod dealt;
mod deliver;
mod flight;
mod gaps;
mod hold;
mod inbound;
mod leave;
mod overlap;
mod parts;
mod publish;
mod resume;
mod retained;
mod save;
mod settle;
mod share;
mod subscribe;

use std::collections::HashMap;
use std::sync::Arc;

use crate::command::Refusal;
use crate::message::LogId;
use crate::mqtt::{Version, Writer};
use crate::node::Received;

pub(super) use deliver::{put_parts, put_shared};
use flight::Flight;
use flight::{OnDisk, Waiting};
pub(super) use gaps::{put_gap, put_notice};
pub(super) use share::Dealing;

/// Keep alives up to this long (one and a half times) are watched closely.
const HASTY_MS_MAX: u32 = 30_000;

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its CONNECT has not come.
    Fresh,
    /// Its CONNECT is being judged, or waits for another connection of the same client to go.
    Arriving,
    Open,
    /// Its session has been let go.
    Left,
}

/// One connection's part of MQTT.
#[derive(Debug)]
pub(super) struct Mqtt {
    pub(super) writer: Writer,
    pub(super) stage: Stage,
    /// The client, as messages name their publisher.
    serial: u32,
    client_id: Arc<str>,
    /// A packet that is not whole yet, and what waits for an answer of the server.
    pub(super) held: Vec<u8>,
    /// Silence after which the client is taken for lost, 0 none; and when it was last heard (monotonic ms).
    silence_ms_max: u32,
    pub(super) heard_ms: u64,
    /// How long its session outlives the connection.
    session_ms: u64,
    packet_bytes_max: u32,
    /// Topic aliases that the client takes.
    alias_max: u16,
    /// Packets it takes in flight.
    in_flight_max: u16,
    /// Publishes of QoS 1 received and not yet answered.
    unanswered: u16,
    flight: Flight,
    /// Publishes of QoS 2 received and not yet released, ascending.
    received: Vec<Received>,
    overlaps: Option<Box<overlap::Overlaps>>,
    arriving: Option<Box<arrive::Arriving>>,
    rare: Option<Box<Rare>>,
    /// A cursor waits for the client to settle what is in flight.
    pub(super) is_stalled: bool,
    /// Messages of QoS 1 or 2 that it was owed are gone: its session ends, and that is how it is told.
    has_lost: bool,
    /// It published more than a rate of its subject allows, and could not be told otherwise.
    has_overrun: bool,
    /// It is a bridge between brokers, which has been logged.
    is_bridge: bool,
    /// It is a member of a group.
    is_sharing: bool,
    /// The node holds its will, which is published unless it leaves in order.
    has_will: bool,
    wants_problems: bool,
    /// Stands for what the journal's notes hold of its session; 0 nothing.
    saved: u64,
    /// The same for what the node knows of where its subscriptions stand.
    held_state: u64,
    /// What had arrived when it was told that last.
    held_at: u64,
}

/// What few clients have.
#[derive(Debug, Default)]
struct Rare {
    /// What the node keeps the client under, its identifier within its tenant; none: the identifier.
    client_key: Option<Arc<str>>,
    aliases: Option<Box<Aliases>>,
    /// What has to be on the disk before the client hears of it.
    on_disk: Option<Box<OnDisk>>,
    /// It asked to be notified of its gaps, with this subscription identifier (0 none).
    gaps: Option<u32>,
    /// The same for what concerns its connection.
    notices: Option<u32>,
    /// It published, in 3.1.1, what cannot be kept: its connection ends with this reason.
    unkept: Option<Refusal>,
}

/// Numbers that stand for topics, each way.
#[derive(Debug, Default)]
struct Aliases {
    /// What the client said each of its aliases means.
    theirs: HashMap<u16, Box<str>>,
    ours: HashMap<LogId, u16>,
}

impl Mqtt {
    pub(super) fn new(is_websocket: bool, now_ms: u64) -> Self {
        Self {
            writer: Writer { version: Version::V3, is_websocket },
            stage: Stage::Fresh,
            serial: 0,
            client_id: Arc::from(""),
            held: Vec::new(),
            silence_ms_max: 0,
            heard_ms: now_ms,
            session_ms: 0,
            packet_bytes_max: u32::MAX,
            alias_max: 0,
            in_flight_max: 0,
            unanswered: 0,
            flight: Flight::default(),
            received: Vec::new(),
            overlaps: None,
            arriving: None,
            rare: None,
            is_stalled: false,
            has_lost: false,
            has_overrun: false,
            is_bridge: false,
            is_sharing: false,
            has_will: false,
            wants_problems: true,
            saved: 0,
            held_state: 0,
            held_at: 0,
        }
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn aliases_mut(&mut self) -> &mut Aliases {
        self.rare_mut().aliases.get_or_insert_default()
    }

    /// With which subscription identifiers it asked to be notified of its gaps, and of what concerns its connection.
    fn notified(&self) -> (Option<u32>, Option<u32>) {
        self.rare.as_ref().map_or((None, None), |rare| (rare.gaps, rare.notices))
    }

    /// Which standard its packets follow, once that is known.
    fn version(&self) -> Option<Version> {
        (self.stage != Stage::Fresh).then_some(self.writer.version)
    }

    /// Whether the client has been silent for longer than it promised to be.
    pub(super) fn is_silent(&self, now_ms: u64) -> bool {
        self.silence_ms_max > 0 && now_ms >= self.heard_ms + u64::from(self.silence_ms_max)
    }

    /// Whether its silence is noticed sooner than the sweep comes by.
    fn is_hasty(&self) -> bool {
        self.stage == Stage::Open && self.silence_ms_max > 0 && self.silence_ms_max <= HASTY_MS_MAX
    }

    /// Whether one more message of QoS 1 or 2 may be sent to it.
    fn has_room(&self) -> bool {
        self.flight.has_room(self.in_flight_max)
    }

    /// Whether packets that all plain subscribers share are good for it: it neither offers aliases nor limits their size.
    fn wants_shared_packets(&self) -> bool {
        self.alias_max == 0 && self.packet_bytes_max == u32::MAX
    }

    /// A text for a reason string, where the client wants those.
    fn problem<'a>(&self, text: &'a str) -> &'a str {
        if self.wants_problems { text } else { "" }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_an_idle_connection_keeps_of_mqtt_is_small() {
        assert!(size_of::<super::Mqtt>() <= 200, "{}", size_of::<super::Mqtt>());
    }
}
