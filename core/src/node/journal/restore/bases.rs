//! Snapshots that are further back than the rows a node begins with: the message that made one, or what newer patches are merged into. A
//! state of patches alone is not whole as long as the message below them can be found, so their union is remembered, removed members
//! and all, until that message has come.
use std::collections::HashMap;
use std::sync::Arc;

use super::super::super::Node;
use super::super::super::names::Owner;
use super::{Restoring, note_removal};
use crate::journal::KeptMessage;
use crate::json::{self, Nulls};
use crate::message::{Kind, LogId, Message};
use crate::position::{Now, Position};

/// What is known of a subject's snapshot from its newest rows.
#[derive(Debug)]
enum Base {
    /// Nothing further back belongs to it; up to this arrival it was taken away.
    Settled(u64),
    /// The union of its patches so far, and when the oldest of them came.
    Missing { union: Vec<u8>, time_ms: u64 },
}

/// Subjects of which more is known than whether they have a snapshot.
#[derive(Debug, Default)]
pub(super) struct Bases(HashMap<Arc<str>, Base>);

impl Bases {
    pub(super) fn settle(&mut self, subject: &Arc<str>, arrival: u64) {
        self.0.insert(Arc::clone(subject), Base::Settled(arrival));
    }

    /// Up to which arrival a subject's snapshot was taken away; 0 it was not.
    pub(super) fn settled_until(&self, subject: &str) -> u64 {
        if let Some(Base::Settled(arrival)) = self.0.get(subject) { *arrival } else { 0 }
    }

    /// The patches whose base is missing; what is below them has been found.
    pub(super) fn take_union(&mut self, subject: &str) -> Option<Vec<u8>> {
        match self.0.remove(subject) {
            Some(Base::Missing { union, .. }) => Some(union),
            Some(base) => {
                self.0.insert(Arc::from(subject), base);
                None
            }
            None => None,
        }
    }

    pub(super) fn forget(&mut self, subject: &str) {
        self.0.remove(subject);
    }

    /// Subjects of which patches alone have come.
    pub(super) fn take_missing(&mut self) -> Vec<Arc<str>> {
        let is_missing =
            |(subject, base): (&Arc<str>, &Base)| matches!(base, Base::Missing { .. }).then(|| Arc::clone(subject));
        self.0.iter().filter_map(is_missing).collect()
    }

    /// Notes the next row that changes a snapshot; `has_state`: there is one already, which may be too old to be merged into.
    pub(super) fn note(&mut self, message: &Message, has_state: bool, is_old: bool) {
        if message.is_removal {
            return self.settle(&message.subject, message.arrival);
        }
        if !message.is_patch {
            self.0.remove(&message.subject);
            return;
        }
        match self.0.get_mut(&message.subject) {
            Some(base) if is_old => *base = Base::Settled(0),
            Some(Base::Missing { union, .. }) => {
                *union = json::merge(union, message.content(), Nulls::Keep).unwrap_or_else(|| message.content().into());
            }
            None if !has_state => {
                let base = Base::Missing { union: message.content().into(), time_ms: message.time_ms };
                self.0.insert(Arc::clone(&message.subject), base);
            }
            Some(Base::Settled(_)) | None => {}
        }
    }
}

impl Node {
    /// Whether a subject's snapshot needs a message from further back than the rows.
    pub fn needs_snapshot(&self, subject: &str) -> bool {
        match self.restoring.as_ref().and_then(|restoring| restoring.bases.0.get(subject)) {
            Some(Base::Settled(_)) => false,
            Some(Base::Missing { .. }) => true,
            None => {
                let log = self.names.find(subject).and_then(|id| self.names.get(id));
                log.is_none_or(|log| log.latest.is_none())
            }
        }
    }

    /// A message that made a subject's snapshot, from further back than the rows; when all of those have come. The newest first, as long as
    /// the subject needs one. `newest`: of the last that the journal has of the subject; none where nobody knows, then its log begins anew.
    pub fn restore_snapshot(&mut self, mut kept: KeptMessage, newest: Option<Position>, now: Now) {
        note_removal(&mut kept);
        if !self.needs_snapshot(&kept.subject) {
            return;
        }
        let Some(mut restoring) = self.restoring.take() else { return };
        let subject = Arc::clone(&kept.subject);
        if self.try_restore_snapshot(&mut restoring, kept, newest, now).is_none() {
            restoring.told.rows_skipped += 1;
            // What is older is not the state either.
            restoring.bases.settle(&subject, 0);
        }
        self.restoring = Some(restoring);
    }

    fn try_restore_snapshot(
        &mut self,
        restoring: &mut Restoring,
        kept: KeptMessage,
        newest: Option<Position>,
        now: Now,
    ) -> Option<()> {
        let number = self.policies.resolve(&kept.subject, false, &mut self.ages);
        let policy = self.policies.get(number);
        let above = restoring.bases.0.remove(&kept.subject);
        // A patch found what was there before it, unless that was too old by then.
        let until_ms = match &above {
            Some(Base::Missing { time_ms, .. }) => *time_ms,
            _ => now.wall_ms,
        };
        let age_ms_max = policy.snapshot_age_ms_max;
        let is_old = age_ms_max > 0 && until_ms.saturating_sub(kept.time_ms) >= age_ms_max;
        let is_taken_back = kept.arrival <= self.purged_until(&kept.subject);
        let is_wanted = !is_taken_back && policy.keeps_snapshot && !is_old && kept.is_retained;
        let cost = size_of::<Message>() + kept.bytes().len();
        if !is_wanted || kept.is_removal || !self.make_room(cost) {
            return None;
        }
        let (subject, time_ms) = (Arc::clone(&kept.subject), kept.time_ms);
        let below = kept.is_patch.then(|| kept.content().to_vec());
        let union = match above {
            Some(Base::Missing { union, .. }) => {
                self.put_below(&kept, &union);
                below.map(|below| json::merge(&below, &union, Nulls::Keep).unwrap_or(union))
            }
            _ => {
                self.put_snapshot(restoring, kept, newest)?;
                below
            }
        };
        if let Some(union) = union {
            restoring.bases.0.insert(subject, Base::Missing { union, time_ms });
        }
        Some(())
    }

    /// The last message of a snapshot.
    fn put_snapshot(&mut self, restoring: &mut Restoring, kept: KeptMessage, newest: Option<Position>) -> Option<()> {
        let id = match self.names.find(&kept.subject) {
            Some(id) => id,
            None => self.create_for_snapshot(restoring, &kept, newest)?,
        };
        let is_on_disk = self.promises_disk(id);
        let log = self.names.get_mut(id)?;
        let (subject, at) = (Arc::clone(&log.subject), kept.sequence.min(log.base()));
        let mut message = kept.into_message(id);
        (message.subject, message.sequence, message.is_on_disk) = (subject, at.max(1), is_on_disk);
        let message = Arc::new(message);
        log.latest.update(&message, &mut self.counts.snapshot_bytes);
        self.counts.snapshots += 1;
        self.counts.bytes += log.lonely_bytes();
        Some(())
    }

    /// What the patches of a snapshot were merged into.
    pub(super) fn put_below(&mut self, kept: &KeptMessage, union: &[u8]) {
        let old = if kept.kind == Kind::Json { kept.content() } else { b"" };
        let merged = json::merge(old, union, Nulls::Remove).unwrap_or_else(|| union.to_vec());
        if let Some(log) = self.names.find(&kept.subject).and_then(|id| self.names.get_mut(id)) {
            let fields = log.latest.fields().to_vec();
            log.latest.replace(merged, &fields, &mut self.counts.snapshot_bytes);
        }
    }

    /// The log of a subject of which nothing but its snapshot comes back.
    pub(super) fn create_for_snapshot(
        &mut self,
        restoring: &mut Restoring,
        kept: &KeptMessage,
        newest: Option<Position>,
    ) -> Option<LogId> {
        let known = newest.and_then(|newest| {
            let run = restoring.runs.iter().rposition(|run| run.epoch <= newest.epoch)?;
            Some((run, newest))
        });
        let Some((run, newest)) = known else { return self.create_new(&kept.subject, Owner::default()).ok() };
        let id = self.create_restored(restoring, run, kept, newest.epoch)?;
        self.names.get_mut(id)?.jump(newest.sequence, kept.arrival);
        Some(id)
    }
}
