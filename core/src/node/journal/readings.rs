//! Readings of the journal for who goes on from further back than memory: how many there may be at once on the whole node, who waits
//! for a turn, and what nobody is given any more because an operator took it back. Owns the bound: readings under way, each of
//! one page, so that what they hold is bounded too.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::Node;
use super::super::SHARDS_MAX;
use super::super::log::Known;
use crate::message::LogId;
use crate::node::pattern_scan::{Found, MISSING_MAX, ScanBudget, ScanRange};
use crate::position::Position;
use crate::subject::Pattern;

/// Purges remembered by name; what was accepted before older ones is read back for nobody.
const PURGES_MAX: usize = 4_096;

/// How much of a way is looked at before somebody goes on from memory.
const LOOK: ScanBudget = ScanBudget { entries_max: 4_096, bytes_max: 65_536, missing_max: MISSING_MAX };

#[derive(Debug)]
pub(in crate::node) struct HistoryReads {
    /// Under way, by shard: one that gives up lets go of all of its own.
    under_way: [u32; SHARDS_MAX],
    /// Shards that found no room.
    waiting: u64,
}

impl Default for HistoryReads {
    fn default() -> Self {
        Self { under_way: [0; SHARDS_MAX], waiting: 0 }
    }
}

impl HistoryReads {
    fn count(&self) -> usize {
        self.under_way.iter().sum::<u32>() as usize
    }

    pub(in crate::node) fn abandon(&mut self, shard: u8) -> u64 {
        if let Some(count) = self.under_way.get_mut(usize::from(shard)) {
            *count = 0;
        }
        std::mem::take(&mut self.waiting)
    }
}

/// What was taken back: nothing of these subjects that was accepted up to an arrival is read back.
#[derive(Debug, Default)]
pub(in crate::node) struct Purges {
    names: HashMap<Arc<str>, u64>,
    /// The same, oldest first.
    order: VecDeque<Arc<str>>,
    /// The same of all subjects.
    base: u64,
}

impl Purges {
    pub(in crate::node) fn add(&mut self, subject: &str, arrival: u64) {
        let subject: Arc<str> = Arc::from(subject);
        if self.names.insert(Arc::clone(&subject), arrival).is_some() {
            self.order.retain(|name| *name != subject);
        }
        self.order.push_back(subject);
        if self.order.len() > PURGES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.base = self.base.max(self.names.remove(&oldest).unwrap_or(0));
        }
    }

    fn find(&self, subject: &str) -> u64 {
        self.names.get(subject).copied().unwrap_or(0).max(self.base)
    }
}

impl Node {
    /// Whether one more page may be read now; else the shard is woken when one may.
    pub fn begin_reading(&mut self, shard: u8) -> bool {
        let reads_max = self.limits.journal_reads_max;
        let Some(readings) = self.journal.as_mut().map(|journal| &mut journal.readings) else { return false };
        if readings.count() >= reads_max {
            readings.waiting |= 1_u64.checked_shl(u32::from(shard)).unwrap_or(0);
            return false;
        }
        readings.under_way.get_mut(usize::from(shard)).is_some_and(|count| {
            *count += 1;
            true
        })
    }

    /// A page has been read, and used or dropped.
    pub fn end_reading(&mut self, shard: u8) {
        let Some(readings) = self.journal.as_mut().map(|journal| &mut journal.readings) else { return };
        if let Some(count) = readings.under_way.get_mut(usize::from(shard)) {
            *count = count.saturating_sub(1);
        }
        self.wakes |= std::mem::take(&mut readings.waiting);
    }

    /// The last arrival that has been handed to the journal.
    pub fn handed_over(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.last)
    }

    /// The highest arrival that a resume token should name: the last that the journal has where later ones are kept out of it, so that a node
    /// that is killed still knows the token.
    pub fn token_bound(&self) -> u64 {
        match &self.journal {
            Some(journal) if self.policies.has_unjournaled() && journal.last > 0 => journal.last,
            _ => u64::MAX,
        }
    }

    /// Of messages accepted up to here some may be missing in the journal: the disk had failed. 0 none.
    pub fn lost_until(&self) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.progress.lost.max(journal.lost_until))
    }

    /// Nothing of the subject that was accepted up to here is given to anybody: it was taken back.
    pub fn purged_until(&self, subject: &str) -> u64 {
        self.journal.as_ref().map_or(0, |journal| journal.purges.find(subject))
    }

    /// Whether all that memory has let go of was taken back.
    pub fn has_purged(&self, log: LogId, subject: &str) -> bool {
        let evicted = self.names.get(log).map_or(0, |log| log.evicted_arrival());
        evicted > 0 && evicted <= self.purged_until(subject)
    }

    /// Whether memory knows nothing of a position's epoch though it may have been one of this node's: the subject had been forgotten.
    pub fn is_forgotten(&self, log: LogId, at: Position) -> bool {
        let is_ours = at.epoch <= self.epoch && self.runs.has_given(at.epoch);
        is_ours && self.names.get(log).is_some_and(|log| self.know(log, at) == Known::Other)
    }

    /// What the first message of a subject's epoch follows, where that is known and is another epoch's.
    pub fn followed(&self, subject: &str, epoch: u64) -> Option<Position> {
        let log = self.find(subject)?;
        let number = self.number(log, Position { epoch, sequence: 0 }).filter(|number| *number > 0)?;
        Some(self.position(log, number)).filter(|at| at.epoch != epoch)
    }

    /// What stands for a subject on the wires: its log, where it has one.
    pub fn log_for(&self, subject: &str) -> LogId {
        self.find(subject).unwrap_or_else(|| LogId::unkept(self.names.hash(subject)))
    }

    /// Whether memory has what a pattern got after an arrival; of a long way, the beginning.
    pub fn remembers(&self, pattern: &Pattern, arrival: u64, until: u64) -> bool {
        let mut found = Found::default();
        let scan = self.scan_pattern(pattern, ScanRange { after: arrival, until, budget: LOOK }, &mut found);
        !scan.is_lost && found.missing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{PURGES_MAX, Purges};

    #[test]
    fn a_purge_that_is_no_longer_known_by_name_holds_for_all() {
        let mut purges = Purges::default();
        purges.add("/a", 5);
        purges.add("/a", 9);
        assert_eq!((purges.find("/a"), purges.find("/b")), (9, 0));
        for more in 0..PURGES_MAX as u64 {
            purges.add(&format!("/{more}"), 10 + more);
        }
        assert_eq!((purges.find("/b"), purges.find("/7")), (9, 17));
    }
}
