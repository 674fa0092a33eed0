//! Snapshots of the journal's file, once the rows have come back: each is whole up to its own arrival, and rows that are later go before it. Owns
//! what becomes of patches whose base is in neither.
use std::collections::HashMap;
use std::sync::Arc;

use super::super::super::Node;
use super::super::super::names::Owner;
use super::super::super::room::drop_snapshot;
use super::{Restored, Restoring};
use crate::journal::KeptMessage;
use crate::message::{LogId, Message, fields};
use crate::position::{Now, Position};

/// The fields of subjects that the file has some of: the arrival up to which they are the file's, and what they are now.
#[derive(Debug, Default)]
pub(super) struct KeptFields(HashMap<Arc<str>, (u64, Vec<u8>)>);

impl KeptFields {
    /// The next row that changes a snapshot.
    pub(super) fn note(&mut self, message: &Message) {
        if self.0.is_empty() {
            return;
        }
        if let Some((arrival, held)) = self.0.get_mut(&message.subject)
            && message.arrival > *arrival
        {
            *held = if message.is_removal { Vec::new() } else { fields::merge(held, message.fields(), false) };
        }
    }
}

impl Restoring {
    /// How far a snapshot of the file comes: what its run had made of rows that were lost is no further than those that were kept.
    fn reached(&self, kept: &KeptMessage) -> u64 {
        kept.arrival.min(self.end_of_epoch(kept.epoch).unwrap_or(u64::MAX))
    }

    /// Whether a subject's purge, which is as of `purged`, took a snapshot of the file. Within a run both are as that run had them.
    fn has_purged(&self, kept: &KeptMessage, purged: u64) -> bool {
        let in_run = self.purges.get(&*kept.subject).filter(|(_, end)| self.end_of_epoch(kept.epoch) == Some(*end));
        in_run.map_or(self.reached(kept) <= purged, |(until, _)| kept.arrival <= *until)
    }
}

impl Node {
    /// Fields that the file has of a subject, which are whole up to an arrival; before the rows come.
    pub fn restore_fields(&mut self, kept: &KeptMessage) {
        let purged = self.purged_until(&kept.subject);
        if let Some(restoring) = self.restoring.as_mut().filter(|_| !kept.fields().is_empty())
            && !restoring.has_purged(kept, purged)
        {
            let arrival = restoring.reached(kept);
            restoring.fields.0.insert(Arc::clone(&kept.subject), (arrival, kept.fields().to_vec()));
        }
    }

    /// A snapshot that the file holds, once the rows have come. It is whole up to its own arrival: what came later is merged into it, or took its
    /// place. `newest`: the position and the arrival of the subject's
    /// last message. False: it does not count any more.
    pub fn restore_state(&mut self, kept: KeptMessage, newest: (Position, u64), now: Now) -> bool {
        let Some(mut restoring) = self.restoring.take() else { return false };
        let subject = Arc::clone(&kept.subject);
        let is_back = self.try_restore_state(&mut restoring, kept, newest, now);
        if let Some(log) = self.names.find(&subject).and_then(|id| self.names.get_mut(id)).filter(|_| is_back) {
            log.is_in_file = true;
        }
        self.restoring = Some(restoring);
        is_back
    }

    /// The file says that a subject's snapshot is lost: patches since are not the whole. False: it does not matter any more.
    pub fn restore_lost_state(&mut self, subject: &str) -> bool {
        let Some(restoring) = &mut self.restoring else { return false };
        let is_missing = restoring.bases.take_union(subject).is_some();
        let log = self.names.find(subject).and_then(|id| self.names.get_mut(id)).filter(|_| is_missing);
        let Some(log) = log else { return false };
        (log.lacks_base, log.is_in_file) = (true, true);
        drop_snapshot(log, &mut self.counts, &mut self.states);
        true
    }

    fn try_restore_state(
        &mut self,
        restoring: &mut Restoring,
        mut kept: KeptMessage,
        newest: (Position, u64),
        now: Now,
    ) -> bool {
        let number = self.policies.resolve(&kept.subject, false, &mut self.ages);
        let policy = self.policies.get(number);
        let age_ms_max = policy.snapshot_age_ms_max;
        let is_old = age_ms_max > 0 && now.wall_ms.saturating_sub(kept.time_ms) >= age_ms_max;
        let is_wanted = policy.keeps_snapshot && policy.journals && !is_old;
        let is_purged = restoring.has_purged(&kept, self.purged_until(&kept.subject));
        kept.arrival = restoring.reached(&kept);
        let taken_back = restoring.bases.settled_until(&kept.subject);
        let log = self.names.find(&kept.subject).and_then(|id| self.names.get(id));
        let last = log.and_then(|log| log.latest.last()).map_or(0, |last| last.arrival);
        if !is_wanted || is_purged || kept.arrival <= taken_back {
            return false;
        }
        if kept.arrival < last {
            // Rows made it since. Where they are patches alone, this is what they were merged into.
            let union = restoring.bases.take_union(&kept.subject);
            if let Some(union) = &union {
                self.put_below(&kept, union);
            }
            let held = restoring.fields.0.remove(&kept.subject);
            if let Some((_, held)) = &held {
                self.put_fields(&kept.subject, held);
            }
            return union.is_some() || held.is_some();
        }
        restoring.bases.forget(&kept.subject);
        if !self.make_room(size_of::<Message>() + kept.bytes().len()) {
            restoring.told.rows_skipped += 1;
            return false;
        }
        // Arrivals that no row tells of are given again: what follows must be later than this.
        let held = restoring.runs.last().map_or(0, |run| run.last).max(self.index.head());
        let is_loose = kept.sequence == 0;
        let is_ahead = kept.arrival > held;
        kept.arrival = kept.arrival.min(held);
        let Some(id) = self.put_state(restoring, kept, newest) else {
            restoring.told.rows_skipped += 1;
            return false;
        };
        if let Some(log) = self.names.get_mut(id) {
            log.is_loose = is_loose;
            if is_ahead {
                self.states.note(log);
            }
        }
        true
    }

    /// The fields of a snapshot whose rows do not hold all of them.
    fn put_fields(&mut self, subject: &str, held: &[u8]) {
        if let Some(log) = self.names.find(subject).and_then(|id| self.names.get_mut(id)) {
            let content = log.latest.merged().map(|merged| merged.to_vec());
            let content = content.or_else(|| Some(log.latest.last()?.content().to_vec())).unwrap_or_default();
            log.latest.replace(content, held, &mut self.counts.snapshot_bytes);
            log.is_loose |= log.latest.has_merged_fields();
        }
    }

    fn put_state(&mut self, restoring: &mut Restoring, kept: KeptMessage, newest: (Position, u64)) -> Option<LogId> {
        let id = match self.names.find(&kept.subject) {
            Some(id) => id,
            // It has never had a position.
            None if newest.0.sequence == 0 => self.create_new(&kept.subject, Owner::default()).ok()?,
            None => {
                let id = self.create_for_snapshot(restoring, &kept, Some(newest.0))?;
                self.names.get_mut(id)?.jump(newest.0.sequence, newest.1);
                id
            }
        };
        let log = self.names.get_mut(id)?;
        drop_snapshot(log, &mut self.counts, &mut self.states);
        let is_standard = kept.sequence == 0;
        let mut message = kept.into_message(id);
        message.sequence = if is_standard { 0 } else { log.base().max(1) };
        message.subject = Arc::clone(&log.subject);
        log.latest.update(&Arc::new(message), &mut self.counts.snapshot_bytes);
        self.counts.snapshots += 1;
        self.counts.bytes += log.lonely_bytes();
        Some(id)
    }

    /// The file has lost what may be below patches: what they made is not the whole, and is left out.
    pub fn restore_without_bases(&mut self) {
        let Some(mut restoring) = self.restoring.take() else { return };
        for subject in restoring.bases.take_missing() {
            if let Some(log) = self.names.find(&subject).and_then(|id| self.names.get_mut(id)) {
                log.lacks_base = true;
                drop_snapshot(log, &mut self.counts, &mut self.states);
                self.states.note(log);
                restoring.told.snapshots_lost += 1;
            }
        }
        self.restoring = Some(restoring);
    }
}

impl Restored {
    /// What is to be said of it where something was lost.
    pub fn loss(&self) -> Option<String> {
        (self.snapshots_lost > 0).then(|| {
            format!(
                "the snapshots file is damaged: dropped {} merged snapshots, because the messages they started from are lost",
                self.snapshots_lost
            )
        })
    }
}
