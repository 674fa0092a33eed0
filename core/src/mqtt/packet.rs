//! Packets: where one ends in a run of bytes, and what it is (2.1).
use super::Version;
use super::acknowledge::{self, Acknowledge, Disconnect};
use super::connect::{self, Connect};
use super::fields::{Fault, Varint, read_varint};
use super::publish::{self, Publish};
use super::reason::Reason;
use super::subscribe::{self, Subscribe, Unsubscribe};
use crate::codes::Code;

/// What stands at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// A whole packet: its first byte, where its body begins and ends.
    Whole { first: u8, start: usize, end: usize },
    /// More bytes are needed.
    Part,
}

/// Finds the first packet. A packet longer than `bytes_max` is refused as soon as its length is known, before it is held.
pub fn split(bytes: &[u8], version: Option<Version>, bytes_max: usize) -> Result<Split, Fault> {
    let Some((&first, rest)) = bytes.split_first() else { return Ok(Split::Part) };
    check_first(first, version)?;
    match read_varint(rest) {
        Varint::Short => Ok(Split::Part),
        Varint::TooLong => Err(Fault::malformed("the remaining length has five bytes")),
        Varint::Whole { is_shortest: false, .. } if version == Some(Version::V5) => {
            Err(Fault::malformed("the remaining length is not in its shortest form"))
        }
        Varint::Whole { value, bytes: count, is_shortest } => {
            let (start, end) = (1 + count, 1 + count + value as usize);
            if end > bytes_max {
                let text = "the packet is larger than this node takes (limits.message_bytes_max)";
                return Err(Fault::of(Code::MessageTooBig, Reason::PACKET_TOO_LARGE, text));
            }
            let Some(body) = bytes.get(start..end) else { return Ok(Split::Part) };
            if !is_shortest && version.is_none() && connect::version_of(body) == Some(Version::V5) {
                return Err(Fault::malformed("the remaining length is not in its shortest form"));
            }
            Ok(Split::Whole { first, start, end })
        }
    }
}

/// The type and its flags [MQTT-2.1.3-1]; before CONNECT nothing else may come [MQTT-3.1.0-1].
fn check_first(first: u8, version: Option<Version>) -> Result<(), Fault> {
    let (kind, flags) = (first >> 4, first & 15);
    let Some(version) = version else {
        return if first == 0x10 { Ok(()) } else { Err(Fault::protocol("the first packet is no CONNECT")) };
    };
    let wanted = match kind {
        3 => return Ok(()),
        1 | 4 | 5 | 7 | 12 | 14 => 0,
        6 | 8 | 10 => 2,
        2 | 9 | 11 | 13 => 0,
        15 if version == Version::V5 => 0, // [MQTT-3.15.1-1]
        // What cannot be parsed is malformed (1.2).
        _ => return Err(Fault::malformed("there is no such packet")),
    };
    if flags != wanted {
        return Err(Fault::malformed("the flags of the packet's first byte are wrong"));
    }
    match kind {
        2 | 9 | 11 | 13 => Err(Fault::protocol("a client does not send this packet")),
        _ => Ok(()),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    Publish(Publish<'a>),
    Puback(Acknowledge),
    Pubrec(Acknowledge),
    Pubrel(Acknowledge),
    Pubcomp(Acknowledge),
    Subscribe(Subscribe<'a>),
    Unsubscribe(Unsubscribe<'a>),
    Pingreq,
    Disconnect(Disconnect<'a>),
}

/// Reads a packet that `split` found. Without a version it is the CONNECT; what is wrong with that comes with the standard
/// it seems to speak, if it came so far. `alias_max`: the topic aliases that were offered.
pub fn parse(
    first: u8,
    body: &[u8],
    version: Option<Version>,
    alias_max: u16,
) -> Result<Packet<'_>, (Fault, Option<Version>)> {
    let Some(version) = version else {
        return connect::parse(body).map(Packet::Connect).map_err(|fault| (fault, connect::version_of(body)));
    };
    parse_known(first, body, version, alias_max).map_err(|fault| (fault, Some(version)))
}

fn parse_known(first: u8, body: &[u8], version: Version, alias_max: u16) -> Result<Packet<'_>, Fault> {
    Ok(match first >> 4 {
        1 => return Err(Fault::protocol("a second CONNECT")),
        3 => Packet::Publish(publish::parse(first & 15, body, version, alias_max)?),
        4 => Packet::Puback(acknowledge::parse(body, version, false)?),
        5 => Packet::Pubrec(acknowledge::parse(body, version, false)?),
        6 => Packet::Pubrel(acknowledge::parse(body, version, true)?),
        7 => Packet::Pubcomp(acknowledge::parse(body, version, true)?),
        8 => Packet::Subscribe(subscribe::parse(body, version)?),
        10 => Packet::Unsubscribe(subscribe::parse_unsubscribe(body, version)?),
        12 if body.is_empty() => Packet::Pingreq,
        12 => return Err(Fault::malformed("a PINGREQ holds nothing")),
        14 => Packet::Disconnect(acknowledge::parse_disconnect(body, version)?),
        15 => return Err(acknowledge::refuse_auth(body)),
        _ => return Err(Fault::protocol("there is no such packet")),
    })
}
