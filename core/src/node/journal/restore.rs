//! A node that begins with what its journal kept: logs, snapshots, numbering and idempotency keys, row by row in the order in which
//! they were accepted, before anybody listens. Owns what a restart means for positions: arrivals go on, every subject goes on in
//! the new epoch, and the runs before it stay known, so that who stands in one of them is sent the rest and told of the change.
//! What cannot have been so (a row twice, an arrival that runs back) is passed over and counted.
mod bases;
mod states;

use super::super::Node;
use super::super::append::traits_of;
use super::super::keys::Known;
use super::super::log::Log;
use super::super::mqtt::{Packets, Pending, PendingWill};
use super::super::names::Owner;
use super::super::room::{drop_snapshot, evict, is_expired};
use super::runs::PastRun;
use crate::command::GapReason;
use crate::journal::KeptMessage;
use crate::message::{LogId, LogNumber, Message};
use crate::position::{Now, Position};
use std::collections::HashMap;
use std::sync::Arc;

/// What came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Rows that were read.
    pub rows: u64,
    /// Rows that could not be used: duplicates, rows out of order, and rows beyond a limit of subjects or bytes.
    pub rows_skipped: u64,
    /// How often rows are missing between two rows of one subject.
    pub missing_ranges: u64,
    pub subjects: u64,
    pub messages: u64,
    pub keys: u64,
    /// Sessions of MQTT clients.
    pub sessions: u64,
    /// Snapshots that were left out because what their patches were merged into is lost.
    pub snapshots_lost: u64,
    /// The last arrival that the journal held.
    pub arrival: u64,
}

/// What is known while rows come back.
#[derive(Debug, Default)]
pub(in crate::node) struct Restoring {
    /// The runs whose rows these are, oldest first.
    runs: Vec<PastRun>,
    /// How many runs each log has seen, by slot.
    seen: Vec<u16>,
    told: Restored,
    /// The last arrival that each of these lost.
    lost: Vec<u64>,
    /// The run and the offset of the row before.
    last: Option<(u64, u64)>,
    /// There are rows before the first that came.
    is_part: bool,
    /// The arrival of the first row that came.
    first: Option<u64>,
    /// Sessions whose messages have yet to come.
    pub(super) sessions: Vec<Pending>,
    /// What MQTT clients sent at QoS 2.
    packets: Packets,
    /// What snapshots lack.
    bases: bases::Bases,
    /// Fields of the journal's file, with what rows since have made of them.
    fields: states::KeptFields,
    /// Purges that had come further in their run than its rows: up to where, and where it ended.
    purges: HashMap<Box<str>, (u64, u64)>,
    /// What was to be published for clients that the run before had.
    pub(super) wills: Vec<PendingWill>,
}

impl Node {
    /// The epoch that the journal began this run with, where it is not the one that the node was made with.
    pub fn begin_epoch(&mut self, epoch: u64) {
        self.epoch = self.epoch.max(epoch);
    }

    /// Begins: `runs` are the runs that this one follows, oldest first; rows come in their order.
    pub fn begin_restore(&mut self, runs: Vec<PastRun>) {
        let highest = runs.iter().map(|run| run.epoch).max().unwrap_or(0);
        self.epoch = self.epoch.max(highest + 1);
        self.restoring = Some(Box::new(Restoring { lost: vec![0; runs.len()], runs, ..Restoring::default() }));
    }

    /// Rows are left out before the first that comes: too old, too many, or let go.
    pub fn restore_part(&mut self) {
        if let Some(restoring) = &mut self.restoring {
            restoring.is_part = true;
        }
    }

    /// The next row.
    pub fn restore(&mut self, mut kept: KeptMessage, now: Now) {
        note_removal(&mut kept);
        let Some(mut restoring) = self.restoring.take() else { return };
        restoring.told.rows += 1;
        restoring.first.get_or_insert(kept.arrival);
        self.note_missing(&mut restoring, &kept);
        if self.try_restore(&mut restoring, kept, now).is_none() {
            restoring.told.rows_skipped += 1;
        }
        self.restoring = Some(restoring);
    }

    /// Rows before this one may be missing: offsets follow each other. Nobody knows of which subjects those were, so the number of messages
    /// that one of them lost behind its last one cannot be known either.
    fn note_missing(&mut self, restoring: &mut Restoring, kept: &KeptMessage) {
        let before = restoring.last.replace((kept.run, kept.offset));
        let Some((run, _)) = before.filter(|(_, last)| kept.offset > last + 1) else { return };
        let until = kept.arrival.saturating_sub(1);
        let runs = restoring.runs.iter().zip(&mut restoring.lost);
        let both = runs.filter(|(known, _)| known.run == run || known.run == kept.run);
        both.for_each(|(_, lost)| *lost = until.max(*lost));
        self.forgotten.raise(until);
        if let Some(journal) = &mut self.journal {
            journal.note_lost(until);
        }
    }

    /// Rows of a run up to this arrival are missing somewhere: the disk had failed. Told before the rows come.
    pub fn restore_missing(&mut self, run: u64, arrival: u64) {
        if let Some(restoring) = &mut self.restoring {
            let runs = restoring.runs.iter().zip(&mut restoring.lost);
            runs.filter(|(known, _)| known.run == run).for_each(|(_, lost)| *lost = arrival.max(*lost));
        }
        self.forgotten.raise(arrival);
        if let Some(journal) = &mut self.journal {
            journal.note_lost(arrival);
        }
    }

    /// Ends: the present run begins, with an arrival of its own.
    pub fn finish_restore(&mut self, now: Now) -> Restored {
        let Some(mut restoring) = self.restoring.take() else { return Restored::default() };
        let held = restoring.runs.last().map_or(0, |run| run.last).max(self.index.head());
        self.index.advance(held + 1, self.limits.index_entries_max);
        let began = self.index.head();
        for slot in 0..self.names.slots() {
            // A log that began with a snapshot of which nobody knows the place is in the present epoch already.
            restoring.catch_up(self.names.log_at_mut(slot), slot, usize::MAX);
            if let Some(log) = self.names.log_at_mut(slot)
                && log.epoch < self.epoch
            {
                log.end_run(began, self.epoch, restoring.lost.last().copied().unwrap_or(0));
            }
        }
        if restoring.is_part {
            self.unread = restoring.first.map_or(held, |first| first.saturating_sub(1));
        }
        let ends: Vec<u64> = restoring.runs.iter().skip(1).map(|run| run.epoch).chain([self.epoch]).collect();
        for (run, epoch_end) in restoring.runs.iter().zip(ends) {
            self.runs.push(PastRun { epoch_end: run.epoch_end.min(epoch_end), ..*run });
        }
        self.runs.begin(self.epoch, began);
        let sessions = restoring.sessions.len() as u64;
        for pending in std::mem::take(&mut restoring.sessions) {
            self.settle_session(pending, began, &mut restoring.packets);
        }
        self.begin_groups(began);
        for pending in std::mem::take(&mut restoring.wills) {
            self.settle_will(pending, now);
        }
        self.publishers.end_restore();
        self.ages.tick(now.mono_ms, held);
        self.time_ms = self.time_ms.max(now.wall_ms);
        if let Some(journal) = &mut self.journal {
            journal.begin_at(began);
        }
        Restored {
            subjects: self.names.len() as u64,
            messages: self.counts.messages as u64,
            keys: self.keys.len() as u64,
            arrival: held,
            sessions,
            ..restoring.told
        }
    }

    fn try_restore(&mut self, restoring: &mut Restoring, kept: KeptMessage, now: Now) -> Option<()> {
        let is_taken_back = kept.arrival <= self.purged_until(&kept.subject);
        if kept.arrival <= self.index.head() || kept.sequence == 0 {
            return None;
        }
        let run = restoring.runs.iter().rposition(|run| run.run == kept.run)?;
        let then_ms = now.mono_ms as i64 - now.wall_ms.saturating_sub(kept.time_ms) as i64;
        let has_room = self.make_room(size_of::<crate::message::Message>() + kept.bytes().len());
        let Some(id) = has_room.then(|| self.find_restored(restoring, run, &kept)).flatten() else {
            // Of this subject memory knows nothing, or not the last.
            if let Some(lost) = restoring.lost.get_mut(run) {
                *lost = kept.arrival.max(*lost);
            }
            self.forgotten.raise(kept.arrival);
            return None;
        };
        let log = self.names.get_mut(id)?;
        let expected = log.at().sequence + 1;
        if kept.sequence < expected {
            return None;
        }
        if kept.sequence > expected {
            restoring.told.missing_ranges += u64::from(log.number() > 0);
            while log.len() > 0 {
                self.counts.bytes -= evict(log, GapReason::Expired, &mut self.counts);
                self.counts.messages -= 1;
            }
            log.jump(log.number() + kept.sequence - expected, kept.arrival - 1);
        }
        self.ages.note(then_ms, self.index.head());
        self.time_ms = self.time_ms.max(kept.time_ms);
        self.index.advance(kept.arrival - 1, self.limits.index_entries_max);
        self.restore_key(&kept, then_ms);
        restoring.packets.note(&kept);
        let log = self.names.get(id)?;
        let (place, subject): (LogNumber, Arc<str>) = (log.next(), Arc::clone(&log.subject));
        let arrival = kept.arrival;
        let mut message = kept.into_message(id);
        let kept_subject = Arc::clone(&subject);
        (message.subject, message.sequence, message.follows) = (subject, place.sequence, place.follows);
        message.is_on_disk = self.promises_disk(id);
        self.note_state(restoring, &message);
        self.keep(&Arc::new(message));
        self.trim_index();
        // Its place is known, so that who stands before it hears of a gap.
        if is_taken_back {
            self.forget_messages(id);
            restoring.bases.settle(&kept_subject, arrival);
        }
        (!is_taken_back).then_some(())
    }

    /// Notes what a row does to its subject's snapshot.
    fn note_state(&self, restoring: &mut Restoring, message: &Message) {
        let Some(log) = self.names.get(message.log).filter(|_| message.is_retained) else { return };
        restoring.fields.note(message);
        let policy = self.policies.get(log.policy);
        if policy.keeps_snapshot {
            let is_old = is_expired(log, self.ages.cutoff(policy.snapshot_age));
            restoring.bases.note(message, !log.latest.is_none(), is_old);
        }
    }

    /// The log of a row, in the run and epoch of the row.
    fn find_restored(&mut self, restoring: &mut Restoring, run: usize, kept: &KeptMessage) -> Option<LogId> {
        if let Some(id) = self.names.find(&kept.subject) {
            restoring.catch_up(self.names.get_mut(id), id.slot, run + 1);
            if self.names.get(id)?.epoch == kept.epoch {
                return Some(id);
            }
            // It had been forgotten meanwhile, and came back in a later epoch.
            self.forget_restored(id);
            restoring.bases.settle(&kept.subject, 0);
        }
        self.create_restored(restoring, run, kept, kept.epoch)
    }

    fn create_restored(
        &mut self,
        restoring: &mut Restoring,
        run: usize,
        kept: &KeptMessage,
        epoch: u64,
    ) -> Option<LogId> {
        let id = self.create_new(&kept.subject, Owner::default()).ok()?;
        let log = self.names.get_mut(id)?;
        (log.epoch, log.since_arrival) = (epoch, kept.arrival.saturating_sub(1));
        let slot = id.slot as usize;
        if restoring.seen.len() <= slot {
            restoring.seen.resize(slot + 1, 0);
        }
        if let Some(seen) = restoring.seen.get_mut(slot) {
            *seen = (run + 1).min(restoring.runs.len()) as u16;
        }
        Some(id)
    }

    fn forget_restored(&mut self, id: LogId) {
        self.forget_messages(id);
        let Some(log) = self.names.get(id) else { return };
        self.forgotten.add(log.last_arrival(), Arc::clone(&log.subject), log.position(log.number()));
        self.names.remove(id.slot);
    }

    /// Lets go of a subject's messages and its snapshot.
    fn forget_messages(&mut self, id: LogId) {
        let Some(log) = self.names.get_mut(id) else { return };
        while log.len() > 0 {
            self.counts.bytes -= evict(log, GapReason::Expired, &mut self.counts);
            self.counts.messages -= 1;
        }
        drop_snapshot(log, &mut self.counts, &mut self.states);
    }

    fn restore_key(&mut self, kept: &KeptMessage, then_ms: i64) {
        self.restore_number(kept, then_ms);
        let Some(key) = &kept.key else { return };
        let scope = self.keys.scope(&kept.holder, &kept.subject, key);
        let content = self.keys.digest(&[
            &[kept.kind as u8, traits_of(true, kept.is_patch, kept.is_removal)],
            &kept.content_bytes().to_le_bytes(),
            kept.published(),
        ]);
        let at = Position { epoch: kept.epoch, sequence: kept.sequence };
        let owner = self.owner_of(&kept.holder, 0);
        self.keys.insert(owner, scope, Known { content, at: Some(at), arrival: kept.arrival }, then_ms);
    }
}

/// Rows of older nodes do not say that they removed the retained message.
fn note_removal(kept: &mut KeptMessage) {
    kept.is_removal |= kept.is_mqtt && kept.is_retained && kept.content().is_empty();
}

impl Node {
    /// How far a note of a run can speak: what was beyond was lost when that run was killed, and arrivals like those are other messages'.
    pub(in crate::node) fn end_of_epoch(&self, epoch: u64) -> u64 {
        self.restoring.as_ref().and_then(|restoring| restoring.end_of_epoch(epoch)).unwrap_or(u64::MAX)
    }

    /// A publisher is known again by what it published.
    fn restore_number(&mut self, kept: &KeptMessage, then_ms: i64) {
        let Some((publisher, number)) = kept.numbered.as_ref().filter(|_| !kept.is_mqtt) else { return };
        let scope = self.keys.scope_of_publisher(&kept.holder, publisher);
        let shape = [kept.kind as u8, traits_of(true, kept.is_patch, kept.is_removal)];
        let content = self.keys.digest_of_numbered(shape, &kept.subject, kept.content_bytes(), kept.published());
        let at = Position { epoch: kept.epoch, sequence: kept.sequence };
        let (owner, bounds) = (self.owner_of(&kept.holder, 0), self.publisher_bounds());
        let known = Known { content, at: Some(at), arrival: kept.arrival };
        if self.publishers.add(scope, owner, then_ms, bounds).is_ok() {
            self.publishers.insert(scope, *number, known, then_ms, bounds);
        }
    }
}

impl Restoring {
    /// A purge of a run, which may have come further than what was kept of it.
    pub(super) fn note_purge(&mut self, subject: &str, arrival: u64, epoch: u64) {
        if let Some(end) = self.end_of_epoch(epoch).filter(|end| arrival > *end) {
            self.purges.insert(Box::from(subject), (arrival, end));
        }
    }

    /// The last arrival of the run in which an epoch was; none where that is no earlier run.
    pub(in crate::node) fn last_of_epoch(&self, epoch: u64) -> Option<u64> {
        self.runs.iter().rfind(|run| run.epoch <= epoch && epoch < run.epoch_end).map(|run| run.last)
    }

    /// The arrival with which the run began that followed the one in which an epoch was; none where that is no earlier run, or the last of them.
    fn end_of_epoch(&self, epoch: u64) -> Option<u64> {
        let index = self.runs.iter().rposition(|run| run.epoch <= epoch && epoch < run.epoch_end)?;
        self.runs.get(index + 1).map(|next| next.began)
    }

    /// Brings a log to the last of so many runs.
    fn catch_up(&mut self, log: Option<&mut Log>, slot: u32, runs: usize) {
        let (Some(log), Some(seen)) = (log, self.seen.get_mut(slot as usize)) else { return };
        let until = runs.min(self.runs.len());
        for number in usize::from(*seen)..until {
            let Some(run) = self.runs.get(number) else { break };
            let before = number.checked_sub(1).and_then(|before| self.lost.get(before));
            log.end_run(run.began, run.epoch, before.copied().unwrap_or(0));
        }
        *seen = (*seen).max(until as u16);
    }
}
