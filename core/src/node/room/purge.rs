//! Taking back what a subject keeps, because an operator says so: its messages and its snapshot. Positions go on from where they
//! were; who is behind hears of a gap.
use super::super::Node;
use super::super::log::Log;
use super::{drop_snapshot, evict};
use crate::command::GapReason;
use crate::message::{LogId, fields};

/// Messages let go under one acquisition of the node.
const EACH: usize = 1_024;

/// How far a purge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    pub log: LogId,
    /// It goes up to this arrival: what was accepted after it began, stays.
    pub end: u64,
    pub messages: usize,
    pub has_more: bool,
}

impl Node {
    /// Lets go of the subject's oldest messages; none where there is no such subject. Without an `end` it begins, and drops the
    /// snapshot, which may hold fields of many messages; with the last answer's `end` it goes on, until nothing is left.
    pub fn purge(&mut self, subject: &str, end: Option<u64>) -> Option<Purged> {
        let head = end.unwrap_or(self.numbered());
        if let Some(journal) = self.journal.as_mut().filter(|_| end.is_none()) {
            journal.note_purge(subject, head, self.epoch);
        }
        let id = self.names.find(subject)?;
        if end.is_none() {
            self.unseen.purge(id.slot, head);
        }
        let log = self.names.get_mut(id)?;
        if end.is_none() {
            drop_snapshot(log, &mut self.counts, &mut self.states);
        }
        let end = head;
        let is_meant = |log: &Log| log.oldest().is_some_and(|oldest| oldest.arrival <= end);
        let mut messages = 0;
        while messages < EACH && is_meant(log) {
            self.counts.bytes -= evict(log, GapReason::Expired, &mut self.counts);
            self.counts.messages -= 1;
            messages += 1;
        }
        Some(Purged { log: id, end, messages, has_more: is_meant(log) })
    }

    /// The removal of every field that a subject's state has, for the message that says that the state is gone.
    pub fn list_removed_fields(&self, subject: &str) -> Vec<u8> {
        let state = self.names.find(subject).and_then(|id| {
            let log = self.names.get(id)?;
            Some(self.unseen.state(id.slot).unwrap_or(&log.latest))
        });
        state.map_or_else(Vec::new, |state| fields::remove(state.fields()))
    }

    /// A message is seen that was accepted before its subject was purged up to `end`: who is there gets it, and it is not kept.
    pub(in crate::node) fn take_back(&mut self, id: LogId, end: u64) {
        let Some(log) = self.names.get_mut(id) else { return };
        drop_snapshot(log, &mut self.counts, &mut self.states);
        while log.oldest().is_some_and(|oldest| oldest.arrival <= end) {
            self.counts.bytes -= evict(log, GapReason::Expired, &mut self.counts);
            self.counts.messages -= 1;
        }
    }
}
