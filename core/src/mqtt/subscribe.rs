//! SUBSCRIBE (3.8) and UNSUBSCRIBE (3.10): filters with their options. All of a packet is checked before any of it counts.
use super::fields::{Fault, Fields};
use super::properties::{Properties, PropertyBits};
use super::{Qos, Version, topic};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    pub packet_id: u16,
    /// 0: none.
    pub subscription_id: u32,
    pub filters: Filters<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    pub packet_id: u16,
    pub filters: Filters<'a>,
}

/// The checked filters of a packet, walked as often as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filters<'a> {
    bytes: &'a [u8],
    has_options: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    pub filter: &'a str,
    pub options: Options,
}

/// What a subscription wants beside its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub qos: Qos,
    /// Not what this client itself publishes.
    pub is_not_local: bool,
    /// The RETAIN flag is passed on as it was published.
    pub keeps_retain: bool,
    /// 0: retained messages at every subscribe; 1: where the subscription is new; 2: never.
    pub retain_handling: u8,
}

impl Options {
    /// The byte that stands for them in 5.0.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.qos as u8 | (self.is_not_local as u8) << 2 | (self.keeps_retain as u8) << 3 | self.retain_handling << 4
    }

    /// Reads that byte; bits that mean nothing, and values there are not, are as the standard says.
    pub fn read(byte: u8, version: Version) -> Result<Self, Fault> {
        let reserved = if version == Version::V3 { 0xfc } else { 0xc0 };
        if byte & reserved != 0 {
            return Err(Fault::malformed("a reserved bit of a subscription's options is set"));
        }
        let qos = Qos::from_bits(byte).ok_or(Fault::protocol("a subscription asks for QoS 3"))?;
        let retain_handling = byte >> 4;
        if retain_handling == 3 {
            return Err(Fault::protocol("a subscription's retain handling is 3"));
        }
        Ok(Self { qos, is_not_local: byte & 4 != 0, keeps_retain: byte & 8 != 0, retain_handling })
    }
}

impl<'a> Filters<'a> {
    fn check(bytes: &'a [u8], version: Version, has_options: bool) -> Result<Self, Fault> {
        let mut fields = Fields(bytes);
        if fields.is_empty() {
            return Err(Fault::protocol("there is no topic filter"));
        }
        while !fields.is_empty() {
            let filter = fields.string()?;
            topic::check_filter(filter)?;
            if has_options {
                let options = Options::read(fields.byte()?, version)?;
                if options.is_not_local && filter.starts_with("$share/") {
                    return Err(Fault::protocol("a shared subscription cannot leave out its own client"));
                }
            }
        }
        Ok(Self { bytes, has_options })
    }

    /// Each filter in its order.
    pub fn iter(self) -> impl Iterator<Item = Filter<'a>> {
        let mut fields = Fields(self.bytes);
        std::iter::from_fn(move || {
            let filter = fields.string().ok()?;
            let byte = if self.has_options { fields.byte().ok()? } else { 0 };
            Some(Filter { filter, options: Options::read(byte, Version::V5).ok()? })
        })
    }
}

pub(super) fn parse(body: &[u8], version: Version) -> Result<Subscribe<'_>, Fault> {
    let mut fields = Fields(body);
    let packet_id = fields.packet_id()?;
    let properties = match version {
        Version::V3 => Properties::default(),
        Version::V5 => Properties::read(&mut fields, PropertyBits::SUBSCRIBE)?,
    };
    let filters = Filters::check(fields.0, version, true)?;
    Ok(Subscribe { packet_id, subscription_id: properties.subscription_id.unwrap_or(0), filters })
}

pub(super) fn parse_unsubscribe(body: &[u8], version: Version) -> Result<Unsubscribe<'_>, Fault> {
    let mut fields = Fields(body);
    let packet_id = fields.packet_id()?;
    if version == Version::V5 {
        Properties::read(&mut fields, PropertyBits::UNSUBSCRIBE)?;
    }
    Ok(Unsubscribe { packet_id, filters: Filters::check(fields.0, version, false)? })
}
