//! A message as the journal gives it back: to be kept in its log again after a restart, or served to somebody who reads further
//! back than memory. Owns what of it is in a row; which log it belongs to is the node's to say.
use std::sync::Arc;

use crate::holder::Holder;
use crate::message::{Kind, LogId, Message, NO_EXPIRY};
use crate::mqtt::Qos;
use crate::position::Position;

/// One row of `messages`, whole and verified.
#[derive(Clone, Debug)]
pub struct KeptMessage {
    /// The run whose arrivals it is numbered in.
    pub run: u64,
    /// Its offset in the stream.
    pub offset: u64,
    pub subject: Arc<str>,
    pub epoch: u64,
    pub sequence: u64,
    pub arrival: u64,
    pub time_ms: u64,
    pub kind: Kind,
    pub is_retained: bool,
    pub is_patch: bool,
    pub is_removal: bool,
    pub qos: Qos,
    pub is_mqtt: bool,
    /// `NO_EXPIRY` none.
    pub expiry_s: u32,
    pub holder: Arc<Holder>,
    pub key: Option<Box<[u8]>>,
    pub numbered: Option<(Arc<str>, u64)>,
    content_bytes: u32,
    reply_bytes: u16,
    fields_bytes: u32,
    bytes: Box<[u8]>,
}

impl KeptMessage {
    /// A message without bytes; `carry` gives it them.
    pub fn new(run: u64, offset: u64, subject: Arc<str>, at: Position) -> Self {
        Self {
            run,
            offset,
            subject,
            epoch: at.epoch,
            sequence: at.sequence,
            arrival: 0,
            time_ms: 0,
            kind: Kind::Bytes,
            is_retained: false,
            is_patch: false,
            is_removal: false,
            qos: Qos::ExactlyOnce,
            is_mqtt: false,
            expiry_s: NO_EXPIRY,
            holder: Holder::nobody(),
            key: None,
            numbered: None,
            content_bytes: 0,
            reply_bytes: 0,
            fields_bytes: 0,
            bytes: Box::default(),
        }
    }

    /// Gives it its content, the subject of its replies (or "") and the carried properties (or none), in one allocation.
    #[must_use]
    pub fn carry(self, content: &[u8], reply_to: &str, properties: &[u8]) -> Self {
        self.carry_fields(content, reply_to, &[], properties)
    }

    /// The same with fields.
    #[must_use]
    pub fn carry_fields(mut self, content: &[u8], reply_to: &str, fields: &[u8], properties: &[u8]) -> Self {
        let parts = [content.len(), reply_to.len(), fields.len(), properties.len()];
        let mut bytes = Vec::with_capacity(parts.iter().sum());
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(reply_to.as_bytes());
        bytes.extend_from_slice(fields);
        bytes.extend_from_slice(properties);
        self.content_bytes = content.len() as u32;
        self.reply_bytes = reply_to.len() as u16;
        self.fields_bytes = fields.len() as u32;
        self.bytes = bytes.into_boxed_slice();
        self
    }

    pub fn at(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.sequence }
    }

    /// Content, then the reply subject, then fields, then carried properties.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the digest of an idempotency key is made over: what its publisher gave. The fields of a removal are the node's.
    pub fn published(&self) -> &[u8] {
        if self.is_removal { &[] } else { &self.bytes }
    }

    pub fn content_bytes(&self) -> u32 {
        self.content_bytes
    }

    pub fn content(&self) -> &[u8] {
        self.bytes.get(..self.content_bytes as usize).unwrap_or(&[])
    }

    /// Its fields, as `message::fields` holds them.
    pub fn fields(&self) -> &[u8] {
        let start = self.content_bytes as usize + usize::from(self.reply_bytes);
        self.bytes.get(start..start + self.fields_bytes as usize).unwrap_or(&[])
    }

    /// The message as a log keeps it. `publisher`, which numbers MQTT clients of one run, is nobody of this one.
    pub fn into_message(self, log: LogId) -> Message {
        Message {
            subject: self.subject,
            log,
            epoch: self.epoch,
            sequence: self.sequence,
            follows: None,
            arrival: self.arrival,
            time_ms: self.time_ms,
            kind: self.kind,
            is_retained: self.is_retained,
            is_patch: self.is_patch,
            is_removal: self.is_removal,
            qos: self.qos,
            content_bytes: self.content_bytes,
            reply_bytes: self.reply_bytes,
            fields_bytes: self.fields_bytes,
            publisher: 0,
            is_on_disk: false,
            expiry_s: self.expiry_s,
            accepted_us: 0,
            bytes: self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_message_becomes_the_message_it_was() {
        let at = Position { epoch: 7, sequence: 42 };
        let kept = KeptMessage::new(1, 3, "/a".into(), at).carry(b"{}", "/r", b"\x26");
        assert_eq!((kept.content(), kept.bytes(), kept.at()), (&b"{}"[..], &b"{}/r\x26"[..], at));
        let message = kept.into_message(LogId { slot: 1, generation: 0 });
        assert_eq!(message.at(), Some(at));
        assert_eq!((message.content(), message.reply_to(), message.carried()), (&b"{}"[..], Some("/r"), &b"\x26"[..]));
    }
}
