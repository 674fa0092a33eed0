//! PUBLISH (3.3) as a client sends it, and what of it travels on with the message.
use super::fields::{Fault, Fields};
use super::properties::{self, CONTENT_TYPE, CORRELATION, PAYLOAD_FORMAT, Properties, PropertyBits, USER};
use super::{Qos, Version, topic};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Empty where an alias stands for it.
    pub topic: &'a str,
    pub alias: Option<u16>,
    pub qos: Qos,
    pub is_duplicate: bool,
    pub is_retained: bool,
    /// 0 at QoS 0.
    pub packet_id: u16,
    pub payload: &'a [u8],
    pub carried: Carried<'a>,
}

/// The properties that go with a message to its subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried<'a> {
    pub expiry_s: Option<u32>,
    pub response_topic: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub is_text: bool,
    /// All properties of the packet.
    bytes: &'a [u8],
}

impl<'a> Carried<'a> {
    pub(super) fn of(properties: &Properties<'a>) -> Result<Self, Fault> {
        if let Some(topic) = properties.response_topic {
            topic::check(topic).map_err(|_| Fault::protocol("the response topic is no topic"))?;
        }
        Ok(Self {
            expiry_s: properties.message_expiry_s,
            response_topic: properties.response_topic,
            content_type: properties.content_type,
            is_text: properties.payload_format == Some(1),
            bytes: properties.bytes,
        })
    }

    /// User properties in their order, those that are text.
    pub fn users(&self) -> Vec<(&'a str, &'a str)> {
        let mut users = Vec::new();
        properties::each(self.bytes, |id, value| {
            let mut fields = Fields(value);
            if id == USER
                && let (Ok(name), Ok(text)) = (fields.string(), fields.string())
            {
                users.push((name, text));
            }
        });
        users
    }

    /// Appends those that are forwarded unaltered [MQTT-3.3.2-17 and others]: payload format, content type, correlation data
    /// and user properties in their order.
    pub fn put_forwarded(&self, out: &mut Vec<u8>) {
        properties::each(self.bytes, |id, value| {
            if matches!(id, PAYLOAD_FORMAT | CONTENT_TYPE | CORRELATION | USER) {
                out.push(id);
                out.extend_from_slice(value);
            }
        });
    }
}

/// Whether properties that are carried along have one of their publisher's own; `out`: takes those that are not.
pub fn split_users(carried: &[u8], mut out: Option<&mut Vec<u8>>) -> bool {
    let mut has_users = false;
    properties::each(carried, |id, value| {
        has_users |= id == USER;
        if let Some(out) = out.as_mut().filter(|_| id != USER) {
            out.push(id);
            out.extend_from_slice(value);
        }
    });
    has_users
}

pub(super) fn parse(flags: u8, body: &[u8], version: Version, alias_max: u16) -> Result<Publish<'_>, Fault> {
    let qos = Qos::from_bits(flags >> 1).ok_or(Fault::malformed("the QoS is 3"))?;
    let is_duplicate = flags & 8 != 0;
    if is_duplicate && qos == Qos::AtMostOnce {
        return Err(Fault::malformed("a message of QoS 0 is no repeat"));
    }
    let mut fields = Fields(body);
    let topic = fields.string()?;
    let packet_id = if qos == Qos::AtMostOnce { 0 } else { fields.packet_id()? };
    let properties = match version {
        Version::V3 => Properties::default(),
        Version::V5 => Properties::read(&mut fields, PropertyBits::PUBLISH)?,
    };
    if properties.subscription_id.is_some() {
        return Err(Fault::protocol("a client sends no subscription identifier"));
    }
    let alias = properties.alias_within(alias_max)?;
    match (topic, alias, version) {
        ("", Some(_), _) => {}
        ("", None, Version::V5) => return Err(Fault::protocol("there is neither a topic nor an alias")),
        _ => topic::check(topic)?,
    }
    let carried = Carried::of(&properties)?;
    Ok(Publish { topic, alias, qos, is_duplicate, is_retained: flags & 1 != 0, packet_id, payload: fields.0, carried })
}
