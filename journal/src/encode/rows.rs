//! What stands in a row of each stream, field by field in the order of events.toml. Owns the meaning of a row's fields on the way
//! in; `kept` owns it on the way out.
use godwit_core::journal::{AccessRow, DeliveryRow, FeedbackRow, LatencyRow, MessageRow, Range, StatsRow};
use godwit_core::message::{Kind, NO_EXPIRY, fields};

use crate::encode::table::Table;
use crate::runs::RunRow;

/// What every row of this run begins with.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) node: String,
    pub(crate) run: String,
}

/// Bit 0: retained.
pub(crate) const RETAINED: i64 = 1;
/// Where the two bits of the QoS begin.
pub(crate) const QOS_SHIFT: u32 = 1;
/// Bit 3: it came over MQTT.
pub(crate) const MQTT: i64 = 8;
/// Bit 4: a patch, merged into the snapshot.
pub(crate) const PATCH: i64 = 16;
/// Bit 5: it removed the snapshot.
pub(crate) const REMOVAL: i64 = 32;

/// A row that knows how to fill a table.
pub(crate) trait Row {
    fn time_us(&self) -> u64;

    fn tenant(&self) -> &str;

    /// Its arrival, where it has one.
    fn arrival(&self) -> Option<u64> {
        None
    }

    /// Its own fields, behind those of every row.
    fn fill(&self, table: &mut Table);

    /// The whole row.
    fn write(&self, table: &mut Table, origin: &Origin, offset: u64) {
        table.put(origin.node.as_str());
        table.put(origin.run.as_str());
        table.put(self.tenant());
        table.put(offset);
        table.put(self.time_us());
        self.fill(table);
        table.end();
    }
}

pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Json => "json",
        Kind::Text => "text",
        Kind::Bytes => "bytes",
    }
}

impl Row for MessageRow {
    fn time_us(&self) -> u64 {
        self.message.time_ms.saturating_mul(1_000)
    }

    fn tenant(&self) -> &str {
        &self.holder.tenant
    }

    fn arrival(&self) -> Option<u64> {
        Some(self.message.arrival)
    }

    fn fill(&self, table: &mut Table) {
        let message = &self.message;
        let retained = if message.is_retained { RETAINED } else { 0 };
        let mqtt = if self.is_mqtt { MQTT } else { 0 };
        let patch = if message.is_patch { PATCH } else { 0 } | if message.is_removal { REMOVAL } else { 0 };
        let flags = retained | patch | ((message.qos as i64) << QOS_SHIFT) | mqtt;
        table.put(&*message.subject);
        table.put(message.epoch);
        table.put(message.at().map_or(0, |at| at.sequence));
        table.put(message.arrival);
        table.put(kind_name(message.kind));
        table.put(message.content());
        table.put(&*self.holder.identity);
        table.put(self.key.as_deref());
        table.put(flags as u64);
        table.put(message.reply_to());
        table.put((message.expiry_s != NO_EXPIRY).then_some(u64::from(message.expiry_s)));
        table.put(Some(message.carried()).filter(|properties| !properties.is_empty()));
        table.put(Some(&*self.holder.authority));
        table.put(self.numbered.as_ref().map(|(publisher, _)| &**publisher));
        table.put(self.numbered.as_ref().map(|(_, number)| *number));
        let held = Some(message.fields()).filter(|held| !held.is_empty());
        table.put(held.map(|held| fields::to_json(held).to_string()).as_deref());
    }
}

impl Row for AccessRow {
    fn time_us(&self) -> u64 {
        self.time_us
    }

    fn tenant(&self) -> &str {
        &self.peer.holder.tenant
    }

    fn fill(&self, table: &mut Table) {
        table.put(self.kind.name());
        table.put(self.peer.connection.0);
        table.put(&*self.peer.holder.identity);
        table.put(&*self.peer.client);
        table.put(self.address.to_string().as_str());
        table.put(self.protocol);
        table.put(self.selector.as_deref());
        table.put(self.outcome.map(godwit_core::command::Outcome::name));
        table.put(self.at.as_deref());
        table.put(self.code.map(u64::from));
        table.put(self.reason.as_deref());
        table.put(self.duration_ms);
        table.put(Some(&*self.peer.holder.authority));
    }
}

impl Row for DeliveryRow {
    fn time_us(&self) -> u64 {
        self.time_us
    }

    fn tenant(&self) -> &str {
        &self.peer.holder.tenant
    }

    fn fill(&self, table: &mut Table) {
        table.put(self.peer.connection.0);
        table.put(&*self.peer.holder.identity);
        table.put(&*self.peer.client);
        table.put(&*self.selector);
        match self.range {
            Range::Subject { epoch, from, to } => {
                table.put(false);
                table.put(epoch);
                table.put(from);
                table.put(to);
                table.put(None::<u64>);
                table.put(None::<u64>);
                table.put(None::<&str>);
            }
            Range::Pattern { run, from, to } => {
                table.put(true);
                table.put(None::<u64>);
                table.put(None::<u64>);
                table.put(None::<u64>);
                table.put(from);
                table.put(to);
                table.put(format!("{run:x}").as_str());
            }
        }
        table.put(self.count);
        table.put(self.bytes);
        table.put(self.conflated);
        table.put(self.gaps);
        table.put(self.gap_count);
        table.put(self.is_confirmed);
        table.put(Some(&*self.peer.holder.authority));
    }
}

impl Row for LatencyRow {
    fn time_us(&self) -> u64 {
        self.time_ms.saturating_mul(1_000)
    }

    fn tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or("")
    }

    fn fill(&self, table: &mut Table) {
        let length = self.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        let buckets = self.buckets.get(..length).unwrap_or(&[]);
        table.put(&*self.selector);
        table.put(self.period_ms);
        table.put(buckets.iter().sum::<u64>());
        table.put(crate::encode::table::Value::Numbers(buckets));
    }
}

impl Row for StatsRow {
    fn time_us(&self) -> u64 {
        self.time_ms.saturating_mul(1_000)
    }

    fn tenant(&self) -> &'static str {
        ""
    }

    fn fill(&self, table: &mut Table) {
        table.put(&*self.metric);
        table.put(&*self.scope);
        table.put(&*self.label);
        table.put(&*self.window);
        table.put(self.covered_s);
        table.put(self.value);
        table.put(self.max);
        table.put(self.mean);
        table.put(self.deviation);
    }
}

impl Row for FeedbackRow {
    fn time_us(&self) -> u64 {
        self.time_ms.saturating_mul(1_000)
    }

    fn tenant(&self) -> &str {
        &self.tenant
    }

    fn fill(&self, table: &mut Table) {
        table.put(&*self.event);
        table.put(&*self.notification);
        table.put(&*self.receiver);
        table.put(&*self.address);
        table.put(&*self.channel);
        table.put(&*self.state);
        table.put(u64::from(self.attempt));
        table.put(self.reason.as_deref());
        table.put(self.accepted_ms.map(|accepted_ms| accepted_ms.saturating_mul(1_000)));
        table.put(self.provider.as_deref());
        table.put(self.group_name.as_deref());
        table.put(self.category.as_deref());
        table.put(self.possible_duplicate);
        table.put(self.segments.map(u64::from));
    }
}

impl Row for RunRow {
    fn time_us(&self) -> u64 {
        self.time_ms.saturating_mul(1_000)
    }

    fn tenant(&self) -> &'static str {
        ""
    }

    fn fill(&self, table: &mut Table) {
        table.put(self.kind);
        table.put(self.epoch);
        table.put(self.follows.map(|follows| format!("{:x}", follows.run)).as_deref());
        table.put(self.follows.map(|follows| follows.arrival));
        table.put(self.follows.map(|follows| follows.is_clean));
        table.put(self.stream);
        table.put(self.from_arrival);
        table.put(self.to_arrival);
        table.put(self.count);
        table.put(self.reason.as_deref());
    }
}
