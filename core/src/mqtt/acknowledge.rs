//! PUBACK, PUBREC, PUBREL and PUBCOMP (3.4 to 3.7), DISCONNECT (3.14) and AUTH (3.15) as a client sends them.
use super::Version;
use super::fields::{Fault, Fields};
use super::properties::{Properties, PropertyBits};
use super::reason::Reason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    pub packet_id: u16,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    pub reason: Reason,
    /// The reason string, for a person; empty where there is none.
    pub said: &'a str,
    pub session_expiry_s: Option<u32>,
}

const PUBLISHED: [u8; 9] = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
const RELEASED: [u8; 2] = [0x00, 0x92];
/// Success is a server's to say (table 3-11); that, too, is no fault in how it is written.
const AUTHENTICATED: [u8; 3] = [0x00, 0x18, 0x19];
const DISCONNECTED: [u8; 14] = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99];

pub(super) fn parse(body: &[u8], version: Version, is_release: bool) -> Result<Acknowledge, Fault> {
    let mut fields = Fields(body);
    let packet_id = fields.packet_id()?;
    let mut reason = Reason::SUCCESS;
    if version == Version::V5 && !fields.is_empty() {
        reason = known(fields.byte()?, if is_release { &RELEASED } else { &PUBLISHED })?;
        if !fields.is_empty() {
            Properties::read(&mut fields, PropertyBits::ACKNOWLEDGE)?;
        }
    }
    fields.end()?;
    Ok(Acknowledge { packet_id, reason })
}

pub(super) fn parse_disconnect(body: &[u8], version: Version) -> Result<Disconnect<'_>, Fault> {
    let mut fields = Fields(body);
    let (mut reason, mut said, mut session_expiry_s) = (Reason::SUCCESS, "", None);
    if version == Version::V5 && !fields.is_empty() {
        reason = known(fields.byte()?, &DISCONNECTED)?;
        if !fields.is_empty() {
            let properties = Properties::read(&mut fields, PropertyBits::DISCONNECT)?;
            if properties.server_reference.is_some() {
                return Err(Fault::protocol("a client refers to no other server"));
            }
            session_expiry_s = properties.session_expiry_s;
            said = properties.reason_string.unwrap_or("");
        }
    }
    fields.end()?;
    Ok(Disconnect { reason, said, session_expiry_s })
}

/// What is wrong with an AUTH: its bytes, or that it comes at all. A method of authentication would have to be agreed on
/// first, and none is known here [MQTT-4.12.0-6].
pub(super) fn refuse_auth(body: &[u8]) -> Fault {
    let read = |mut fields: Fields<'_>| {
        if !fields.is_empty() {
            known(fields.byte()?, &AUTHENTICATED)?;
            if !fields.is_empty() {
                Properties::read(&mut fields, PropertyBits::AUTH)?;
            }
        }
        fields.end()
    };
    read(Fields(body)).err().unwrap_or(Fault::protocol("there is no authentication under way"))
}

fn known(byte: u8, of: &[u8]) -> Result<Reason, Fault> {
    if of.contains(&byte) { Ok(Reason(byte)) } else { Err(Fault::protocol("the reason code is none of this packet's")) }
}
