//! A message as a stream of parts holds it: everything that a packet to one client can be put together from.
use crate::message::{LogId, Message, NO_EXPIRY};
use crate::mqtt::{Outgoing, Qos, topic_of};

const HEAD_BYTES: usize = 56;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts<'a> {
    pub(super) log: LogId,
    pub(super) sequence: u64,
    pub(super) arrival: u64,
    pub(super) publisher: u32,
    pub(super) qos: Qos,
    pub(super) is_retained: bool,
    time_ms: u64,
    expiry_s: u32,
    pub(super) topic: &'a str,
    response_topic: &'a str,
    carried: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Parts<'a> {
    /// None where MQTT has no name for the subject.
    pub(super) fn of(message: &'a Message) -> Option<Self> {
        Some(Self {
            log: message.log,
            sequence: message.sequence,
            arrival: message.arrival,
            publisher: message.publisher,
            qos: message.qos,
            is_retained: message.is_retained,
            time_ms: message.time_ms,
            expiry_s: message.expiry_s,
            topic: topic_of(&message.subject)?,
            response_topic: message.reply_to().and_then(topic_of).unwrap_or(""),
            carried: message.carried(),
            payload: message.content(),
        })
    }

    /// The same with other content: the merged state, where patches were retained.
    pub(super) fn with(self, payload: &'a [u8]) -> Self {
        Self { payload, ..self }
    }

    /// Appends them, to be read by `read`.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let lengths = [self.topic.len(), self.response_topic.len(), self.carried.len()];
        out.reserve(HEAD_BYTES + lengths.iter().sum::<usize>() + self.payload.len());
        out.extend_from_slice(&self.sequence.to_ne_bytes());
        out.extend_from_slice(&self.time_ms.to_ne_bytes());
        out.extend_from_slice(&self.log.slot.to_ne_bytes());
        out.extend_from_slice(&self.log.generation.to_ne_bytes());
        out.extend_from_slice(&self.publisher.to_ne_bytes());
        out.extend_from_slice(&self.expiry_s.to_ne_bytes());
        out.extend_from_slice(&(self.qos as u32 | u32::from(self.is_retained) << 2).to_ne_bytes());
        for length in lengths {
            out.extend_from_slice(&(length as u32).to_ne_bytes());
        }
        out.extend_from_slice(&self.arrival.to_ne_bytes());
        out.extend_from_slice(self.topic.as_bytes());
        out.extend_from_slice(self.response_topic.as_bytes());
        out.extend_from_slice(self.carried);
        out.extend_from_slice(self.payload);
    }

    /// What `put` appended; none for anything else.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let four = |at: usize| Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let eight = |at: usize| Some(u64::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let flags = four(32)?;
        let (topic, rest) = rest.split_at_checked(four(36)? as usize)?;
        let (response_topic, rest) = rest.split_at_checked(four(40)? as usize)?;
        let (carried, payload) = rest.split_at_checked(four(44)? as usize)?;
        Some(Self {
            sequence: eight(0)?,
            arrival: eight(48)?,
            time_ms: eight(8)?,
            log: LogId { slot: four(16)?, generation: four(20)? },
            publisher: four(24)?,
            expiry_s: four(28)?,
            qos: Qos::from_bits(flags as u8)?,
            is_retained: flags & 4 != 0,
            topic: std::str::from_utf8(topic).ok()?,
            response_topic: std::str::from_utf8(response_topic).ok()?,
            carried,
            payload,
        })
    }

    /// What is left of its expiry, rounded up to seconds.
    pub(super) fn expires_in_s(&self, wall_ms: u64) -> Option<u32> {
        if self.expiry_s == NO_EXPIRY {
            return None;
        }
        let ends_ms = self.time_ms.saturating_add(u64::from(self.expiry_s) * 1000);
        Some(u32::try_from(ends_ms.saturating_sub(wall_ms).div_ceil(1000)).unwrap_or(NO_EXPIRY))
    }

    /// The packet to a client that wants nothing of its own, at QoS 0.
    pub(super) fn outgoing(&self, wall_ms: u64) -> Outgoing<'a> {
        Outgoing {
            topic: self.topic,
            payload: self.payload,
            qos: Qos::AtMostOnce,
            packet_id: 0,
            is_duplicate: false,
            is_retained: false,
            alias: 0,
            subscription_id: 0,
            further_ids: &[],
            expiry_s: self.expires_in_s(wall_ms),
            response_topic: (!self.response_topic.is_empty()).then_some(self.response_topic),
            carried: self.carried,
        }
    }
}
