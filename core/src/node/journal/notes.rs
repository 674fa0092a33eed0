//! Notes: what is no event but the last word on something, to be known again after a restart: an MQTT client's session, its will, a purge. Owns
//! what waits to be written of them, by name: only the last counts. Bounded by what there is to note.
use std::collections::BTreeMap;

use super::super::Node;
use super::super::listeners::bit;
use super::super::mqtt::{GROUP, SESSION, WILL};
use crate::position::Now;

/// Before a subject in the name of its purge.
const PURGE: &str = "purge ";

/// What waits to be written, and how far that has come. Notes are written in batches, which are numbered.
#[derive(Debug, Default)]
pub(in crate::node) struct Notes {
    /// By name; none: it is over.
    waiting: BTreeMap<String, Option<String>>,
    /// Batches that were taken.
    taken: u64,
    /// Batches up to this one are on the disk.
    synced: u64,
    /// Shards that wait for a batch.
    shards: u64,
    /// One of them has asked since the last batch was taken.
    is_urgent: bool,
    /// The disk has refused the last batch.
    is_failing: bool,
}

/// How far the notes have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NotesProgress {
    /// Batches up to this one are on the disk.
    pub(crate) synced: u64,
    /// The disk refuses those after it.
    pub(crate) is_failing: bool,
}

impl Notes {
    pub(in crate::node) fn put(&mut self, name: String, text: Option<String>) {
        self.waiting.insert(name, text);
    }

    pub(in crate::node) fn put_purge(&mut self, subject: &str, arrival: u64, epoch: u64) {
        self.put(format!("{PURGE}{subject}"), Some(format!("{arrival} {epoch}")));
    }
}

impl Node {
    /// Notes since the last call: a name, and what is to be known of it; none: nothing any more. Neither has a line's end.
    pub fn take_notes(&mut self) -> BTreeMap<String, Option<String>> {
        let Some(journal) = &mut self.journal else { return BTreeMap::new() };
        let notes = &mut journal.notes;
        (notes.taken, notes.is_urgent) = (notes.taken + 1, false);
        std::mem::take(&mut notes.waiting)
    }

    /// Everything that `take_notes` gave so far is on the disk; returns the shards to wake.
    pub fn notes_synced(&mut self) -> u64 {
        let Some(journal) = &mut self.journal else { return 0 };
        (journal.notes.synced, journal.notes.is_failing) = (journal.notes.taken, false);
        std::mem::take(&mut journal.notes.shards)
    }

    /// The disk does not take what `take_notes` gave; it is tried again. Returns the shards to wake: some of what waits there waits no longer.
    pub fn notes_refused(&mut self) -> u64 {
        let Some(journal) = &mut self.journal else { return 0 };
        journal.notes.is_failing = true;
        journal.notes.shards
    }

    pub(crate) fn notes_progress(&self) -> NotesProgress {
        let progress = |notes: &Notes| NotesProgress { synced: notes.synced, is_failing: notes.is_failing };
        self.journal.as_ref().map_or_else(NotesProgress::default, |journal| progress(&journal.notes))
    }

    /// Whether a shard waits for notes that have not been taken.
    pub fn wants_notes(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.notes.is_urgent)
    }

    /// A shard waits for all that has been noted so far; returns what `has_noted` is asked for.
    pub(crate) fn await_notes(&mut self, shard: u8) -> u64 {
        let Some(journal) = &mut self.journal else { return 0 };
        journal.notes.shards |= bit(shard);
        journal.notes.is_urgent = true;
        journal.notes.taken + 1
    }

    /// Whether the notes of a batch are on the disk; if not, the shard goes on waiting.
    pub(crate) fn has_noted(&mut self, batch: u64, shard: u8) -> bool {
        let Some(journal) = &mut self.journal else { return true };
        let is_there = batch <= journal.notes.synced;
        journal.notes.shards |= if is_there { 0 } else { bit(shard) };
        is_there
    }

    /// A note of an earlier run, before its messages come back; false where it is over, or says nothing: that of a purge once the journal keeps
    /// nothing from before `kept_from`, of which it spoke.
    pub fn restore_note(&mut self, name: &str, text: &str, kept_from: u64, now: Now) -> bool {
        if let Some(subject) = name.strip_prefix(PURGE) {
            // Notes of older nodes have no epoch.
            let (arrival, epoch) = text.split_once(' ').unwrap_or((text, "0"));
            let (Ok(arrival), Ok(epoch)) = (arrival.parse::<u64>(), epoch.parse()) else { return false };
            if let Some(restoring) = &mut self.restoring {
                restoring.note_purge(subject, arrival, epoch);
            }
            let arrival = arrival.min(self.end_of_epoch(epoch));
            let Some(journal) = &mut self.journal else { return false };
            // For this start it counts in any case: the file of snapshots may not have been told of it before a kill.
            journal.restore_purge(subject, arrival);
            return arrival >= kept_from;
        }
        if let Some(group) = name.strip_prefix(GROUP) {
            return self.restore_group(group, text);
        }
        if let Some(id) = name.strip_prefix(WILL) {
            let pending = self.restore_will(id, text);
            let is_back = pending.is_some();
            if let Some(restoring) = &mut self.restoring {
                restoring.wills.extend(pending);
            }
            return is_back;
        }
        let Some(id) = name.strip_prefix(SESSION) else { return false };
        let pending = self.restore_session(id, text, now);
        let is_back = pending.is_some();
        if let Some(restoring) = &mut self.restoring {
            restoring.sessions.extend(pending);
        }
        is_back
    }

    /// Whether somebody who is away is owed messages, however old they are.
    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Node;
    use crate::node::PastRun;
    use crate::position::Now;
    use crate::settings::{JournalSettings, Settings};

    #[test]
    fn a_purge_is_not_kept_once_the_journal_has_nothing_that_it_took() {
        let settings = Settings { journal: Some(JournalSettings::default()), ..Settings::default() };
        let mut node = Node::new(&settings);
        assert!(!node.restore_note("purge /a", "5", 6, Now::default()));
        assert!(node.restore_note("purge /b", "6", 6, Now::default()));
        assert_eq!((node.purged_until("/a"), node.purged_until("/b")), (5, 6));
    }

    #[test]
    fn a_purge_takes_nothing_of_the_run_after_the_one_that_was_killed() {
        let settings = Settings { journal: Some(JournalSettings::default()), epoch: 9, ..Settings::default() };
        let mut node = Node::new(&settings);
        let run = |run, began, last| PastRun { run, epoch: run, epoch_end: run + 1, began, last };
        node.begin_restore(vec![run(7, 1, 10), run(8, 11, 20)]);
        // Rows up to 10 were on the disk when the first of them was killed.
        for (subject, text, expected) in [("/a", "15 7", 11), ("/b", "15 8", 15), ("/c", "9 7", 9), ("/d", "15", 15)] {
            assert!(node.restore_note(&format!("purge {subject}"), text, 1, Now::default()));
            assert_eq!(node.purged_until(subject), expected, "{text}");
        }
        node.finish_restore(Now::default());
        node.purge("/e", None);
        let notes = node.take_notes();
        assert_eq!(notes["purge /e"].as_deref(), Some(&*format!("{} 9", node.arrival())));
    }
}
