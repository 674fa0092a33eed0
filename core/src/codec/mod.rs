//! Between bytes and commands, replies and pushes: one folder per wire, one door to all of them.
//! Owns encoding only; what a command means is the session's, framing is `websocket`'s. Invariant: no payload panics a
//! parser, and encoding allocates nothing beyond the output buffer.

mod binary;
mod json;
pub mod sse;

use crate::codes::Code;
use crate::command::{Command, Id, Push, Refusal, Reply};
use crate::limits::Limits;
use crate::mqtt::{Version, Writer};

pub use binary::varint;
pub(crate) use json::{check_numbered, check_publisher};

/// Which wire a session speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    Json,
    Binary,
    /// Server-Sent Events of one subject: each event's id is its position.
    Sse,
    /// Server-Sent Events of several subjects, or of a pattern: ids are resume tokens, put in when a slice is sent.
    SseMany,
    /// Elements of a JSON array that answers one HTTP request; also what a connection speaks that makes requests.
    Poll,
    /// MQTT at QoS 0 as every client that wants nothing of its own gets it; also what an MQTT connection speaks.
    Mqtt(Writer),
    /// What MQTT packets of one's own (QoS 1 and 2, aliases, subscription identifiers…) are put together from; never sent as it is.
    MqttParts,
    /// The members of a group that shares an MQTT subscription: nothing is encoded for them together.
    MqttShared(u32),
}

impl Wire {
    /// The end of the subprotocol's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Binary => "binary",
            Self::Sse | Self::SseMany => "sse",
            Self::Poll => "http",
            Self::Mqtt(Writer { version: Version::V3, .. }) => "mqtt3",
            Self::Mqtt(_) | Self::MqttParts | Self::MqttShared(_) => "mqtt5",
        }
    }

    /// Whether it is spoken over a WebSocket, which has frames, pings and closes of its own.
    #[must_use]
    pub const fn is_websocket(self) -> bool {
        matches!(self, Self::Json | Self::Binary | Self::Mqtt(Writer { is_websocket: true, .. }))
    }
}

impl Wire {
    /// Whether messages stay what they were published as: MQTT has no word for one that several became.
    #[must_use]
    pub const fn is_mqtt(self) -> bool {
        matches!(self, Self::Mqtt(_) | Self::MqttParts | Self::MqttShared(_))
    }
}

/// Appends `push` as the JSON wire's object, without a frame.
pub fn object(out: &mut Vec<u8>, push: &Push<'_>) {
    json::put_object(out, push);
}

/// Appends `push` as one whole frame (nothing, where the wire has no such push).
#[inline]
pub fn push(wire: Wire, out: &mut Vec<u8>, push: &Push<'_>) {
    match wire {
        Wire::Json => json::put_push(out, push),
        Wire::Binary => binary::put_push(out, push),
        Wire::Sse => sse::put_push(out, push, true),
        Wire::SseMany => sse::put_push(out, push, false),
        Wire::Poll => sse::put_element(out, push),
        // Messages are put together in `shard::mqtt`; MQTT has no word for the rest.
        Wire::Mqtt(_) | Wire::MqttParts | Wire::MqttShared(_) => {}
    }
}

/// How long a frame is for the limit that a client sets: what a WebSocket message holds, else all of an event or an element, with the id
/// that an event may still get.
#[must_use]
pub fn frame_bytes(wire: Wire, frame: &[u8]) -> usize {
    match (wire, frame.get(1)) {
        (Wire::Json | Wire::Binary, Some(127)) => frame.len().saturating_sub(10),
        (Wire::Json | Wire::Binary, Some(126)) => frame.len().saturating_sub(4),
        (Wire::Json | Wire::Binary, _) => frame.len().saturating_sub(2),
        (Wire::SseMany, _) => frame.len() + sse::ID_BYTES_MAX,
        _ => frame.len(),
    }
}

/// Appends `reply` as one whole frame. Success without an id is silent, but for `subscribed`.
#[inline]
pub fn reply(wire: Wire, out: &mut Vec<u8>, id: &Id, reply: &Reply<'_>) {
    if *id == Id::None && !matches!(reply, Reply::Subscribed { .. } | Reply::Error { .. }) {
        return;
    }
    match wire {
        Wire::Json => json::put_reply(out, id, reply),
        Wire::Binary => binary::put_reply(out, id, reply),
        Wire::Sse => sse::put_reply(out, id, reply, true),
        Wire::SseMany => sse::put_reply(out, id, reply, false),
        // What an HTTP request is answered is the exchange's.
        Wire::Poll => {}
        Wire::Mqtt(_) | Wire::MqttParts | Wire::MqttShared(_) => {}
    }
}

/// The commands of one WebSocket message, checked in number but not yet parsed one by one.
#[derive(Debug)]
pub struct Commands<'a>(Opened<'a>);

#[derive(Debug)]
enum Opened<'a> {
    Json(json::Commands<'a>),
    Binary(binary::Commands<'a>),
}

/// Opens a message's payload; an error means that none of it is executed.
///
/// # Errors
/// What is wrong with the payload as a whole.
pub fn commands<'a>(wire: Wire, payload: &'a [u8], limits: &Limits) -> Result<Commands<'a>, Refusal> {
    Ok(Commands(match wire {
        Wire::Json | Wire::Sse | Wire::SseMany | Wire::Poll => Opened::Json(json::Commands::open(payload, limits)?),
        Wire::Binary => Opened::Binary(binary::Commands::open(payload, limits)?),
        Wire::Mqtt(_) | Wire::MqttParts | Wire::MqttShared(_) => {
            return Err(Refusal::new(Code::DataUnsupported, "MQTT has packets"));
        }
    }))
}

impl<'a> Commands<'a> {
    /// The next command in order; a malformed one is an error with the id it could be found to have.
    #[expect(clippy::should_implement_trait, reason = "the shard drives it by hand, between other work")]
    pub fn next(&mut self) -> Option<(Id, Result<Command<'a>, Refusal>)> {
        match &mut self.0 {
            Opened::Json(commands) => commands.next(),
            Opened::Binary(commands) => commands.next(),
        }
    }
}

/// What parsing a command needs of the limits.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    content_depth_max: usize,
    positions_max: usize,
    fields_max: usize,
    conflate_ms_min: u64,
    conflate_ms_max: u64,
}

impl Bounds {
    fn of(limits: &Limits) -> Self {
        Self {
            content_depth_max: limits.content_depth_max,
            positions_max: limits.positions_per_subscribe_max,
            fields_max: limits.fields_max,
            conflate_ms_min: limits.conflate_ms_min,
            conflate_ms_max: limits.conflate_ms_max,
        }
    }

    /// A conflation window as asked for; 0 is none.
    fn conflate_ms(self, window_ms: u64) -> Result<u32, Refusal> {
        let is_within = window_ms == 0 || (self.conflate_ms_min..=self.conflate_ms_max).contains(&window_ms);
        u32::try_from(window_ms).ok().filter(|_| is_within).ok_or_else(|| {
            let (least, most) = (self.conflate_ms_min, self.conflate_ms_max);
            Refusal::new(Code::FieldInvalid, format!("conflate_ms is between {least} and {most}, or 0"))
        })
    }
}

fn too_many(commands_max: usize) -> Refusal {
    Refusal::new(Code::CommandsTooMany, format!("more than {commands_max} commands in one message"))
}

#[cfg(test)]
mod tests;
