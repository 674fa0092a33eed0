//! Rows of `messages` as the core takes them back: typed, whole, verified by whoever calls. Owns the meaning of a row's fields on the way out.
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, BinaryArray, Int64Array, RecordBatch, StringArray};
use godwit_core::holder::Holder;
use godwit_core::journal::KeptMessage;
use godwit_core::message::{Kind, NO_EXPIRY, fields};
use godwit_core::mqtt::Qos;
use godwit_core::position::Position;

use crate::decode::facts::parse_run;
use crate::encode::rows::{MQTT, PATCH, QOS_SHIFT, REMOVAL, RETAINED};

/// The columns of a batch of messages.
pub(crate) struct Messages<'a> {
    run: &'a StringArray,
    tenant: &'a StringArray,
    offset: &'a Int64Array,
    time: &'a arrow_array::TimestampMicrosecondArray,
    subject: &'a StringArray,
    epoch: &'a Int64Array,
    sequence: &'a Int64Array,
    arrival: &'a Int64Array,
    kind: &'a StringArray,
    content: &'a BinaryArray,
    publisher: &'a StringArray,
    /// Older segments have none.
    authority: Option<&'a StringArray>,
    key: &'a BinaryArray,
    flags: &'a arrow_array::Int32Array,
    reply_to: &'a StringArray,
    expiry: &'a Int64Array,
    properties: &'a BinaryArray,
    /// Older segments have none of these.
    publisher_id: Option<&'a StringArray>,
    publisher_number: Option<&'a Int64Array>,
    fields: Option<&'a StringArray>,
    last_subject: Option<Arc<str>>,
    last_publisher: Option<Arc<str>>,
    last_holder: Option<Arc<Holder>>,
}

impl<'a> Messages<'a> {
    /// None where the batch is none of messages.
    pub(crate) fn new(batch: &'a RecordBatch) -> Option<Self> {
        let text = |name: &str| batch.column_by_name(name)?.as_string_opt::<i32>();
        let number = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        let bytes = |name: &str| batch.column_by_name(name)?.as_binary_opt::<i32>();
        Some(Self {
            run: text("run")?,
            tenant: text("tenant")?,
            offset: number("journal_offset")?,
            time: batch.column_by_name("time")?.as_primitive_opt::<TimestampMicrosecondType>()?,
            subject: text("subject")?,
            epoch: number("epoch")?,
            sequence: number("sequence")?,
            arrival: number("arrival")?,
            kind: text("kind")?,
            content: bytes("content")?,
            publisher: text("publisher")?,
            authority: text("authority"),
            key: bytes("key")?,
            flags: batch.column_by_name("flags")?.as_primitive_opt::<Int32Type>()?,
            reply_to: text("reply_to")?,
            expiry: number("expiry_s")?,
            properties: bytes("properties")?,
            publisher_id: text("publisher_id"),
            publisher_number: number("publisher_number"),
            fields: text("fields"),
            last_subject: None,
            last_publisher: None,
            last_holder: None,
        })
    }

    pub(crate) fn subject(&self, row: usize) -> &'a str {
        self.subject.value(row)
    }

    pub(crate) fn offset(&self, row: usize) -> u64 {
        self.offset.value(row) as u64
    }

    pub(crate) fn at(&self, row: usize) -> Position {
        Position { epoch: self.epoch.value(row) as u64, sequence: self.sequence.value(row) as u64 }
    }

    pub(crate) fn arrival(&self, row: usize) -> u64 {
        self.arrival.value(row) as u64
    }

    pub(crate) fn run(&self, row: usize) -> u64 {
        parse_run(self.run.value(row))
    }

    pub(crate) fn content_bytes(&self, row: usize) -> usize {
        self.content.value_length(row) as usize
    }

    /// Who published a row; the same one as last time is shared.
    fn holder(&mut self, row: usize) -> Arc<Holder> {
        let authority = self.authority.filter(|column| column.is_valid(row)).map_or("", |column| column.value(row));
        let (tenant, identity) = (self.tenant.value(row), self.publisher.value(row));
        let is_same = |holder: &&Arc<Holder>| {
            *holder.tenant == *tenant && *holder.authority == *authority && *holder.identity == *identity
        };
        match self.last_holder.as_ref().filter(is_same) {
            Some(holder) => Arc::clone(holder),
            None => Arc::clone(self.last_holder.insert(Holder::new(tenant, authority, identity))),
        }
    }

    fn numbered(&mut self, row: usize) -> Option<(Arc<str>, u64)> {
        let publisher = self.publisher_id.filter(|column| column.is_valid(row))?.value(row);
        let number = self.publisher_number.filter(|column| column.is_valid(row))?.value(row);
        Some((share(&mut self.last_publisher, publisher), u64::try_from(number).ok()?))
    }

    /// One row.
    pub(crate) fn message(&mut self, row: usize) -> KeptMessage {
        let subject = share(&mut self.last_subject, self.subject.value(row));
        let mut kept = KeptMessage::new(self.run(row), self.offset(row), subject, self.at(row));
        let flags = i64::from(self.flags.value(row));
        kept.arrival = self.arrival(row);
        kept.time_ms = u64::try_from(self.time.value(row) / 1000).unwrap_or(0);
        kept.kind = match self.kind.value(row) {
            "json" => Kind::Json,
            "text" => Kind::Text,
            _ => Kind::Bytes,
        };
        kept.is_retained = flags & RETAINED != 0;
        kept.is_mqtt = flags & MQTT != 0;
        (kept.is_patch, kept.is_removal) = (flags & PATCH != 0, flags & REMOVAL != 0);
        kept.qos = Qos::from_bits((flags >> QOS_SHIFT) as u8).unwrap_or(Qos::ExactlyOnce);
        let expiry = self.expiry.is_valid(row).then(|| u32::try_from(self.expiry.value(row)).ok());
        kept.expiry_s = expiry.flatten().unwrap_or(NO_EXPIRY);
        kept.holder = self.holder(row);
        kept.key = self.key.is_valid(row).then(|| self.key.value(row).into());
        kept.numbered = self.numbered(row);
        let reply_to = if self.reply_to.is_valid(row) { self.reply_to.value(row) } else { "" };
        let properties = if self.properties.is_valid(row) { self.properties.value(row) } else { &[] };
        let text = self.fields.filter(|column| column.is_valid(row)).map(|column| column.value(row));
        let held = text.and_then(|text| fields::from_json(&serde_json::from_str(text).ok()?)).unwrap_or_default();
        kept.carry_fields(self.content.value(row), reply_to, &held, properties)
    }
}

/// The same text as last time shares its bytes.
fn share(last: &mut Option<Arc<str>>, text: &str) -> Arc<str> {
    match last {
        Some(shared) if **shared == *text => Arc::clone(shared),
        _ => Arc::clone(last.insert(Arc::from(text))),
    }
}
