//! A message as it is kept: immutable, shared by the log that keeps it and the shards that still have to send it.
//! Numbering is the log's; how it looks on a wire is the wires'.
pub mod fields;

use std::sync::Arc;

use crate::command::{Ack, Numbered};
use crate::holder::Holder;
use crate::mqtt::Qos;
use crate::position::Position;

/// What content is. Bytes are bytes; text is UTF-8; JSON was checked when it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    Json,
    Text,
    Bytes,
}

/// A log's handle in its node: the slot, and which tenant of the slot. Never names another log once forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId {
    pub slot: u32,
    pub generation: u32,
}

impl LogId {
    /// What stands for a subject without a log, on which standard messages pass: made of a secret hash of its name, so that
    /// two subjects never share it; no log is found by it.
    pub(crate) fn unkept(hash: u64) -> Self {
        Self { slot: (hash >> 32) as u32 | 1 << 31, generation: hash as u32 }
    }
}

/// What an epoch of a log follows: the end of the run before, which the journal had kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follows {
    /// The log's last number before the epoch.
    pub number: u64,
    /// The position of that message.
    pub at: Position,
}

/// Where a log numbers a message: the fields of that name of the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogNumber {
    pub(crate) epoch: u64,
    pub(crate) sequence: u64,
    pub(crate) follows: Option<Arc<Follows>>,
    pub(crate) accepted_us: u32,
}

/// One accepted message.
#[derive(Debug)]
pub struct Message {
    pub subject: Arc<str>,
    pub log: LogId,
    pub epoch: u64,
    /// Its number in its log, which goes on over all runs that the log has had; its position counts from what it `follows`.
    /// 0: a standard message, which has no position and is kept nowhere.
    pub sequence: u64,
    /// What its epoch follows; none where the log began with it.
    pub follows: Option<Arc<Follows>>,
    pub arrival: u64,
    pub time_ms: u64,
    pub kind: Kind,
    pub is_retained: bool,
    /// A JSON object whose members are merged into the state, top level only; null removes one.
    pub is_patch: bool,
    /// It removes the snapshot; its content is empty.
    pub is_removal: bool,
    /// At most this QoS on MQTT: what its publisher's hop had.
    pub qos: Qos,
    pub(crate) content_bytes: u32,
    pub(crate) reply_bytes: u16,
    pub(crate) fields_bytes: u32,
    /// The MQTT client that published it; 0 any other publisher.
    pub publisher: u32,
    /// Its subject's pattern promises MQTT clients the disk: what a session says of it at QoS 2 is on the disk first.
    pub is_on_disk: bool,
    /// MQTT's message expiry: seconds from `time_ms` on; `NO_EXPIRY` none.
    pub expiry_s: u32,
    /// When it was accepted (monotonic µs, modulo 2³²): for how long it takes until the kernel has it.
    pub accepted_us: u32,
    /// Content, then the reply subject, then fields, then carried MQTT properties (all possibly empty): one allocation for all.
    pub(crate) bytes: Box<[u8]>,
}

/// A message that does not expire.
pub const NO_EXPIRY: u32 = u32::MAX;

impl Message {
    /// The content as published.
    pub fn content(&self) -> &[u8] {
        self.bytes.get(..self.content_bytes as usize).unwrap_or(&[])
    }

    /// The subject on which the publisher awaits answers, if it named one.
    pub fn reply_to(&self) -> Option<&str> {
        let start = self.content_bytes as usize;
        let name = self.bytes.get(start..start + usize::from(self.reply_bytes)).unwrap_or(&[]);
        if name.is_empty() { None } else { std::str::from_utf8(name).ok() }
    }

    /// Properties that its publisher gave it for other MQTT clients, as they are written there.
    pub fn carried(&self) -> &[u8] {
        let start = self.content_bytes as usize + usize::from(self.reply_bytes) + self.fields_bytes as usize;
        self.bytes.get(start..).unwrap_or(&[])
    }

    /// Its fields, as `fields` holds them.
    pub fn fields(&self) -> &[u8] {
        let start = self.content_bytes as usize + usize::from(self.reply_bytes);
        self.bytes.get(start..start + self.fields_bytes as usize).unwrap_or(&[])
    }

    /// What is left of its expiry at `wall_ms`: seconds, none where it has none; zero once it has expired.
    pub fn expires_in_s(&self, wall_ms: u64) -> Option<u32> {
        if self.expiry_s == NO_EXPIRY {
            return None;
        }
        let ends_ms = self.time_ms.saturating_add(u64::from(self.expiry_s) * 1000);
        Some(u32::try_from(ends_ms.saturating_sub(wall_ms).div_ceil(1000)).unwrap_or(u32::MAX))
    }

    /// Its position; none for a standard message.
    pub fn at(&self) -> Option<Position> {
        (self.sequence > 0).then_some(Position { epoch: self.epoch, sequence: self.sequence - self.before() })
    }

    /// The position before it, where that is of another epoch.
    pub fn after(&self) -> Option<Position> {
        self.follows.as_ref().filter(|follows| follows.number + 1 == self.sequence).map(|follows| follows.at)
    }

    /// What of which epoch it is.
    pub(crate) fn in_epoch(&self) -> (LogId, &str, u64) {
        (self.log, &self.subject, self.epoch)
    }

    /// The log's last number before the epoch began.
    fn before(&self) -> u64 {
        self.follows.as_ref().map_or(0, |follows| follows.number)
    }

    /// The position before it, in its own epoch.
    pub(crate) fn place_before(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.sequence.saturating_sub(self.before() + 1) }
    }

    /// Bytes it costs while kept, for the limits: content, reply subject and the fixed part.
    pub fn cost_bytes(&self) -> usize {
        size_of::<Self>() + 2 * size_of::<usize>() + self.bytes.len()
    }
}

/// A message about to be accepted: checked against rights and limits, not yet numbered.
#[derive(Debug)]
pub struct Draft {
    /// Where its subject stands in the batch's names.
    pub(crate) subject: std::ops::Range<u32>,
    pub kind: Kind,
    pub is_retained: Option<bool>,
    /// None: as the subject's pattern says.
    pub merge: Option<bool>,
    /// It removes the subject's snapshot.
    pub is_removal: bool,
    pub is_guaranteed: bool,
    pub content_bytes: u32,
    pub(crate) reply_bytes: u16,
    pub(crate) fields_bytes: u32,
    /// Content, then the reply subject, then fields, then carried properties.
    pub bytes: Box<[u8]>,
    /// What MQTT says of it; none from any other wire.
    pub mqtt: Option<FromMqtt>,
    /// The publisher's idempotency key, scoped by `holder` and the subject.
    pub key: Option<Box<[u8]>>,
    /// The publisher and number of one that is numbered; of MQTT at QoS 2 the client and its packet identifier.
    pub numbered: Option<(Arc<str>, Numbered)>,
    /// What its publisher waits for.
    pub ack: Ack,
    /// Its publisher may publish where it awaits replies, too.
    pub owns_reply: bool,
    /// Who publishes.
    pub holder: Arc<Holder>,
    /// Tells the addresses of those apart who have no name.
    pub origin: u64,
    /// Whose publish it is, handed back with the outcome: a connection's slot, `u32::MAX` for the node itself.
    pub connection: u32,
}

/// What an MQTT publish says beside what all publishes do. Its subject may have empty levels; retained and without content it
/// takes the retained message away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromMqtt {
    pub qos: Qos,
    pub publisher: u32,
    pub expiry_s: u32,
}

/// What one turn wants appended, in order. Subjects lie in one string so that a known subject costs no allocation.
#[derive(Debug, Default)]
pub struct Batch {
    pub(crate) names: String,
    pub(crate) drafts: Vec<Draft>,
    /// When its messages are accepted (monotonic µs, modulo 2³²).
    pub accepted_us: u32,
}

impl Batch {
    pub fn push(&mut self, subject: &str, mut draft: Draft) {
        let start = self.names.len() as u32;
        self.names.push_str(subject);
        draft.subject = start..self.names.len() as u32;
        self.drafts.push(draft);
    }

    pub fn subject(&self, draft: &Draft) -> &str {
        self.names.get(draft.subject.start as usize..draft.subject.end as usize).unwrap_or("")
    }

    /// Whose publish each draft is, in order.
    pub fn connections(&self) -> impl Iterator<Item = u32> + '_ {
        self.drafts.iter().map(|draft| draft.connection)
    }

    pub fn len(&self) -> usize {
        self.drafts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    pub fn clear(&mut self) {
        self.names.clear();
        self.drafts.clear();
    }
}

impl Draft {
    /// A draft of `content` with the defaults of a publish; `reply_to` may be empty.
    pub fn new(kind: Kind, content: &[u8], reply_to: &str, holder: Arc<Holder>, connection: u32) -> Self {
        let mut bytes = Vec::with_capacity(content.len() + reply_to.len());
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(reply_to.as_bytes());
        let reply_bytes = reply_to.len() as u16;
        Self {
            subject: 0..0,
            kind,
            is_retained: None,
            merge: None,
            is_removal: false,
            is_guaranteed: true,
            content_bytes: content.len() as u32,
            reply_bytes,
            fields_bytes: 0,
            bytes: bytes.into_boxed_slice(),
            mqtt: None,
            key: None,
            numbered: None,
            ack: Ack::Cached,
            owns_reply: true,
            holder,
            origin: 0,
            connection,
        }
    }

    /// The same with these fields, in place of those that it had.
    #[must_use]
    pub fn with_fields(mut self, fields: &[u8]) -> Self {
        if !fields.is_empty() || self.fields_bytes > 0 {
            self.put_fields(fields);
        }
        self
    }

    pub(crate) fn put_fields(&mut self, fields: &[u8]) {
        let start = self.content_bytes as usize + usize::from(self.reply_bytes);
        let mut bytes = std::mem::take(&mut self.bytes).into_vec();
        bytes.splice(start..start + self.fields_bytes as usize, fields.iter().copied());
        (self.fields_bytes, self.bytes) = (fields.len() as u32, bytes.into_boxed_slice());
    }

    pub(crate) fn fields(&self) -> &[u8] {
        let start = self.content_bytes as usize + usize::from(self.reply_bytes);
        self.bytes.get(start..start + self.fields_bytes as usize).unwrap_or(&[])
    }

    /// The same from MQTT, with the properties that `carried` appends.
    pub fn from_mqtt(mut self, mqtt: FromMqtt, carried: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = self.bytes.into_vec();
        carried(&mut bytes);
        self.bytes = bytes.into_boxed_slice();
        self.mqtt = Some(mqtt);
        self
    }

    /// The message that it becomes, with its bytes; without a position it is a standard one.
    pub(crate) fn number(
        &mut self,
        subject: Arc<str>,
        log: LogId,
        place: Option<LogNumber>,
        arrival: u64,
        time_ms: u64,
        is_retained: bool,
    ) -> Message {
        let is_patch = self.is_patch();
        let guaranteed = if place.is_some() { Qos::ExactlyOnce } else { Qos::AtMostOnce };
        let place = place.unwrap_or_default();
        Message {
            subject,
            log,
            epoch: place.epoch,
            sequence: place.sequence,
            follows: place.follows,
            arrival,
            time_ms,
            kind: self.kind,
            is_retained,
            is_patch,
            is_removal: self.is_removal,
            qos: self.mqtt.map_or(guaranteed, |mqtt| mqtt.qos),
            content_bytes: self.content_bytes.min(self.bytes.len() as u32),
            reply_bytes: self.reply_bytes,
            fields_bytes: self.fields_bytes,
            publisher: self.mqtt.map_or(0, |mqtt| mqtt.publisher),
            is_on_disk: false,
            expiry_s: self.mqtt.map_or(NO_EXPIRY, |mqtt| mqtt.expiry_s),
            accepted_us: place.accepted_us,
            bytes: std::mem::take(&mut self.bytes),
        }
    }

    /// What its row says of the publisher's number: an MQTT client's identifier only where the row is awaited.
    pub(crate) fn take_number(&mut self) -> Option<(Arc<str>, u64)> {
        let numbered = self.numbered.take().filter(|_| self.mqtt.is_none() || self.ack == Ack::Disk);
        numbered.map(|(publisher, numbered)| (publisher, numbered.number))
    }

    pub(crate) fn content(&self) -> &[u8] {
        self.bytes.get(..self.content_bytes as usize).unwrap_or(&[])
    }

    /// Whether its members are merged into the state: only those of a JSON object are.
    pub(crate) fn is_patch(&self) -> bool {
        self.merge == Some(true) && self.kind == Kind::Json && self.content().trim_ascii_start().starts_with(b"{")
    }

    /// The subject on which answers are awaited; empty none.
    pub(crate) fn reply_to(&self) -> &[u8] {
        let start = self.content_bytes as usize;
        self.bytes.get(start..start + usize::from(self.reply_bytes)).unwrap_or(&[])
    }
}
