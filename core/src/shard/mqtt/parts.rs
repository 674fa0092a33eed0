//! A message as a stream of parts holds it: everything that a packet to one client can be put together from.
use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::message::fields::{self, Fields, Value};
use crate::message::{LogId, Message, NO_EXPIRY};
use crate::mqtt::{Outgoing, Qos, put_user_property, split_users, topic_of};
use crate::node::Snapshot;

const HEAD_BYTES: usize = 56;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parts<'a> {
    pub(super) log: LogId,
    pub(super) sequence: u64,
    pub(super) arrival: u64,
    pub(super) publisher: u32,
    pub(super) qos: Qos,
    pub(super) is_retained: bool,
    pub(super) is_on_disk: bool,
    time_ms: u64,
    expiry_s: u32,
    pub(super) topic: &'a str,
    response_topic: &'a str,
    carried: Cow<'a, [u8]>,
    payload: &'a [u8],
}

/// The name of the user property that says that members of the content are merged into the state.
const MERGE: &str = "godwit-merge";
/// Longest string of MQTT.
const STRING_BYTES_MAX: usize = 65_535;

/// The properties that go with a message: those that its publisher gave it for MQTT clients as they are, else its fields; of a snapshot whose fields
/// are of several messages, the latest value of each.
fn carry<'a>(message: &'a Message, snapshot: Option<&Snapshot>) -> Cow<'a, [u8]> {
    let carried = message.carried();
    // Of a snapshot that has the fields of its last message alone, they are as that had them.
    let is_of_several = |fields: &&[u8]| *fields != fields::merge(&[], message.fields(), false);
    let merged = snapshot.and_then(|snapshot| snapshot.fields.as_deref()).filter(is_of_several);
    // An MQTT client says no such thing, and a snapshot has what is left.
    let hides_removed = snapshot.is_some() || message.publisher != 0;
    let says_merge = message.is_patch && snapshot.is_none();
    if message.fields().is_empty() && merged.is_none() && !says_merge {
        return Cow::Borrowed(carried);
    }
    let mut out = Vec::new();
    let mut shown = merged.unwrap_or_else(|| message.fields());
    if merged.is_some() {
        split_users(carried, Some(&mut out));
    } else {
        out.extend_from_slice(carried);
        if split_users(carried, None) {
            shown = &[];
        }
    }
    if says_merge {
        put_user_property(&mut out, MERGE, "true");
    }
    for (name, value) in Fields(shown) {
        match value {
            Value::Text(text) if text.len() <= STRING_BYTES_MAX => put_user_property(&mut out, name, text),
            Value::Bytes(bytes) if bytes.len().div_ceil(3) * 4 <= STRING_BYTES_MAX => {
                put_user_property(&mut out, &format!("{name};base64"), &STANDARD.encode(bytes));
            }
            // MQTT has no room for it.
            Value::Text(_) | Value::Bytes(_) => {}
            Value::Removed if hides_removed => {}
            Value::Removed => put_user_property(&mut out, &format!("{name};removed"), ""),
        }
    }
    Cow::Owned(out)
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
            is_on_disk: message.is_on_disk,
            time_ms: message.time_ms,
            expiry_s: message.expiry_s,
            topic: topic_of(&message.subject)?,
            response_topic: message.reply_to().and_then(topic_of).unwrap_or(""),
            carried: carry(message, None),
            payload: message.content(),
        })
    }

    /// What a snapshot shows: the state that its messages were merged into.
    pub(super) fn of_snapshot(snapshot: &'a Snapshot) -> Option<Self> {
        let carried = carry(&snapshot.last, Some(snapshot));
        Some(Self { payload: snapshot.content(), carried, ..Self::of(&snapshot.last)? })
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
        let flags = self.qos as u32 | u32::from(self.is_retained) << 2 | u32::from(self.is_on_disk) << 3;
        out.extend_from_slice(&flags.to_ne_bytes());
        for length in lengths {
            out.extend_from_slice(&(length as u32).to_ne_bytes());
        }
        out.extend_from_slice(&self.arrival.to_ne_bytes());
        out.extend_from_slice(self.topic.as_bytes());
        out.extend_from_slice(self.response_topic.as_bytes());
        out.extend_from_slice(&self.carried);
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
            is_on_disk: flags & 8 != 0,
            topic: std::str::from_utf8(topic).ok()?,
            response_topic: std::str::from_utf8(response_topic).ok()?,
            carried: Cow::Borrowed(carried),
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
    pub(super) fn outgoing(&self, wall_ms: u64) -> Outgoing<'_> {
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
            carried: &self.carried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::carry;
    use crate::holder::Holder;
    use crate::message::{Batch, Draft, FromMqtt, Kind, NO_EXPIRY, fields};
    use crate::mqtt::{Qos, put_user_property};
    use crate::node::Node;
    use crate::position::Now;
    use crate::settings::Settings;

    #[test]
    fn what_replaces_fields_goes_to_mqtt_clients_as_it_came() {
        let mut node = Node::new(&Settings::default());
        let mut publish = |draft: Draft| {
            let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
            batch.push("/a", draft);
            node.append(&mut batch, &mut outcomes, Now::default());
            node.snapshot(node.find("/a").expect("a log"), Now::default()).expect("a snapshot")
        };
        let draft = || Draft::new(Kind::Json, b"1", "", Holder::nobody(), 1);
        publish(draft().with_fields(&fields::hold_last(vec![("site", "north"), ("unit", "C")], 8)));
        for given in [&[][..], &[("unit", "C"), ("site", "south"), ("unit", "K"), ("", "no name")], &[]] {
            let mut carried = Vec::new();
            given.iter().for_each(|(name, text)| put_user_property(&mut carried, name, text));
            let mqtt = FromMqtt { qos: Qos::AtLeastOnce, publisher: 1, expiry_s: NO_EXPIRY };
            let fields = fields::hold_last(given.to_vec(), 8);
            let mut draft = draft().with_fields(&fields).from_mqtt(mqtt, |out| out.extend_from_slice(&carried));
            draft.is_retained = Some(true);
            let snapshot = publish(draft);
            assert_eq!(*carry(&snapshot.last, None), carried, "{given:?}");
            assert_eq!(*carry(&snapshot.last, Some(&snapshot)), carried, "{given:?}, as retained");
        }
    }
}
