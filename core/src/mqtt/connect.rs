//! CONNECT (3.1): who comes, what of its session it wants, and its will.
use super::fields::{Fault, Fields};
use super::properties::{Properties, PropertyBits};
use super::publish::Carried;
use super::reason::Reason;
use super::{Qos, Version, topic};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    pub version: Version,
    /// Clean session (3.1.1) or clean start (5.0).
    pub is_clean: bool,
    pub keep_alive_s: u16,
    pub client_id: &'a str,
    pub username: Option<&'a str>,
    pub password: Option<&'a [u8]>,
    pub will: Option<Will<'a>>,
    /// 5.0: how long the session outlives the connection. In 3.1.1 a session that is not clean has no end.
    pub session_expiry_s: u32,
    /// Messages of QoS 1 and 2 that the client takes at once.
    pub receive_max: u16,
    pub packet_bytes_max: u32,
    pub alias_max: u16,
    pub wants_response: bool,
    pub wants_problems: bool,
    pub has_auth_method: bool,
}

/// What is published when the client is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    pub topic: &'a str,
    pub payload: &'a [u8],
    pub qos: Qos,
    pub is_retained: bool,
    pub delay_s: u32,
    pub carried: Carried<'a>,
}

/// Which standard a CONNECT that does not parse speaks, so that it can be answered in it.
pub(super) fn version_of(body: &[u8]) -> Option<Version> {
    let mut fields = Fields(body);
    let _name = fields.binary().ok()?;
    let level = fields.byte().ok()?;
    // The highest bit is that of a bridge between brokers of one make.
    Some(if level & 0x7f >= 5 { Version::V5 } else { Version::V3 })
}

pub(super) fn parse(body: &[u8]) -> Result<Connect<'_>, Fault> {
    let mut fields = Fields(body);
    let name = fields.binary()?;
    let level = fields.byte()?;
    let version = match (name, level) {
        (b"MQTT", 4) => Version::V3,
        (b"MQTT", 5) => Version::V5,
        _ => return Err(Fault::new(Reason::VERSION_UNSUPPORTED, "this node speaks MQTT 3.1.1 and 5.0")),
    };
    let flags = fields.byte()?;
    let has = |bit: u8| flags & bit != 0;
    if has(1) {
        return Err(Fault::malformed("the reserved connect flag is set"));
    }
    let Some(will_qos) = Qos::from_bits(flags >> 3) else {
        return Err(Fault::malformed("the will's QoS is 3"));
    };
    if !has(4) && flags & 0x38 != 0 {
        return Err(Fault::malformed("there is no will, but it has flags"));
    }
    if version == Version::V3 && has(0x40) && !has(0x80) {
        return Err(Fault::malformed("there is a password, but no user name"));
    }
    let keep_alive_s = fields.two()?;
    let properties = match version {
        Version::V3 => Properties::default(),
        Version::V5 => Properties::read(&mut fields, PropertyBits::CONNECT)?,
    };
    if properties.auth_data.is_some() && properties.auth_method.is_none() {
        return Err(Fault::protocol("authentication data comes without a method"));
    }
    let client_id = fields.string()?;
    let will = if has(4) { Some(parse_will(&mut fields, version, will_qos, has(0x20))?) } else { None };
    let username = if has(0x80) { Some(fields.string()?) } else { None };
    let password = if has(0x40) { Some(fields.binary()?) } else { None };
    fields.end()?;
    let is_clean = has(2);
    Ok(Connect {
        version,
        is_clean,
        keep_alive_s,
        client_id,
        username,
        password,
        will,
        session_expiry_s: match version {
            Version::V3 if is_clean => 0,
            Version::V3 => u32::MAX,
            Version::V5 => properties.session_expiry_s.unwrap_or(0),
        },
        receive_max: properties.receive_max.unwrap_or(u16::MAX),
        packet_bytes_max: properties.packet_bytes_max.unwrap_or(u32::MAX),
        alias_max: properties.alias_max.unwrap_or(0),
        wants_response: properties.wants_response == Some(1),
        wants_problems: properties.wants_problems != Some(0),
        has_auth_method: properties.auth_method.is_some(),
    })
}

fn parse_will<'a>(fields: &mut Fields<'a>, version: Version, qos: Qos, is_retained: bool) -> Result<Will<'a>, Fault> {
    let properties = match version {
        Version::V3 => Properties::default(),
        Version::V5 => Properties::read(fields, PropertyBits::WILL)?,
    };
    let topic = fields.string()?;
    topic::check(topic)?;
    let payload = fields.binary()?;
    let carried = Carried::of(&properties)?;
    Ok(Will { topic, payload, qos, is_retained, delay_s: properties.will_delay_s.unwrap_or(0), carried })
}
