//! Which snapshots the journal's rows do not hold: states of standard messages, what was merged into them, and those that the journal's file of
//! snapshots holds and that are gone. Owns which of them changed since the file was told; what is written is the state as it is then.
use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::Node;
use super::super::log::Log;
use crate::journal::SavedState;

/// Subjects without a log that wait to be told to the file; past it they are told when it is written anew.
const GONE_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(in crate::node) struct States {
    is_on: bool,
    changed: BTreeSet<Arc<str>>,
    /// Of some subjects the file was not told that their snapshot is gone.
    has_forgotten: bool,
}

impl States {
    pub(in crate::node) fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// A log's snapshot is another, or gone: what the file has of it does not hold any more.
    pub(in crate::node) fn note(&mut self, log: &mut Log) {
        if self.is_on {
            log.is_in_file = true;
            self.changed.insert(Arc::clone(&log.subject));
        }
    }

    /// The same, where the file has one.
    pub(in crate::node) fn note_gone(&mut self, log: &mut Log) {
        log.is_loose = false;
        if log.is_in_file {
            self.note(log);
        }
    }

    /// A subject is forgotten.
    pub(in crate::node) fn note_forgotten(&mut self, log: &Log) {
        if log.is_in_file {
            self.changed.insert(Arc::clone(&log.subject));
        }
    }
}

impl Node {
    /// At most `max` subjects whose snapshot changed since they were last taken here, or is gone, and that the journal's rows do not hold.
    pub fn take_changed_states(&mut self, max: usize) -> Vec<Arc<str>> {
        std::iter::from_fn(|| self.states.changed.pop_first()).take(max).collect()
    }

    /// Subjects that `take_changed_states` would give.
    pub fn changed_states(&self) -> usize {
        self.states.changed.len()
    }

    /// A subject's snapshot as it is to be saved before the journal lets its rows up to this arrival go; none where there is none, or where later
    /// rows that are on the disk say it all.
    pub fn state_to_save(&mut self, subject: &str, until: u64) -> Option<SavedState> {
        let id = self.names.find(subject)?;
        let log = self.names.get_mut(id)?;
        let policy = self.policies.get(log.policy);
        if !policy.keeps_snapshot || !policy.journals {
            return None;
        }
        let (at, log_arrival) = (log.at(), log.last_arrival().max(log.evicted_arrival()));
        let Some(last) = log.latest.last() else {
            log.is_in_file |= log.lacks_base;
            return log.lacks_base.then_some(SavedState { at, log_arrival, snapshot: None });
        };
        let is_there = self.journal.as_ref().is_none_or(|journal| journal.progress.holds(last.arrival));
        let is_said_later =
            is_there && last.arrival > until && log.latest.is_plain() && !last.is_patch && !log.is_loose;
        if until > 0 && is_said_later {
            return None;
        }
        let snapshot = log.latest.show(at);
        log.is_in_file = true;
        Some(SavedState { at, log_arrival, snapshot })
    }

    /// Whether the file is to have a line of a subject: what the file has of others does not count. Asked of each subject when the file is written anew.
    pub fn has_state(&self, subject: &str) -> bool {
        let log = self.names.find(subject).and_then(|id| self.names.get(id));
        log.is_some_and(|log| log.is_in_file && (!log.latest.is_none() || log.lacks_base))
    }

    /// True once: of some subjects the file was not told that their snapshot is gone.
    pub fn take_forgotten_states(&mut self) -> bool {
        if self.states.changed.len() > GONE_MAX.max(self.names.len()) {
            let names = &self.names;
            self.states.changed.retain(|subject| names.find(subject).is_some());
            self.states.has_forgotten = true;
        }
        std::mem::take(&mut self.states.has_forgotten)
    }

    /// What `take_forgotten_states` said could not be written: the next call says it again.
    pub fn put_back_forgotten_states(&mut self) {
        self.states.has_forgotten = true;
    }
}
