//! What a publish does to its subject's state, before it is numbered: whether there is room for what it makes of it, and which fields it takes away.
use super::super::Node;
use super::super::log::Log;
use super::{NODE, take};
use crate::codes::Code;
use crate::message::{Draft, LogId, fields};
use crate::mqtt::Qos;
use crate::position::Now;

impl Node {
    /// Whether a removal is answered from the disk without asking for it: where that works, whoever was told that a state is gone does not see it
    /// again.
    pub(super) fn waits_for_disk(&mut self, subject: &str, draft: &Draft) -> bool {
        let is_well = self.journal.as_ref().is_some_and(|journal| !journal.is_failing());
        let is_answered = draft.mqtt.is_none_or(|mqtt| mqtt.qos != Qos::AtMostOnce);
        let is_meant = is_well && is_answered && draft.is_guaranteed && draft.connection != NODE;
        is_meant && self.policy(subject).journals
    }

    /// A removal, and an MQTT message that takes the retained one's place [MQTT-3.3.1-5], leave none of the fields that were there: they say so of
    /// each, so that whoever puts fields over others has the same ones. A removal says nothing else: user properties that came with it go to MQTT
    /// clients alone.
    pub(super) fn remove_fields(&self, id: LogId, draft: &mut Draft) {
        let Some(log) = self.names.get(id) else { return };
        let old = self.unseen.state(id.slot).unwrap_or(&log.latest).fields();
        let is_mqtt_state = draft.mqtt.is_some() && draft.is_retained == Some(true) && draft.merge != Some(true);
        let fields = if draft.is_removal {
            fields::replace(old, &fields::only_removed(draft.fields()))
        } else if is_mqtt_state && !old.is_empty() {
            fields::replace(old, draft.fields())
        } else {
            return;
        };
        if fields != draft.fields() {
            draft.put_fields(&fields);
        }
    }

    /// Whether a log can take this draft now: its rate, and what its snapshot would become.
    pub(super) fn check_state(&self, id: LogId, draft: &Draft, now: Now) -> Result<(), Code> {
        let Some(log) = self.names.get(id) else { return Ok(()) };
        let policy = self.policies.get(log.policy);
        // A removal over MQTT is a message like any other there.
        let is_missing = self.unseen.state(id.slot).unwrap_or(&log.latest).is_none();
        if draft.is_removal && is_missing && draft.mqtt.is_none() && draft.connection != NODE {
            return Err(Code::SnapshotMissing);
        }
        take(&log.published, policy.publishes, draft, now)?;
        let is_state = draft.is_retained.unwrap_or(!log.is_reply) && policy.keeps_snapshot;
        if is_state { self.check_patch(id, log, draft) } else { Ok(()) }
    }

    /// Whether what a patch, or fields, make of the snapshot is within its bound, behind whatever waits to be seen.
    pub(super) fn check_patch(&self, id: LogId, log: &Log, draft: &Draft) -> Result<(), Code> {
        let latest = self.unseen.state(id.slot).unwrap_or(&log.latest);
        if !draft.is_patch() && draft.fields_bytes == 0 {
            return Ok(());
        }
        if fields::would_be_too_many(latest.fields(), draft.fields(), self.limits.fields_max) {
            return Err(Code::FieldsTooMany);
        }
        let patch = if draft.is_patch() { draft.content() } else { &[] };
        let is_large = latest.would_exceed(patch, draft.fields(), self.limits.snapshot_bytes_max);
        if is_large { Err(Code::SnapshotTooBig) } else { Ok(()) }
    }
}
