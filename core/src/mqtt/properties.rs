//! The properties of MQTT 5.0 (2.2.2): each may stand in some packets only, and but for two kinds only once.
use super::fields::{Fault, Fields};
use super::reason::Reason;

/// Where properties stand, as one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PropertyBits(u16);

impl PropertyBits {
    pub(super) const CONNECT: Self = Self(1);
    pub(super) const WILL: Self = Self(2);
    pub(super) const PUBLISH: Self = Self(4);
    pub(super) const ACKNOWLEDGE: Self = Self(8);
    pub(super) const SUBSCRIBE: Self = Self(16);
    pub(super) const UNSUBSCRIBE: Self = Self(32);
    pub(super) const DISCONNECT: Self = Self(64);
    pub(super) const AUTH: Self = Self(128);
}

pub(super) const PAYLOAD_FORMAT: u8 = 0x01;
pub(super) const MESSAGE_EXPIRY: u8 = 0x02;
pub(super) const CONTENT_TYPE: u8 = 0x03;
pub(super) const RESPONSE_TOPIC: u8 = 0x08;
pub(super) const CORRELATION: u8 = 0x09;
pub(super) const SUBSCRIPTION_ID: u8 = 0x0b;
pub(super) const SESSION_EXPIRY: u8 = 0x11;
pub(super) const ASSIGNED_CLIENT_ID: u8 = 0x12;
pub(super) const SERVER_KEEP_ALIVE: u8 = 0x13;
const AUTH_METHOD: u8 = 0x15;
const AUTH_DATA: u8 = 0x16;
const REQUEST_PROBLEM: u8 = 0x17;
const WILL_DELAY: u8 = 0x18;
const REQUEST_RESPONSE: u8 = 0x19;
const SERVER_REFERENCE: u8 = 0x1c;
pub(super) const REASON_STRING: u8 = 0x1f;
pub(super) const RECEIVE_MAXIMUM: u8 = 0x21;
pub(super) const TOPIC_ALIAS_MAXIMUM: u8 = 0x22;
pub(super) const TOPIC_ALIAS: u8 = 0x23;
pub(super) const USER: u8 = 0x26;
pub(super) const MAXIMUM_PACKET_SIZE: u8 = 0x27;

/// In which packets a client may send a property.
const fn places(id: u8) -> u16 {
    match id {
        PAYLOAD_FORMAT | MESSAGE_EXPIRY | CONTENT_TYPE | RESPONSE_TOPIC | CORRELATION => {
            PropertyBits::PUBLISH.0 | PropertyBits::WILL.0
        }
        SUBSCRIPTION_ID => PropertyBits::PUBLISH.0 | PropertyBits::SUBSCRIBE.0,
        SESSION_EXPIRY => PropertyBits::CONNECT.0 | PropertyBits::DISCONNECT.0,
        AUTH_METHOD | AUTH_DATA => PropertyBits::CONNECT.0 | PropertyBits::AUTH.0,
        REQUEST_PROBLEM | REQUEST_RESPONSE | RECEIVE_MAXIMUM | TOPIC_ALIAS_MAXIMUM | MAXIMUM_PACKET_SIZE => {
            PropertyBits::CONNECT.0
        }
        WILL_DELAY => PropertyBits::WILL.0,
        SERVER_REFERENCE => PropertyBits::DISCONNECT.0,
        REASON_STRING => PropertyBits::ACKNOWLEDGE.0 | PropertyBits::DISCONNECT.0 | PropertyBits::AUTH.0,
        TOPIC_ALIAS => PropertyBits::PUBLISH.0,
        USER => 255,
        _ => 0,
    }
}

/// Everything a client can say; what was not said is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties<'a> {
    pub(super) payload_format: Option<u8>,
    pub(super) message_expiry_s: Option<u32>,
    pub(super) content_type: Option<&'a str>,
    pub(super) response_topic: Option<&'a str>,
    pub(super) correlation: Option<&'a [u8]>,
    pub(super) subscription_id: Option<u32>,
    pub(super) session_expiry_s: Option<u32>,
    pub(super) auth_method: Option<&'a str>,
    pub(super) auth_data: Option<&'a [u8]>,
    pub(super) wants_problems: Option<u8>,
    pub(super) will_delay_s: Option<u32>,
    pub(super) wants_response: Option<u8>,
    pub(super) server_reference: Option<&'a str>,
    pub(super) reason_string: Option<&'a str>,
    pub(super) receive_max: Option<u16>,
    pub(super) alias_max: Option<u16>,
    pub(super) alias: Option<u16>,
    pub(super) packet_bytes_max: Option<u32>,
    pub(super) has_user: bool,
    /// All of them as they were written, without their length.
    pub(super) bytes: &'a [u8],
}

impl<'a> Properties<'a> {
    /// Reads a property length and that many bytes of properties.
    pub(super) fn read(fields: &mut Fields<'a>, allowed: PropertyBits) -> Result<Self, Fault> {
        let count = fields.varint()? as usize;
        let bytes = fields.take(count)?;
        let mut found = Self { bytes, ..Self::default() };
        let mut rest = Fields(bytes);
        while !rest.is_empty() {
            found.read_one(&mut rest, allowed)?;
        }
        Ok(found)
    }

    fn read_one(&mut self, rest: &mut Fields<'a>, allowed: PropertyBits) -> Result<(), Fault> {
        let id = u8::try_from(rest.varint()?).unwrap_or(0);
        if places(id) & allowed.0 == 0 {
            return Err(Fault::malformed("a property is not known, or not for this packet"));
        }
        match id {
            PAYLOAD_FORMAT => once(&mut self.payload_format, flag(rest.byte()?)?),
            MESSAGE_EXPIRY => once(&mut self.message_expiry_s, rest.four()?),
            CONTENT_TYPE => once(&mut self.content_type, rest.string()?),
            RESPONSE_TOPIC => once(&mut self.response_topic, rest.string()?),
            CORRELATION => once(&mut self.correlation, rest.binary()?),
            SUBSCRIPTION_ID => once(&mut self.subscription_id, above_zero(rest.varint()?)?),
            SESSION_EXPIRY => once(&mut self.session_expiry_s, rest.four()?),
            AUTH_METHOD => once(&mut self.auth_method, rest.string()?),
            AUTH_DATA => once(&mut self.auth_data, rest.binary()?),
            REQUEST_PROBLEM => once(&mut self.wants_problems, flag(rest.byte()?)?),
            WILL_DELAY => once(&mut self.will_delay_s, rest.four()?),
            REQUEST_RESPONSE => once(&mut self.wants_response, flag(rest.byte()?)?),
            SERVER_REFERENCE => once(&mut self.server_reference, rest.string()?),
            REASON_STRING => once(&mut self.reason_string, rest.string()?),
            RECEIVE_MAXIMUM => once(&mut self.receive_max, above_zero(rest.two()?)?),
            TOPIC_ALIAS_MAXIMUM => once(&mut self.alias_max, rest.two()?),
            TOPIC_ALIAS => once(&mut self.alias, rest.two()?),
            MAXIMUM_PACKET_SIZE => once(&mut self.packet_bytes_max, above_zero(rest.four()?)?),
            _ => {
                rest.string()?;
                rest.string()?;
                self.has_user = true;
                Ok(())
            }
        }
    }

    /// A topic alias that may be used: from 1 to `max`.
    pub(super) fn alias_within(&self, max: u16) -> Result<Option<u16>, Fault> {
        match self.alias {
            Some(alias) if alias == 0 || alias > max => {
                Err(Fault::new(Reason::ALIAS_INVALID, "the topic alias is not one that was offered"))
            }
            alias => Ok(alias),
        }
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), Fault> {
    if slot.replace(value).is_some() {
        return Err(Fault::protocol("a property that may stand once is repeated"));
    }
    Ok(())
}

fn flag(byte: u8) -> Result<u8, Fault> {
    if byte > 1 { Err(Fault::protocol("a property that is 0 or 1 is neither")) } else { Ok(byte) }
}

fn above_zero<T: Default + PartialEq>(value: T) -> Result<T, Fault> {
    if value == T::default() { Err(Fault::protocol("a property is 0 that may not be")) } else { Ok(value) }
}

/// Walks the properties of a packet that was read, by identifier and value as they are written.
pub(super) fn each<'a>(bytes: &'a [u8], mut take: impl FnMut(u8, &'a [u8])) {
    let mut rest = Fields(bytes);
    while let Ok(id) = rest.byte() {
        let before = rest.0;
        let stepped = match id {
            PAYLOAD_FORMAT | REQUEST_PROBLEM | REQUEST_RESPONSE => rest.take(1).map(drop),
            MESSAGE_EXPIRY | SESSION_EXPIRY | WILL_DELAY | MAXIMUM_PACKET_SIZE => rest.take(4).map(drop),
            RECEIVE_MAXIMUM | TOPIC_ALIAS_MAXIMUM | TOPIC_ALIAS => rest.take(2).map(drop),
            SUBSCRIPTION_ID => rest.varint().map(drop),
            USER => rest.binary().and_then(|_| rest.binary()).map(drop),
            _ => rest.binary().map(drop),
        };
        if stepped.is_err() {
            return;
        }
        take(id, before.get(..before.len() - rest.0.len()).unwrap_or(&[]));
    }
}
