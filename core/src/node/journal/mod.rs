//! What waits to be written down, and how far the journal has come: rows are handed over in batches, in the order of arrival, and
//! share the messages with the logs. Owns who may still be promised the disk. Bounded by what a turn accepts: while the disk keeps up publishers
//! are held back at half of the limit; while it fails, the writer's queue drops what finds no room, and knows which rows those are.
mod notes;
mod readings;
mod restore;
mod runs;
mod show;
mod states;

pub(crate) use notes::NotesProgress;
pub use restore::Restored;
pub(super) use restore::Restoring;
pub use runs::PastRun;
pub(super) use runs::{EPOCHS_MAX, Runs};
pub(super) use show::Unseen;
pub(super) use states::States;

use super::Node;
use crate::codes::Code;
use crate::command::Ack;
use crate::journal::MessageRow;
use crate::message::{Draft, LogId};
use crate::settings::JournalSettings;

/// How far the journal has come, as its writer tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Everything up to this arrival is on the disk, but for what was lost.
    pub synced: u64,
    /// The last arrival that was lost because the disk failed and there was no room; 0 none.
    pub lost: u64,
    /// The writer is so far behind that publishers should not be read.
    pub is_full: bool,
    /// The disk refuses: what is not synced yet may never be.
    pub is_failing: bool,
}

impl Progress {
    /// Whether an arrival is on the disk.
    pub fn holds(&self, arrival: u64) -> bool {
        arrival > self.lost && arrival <= self.synced
    }

    /// Whether nothing more is to be awaited of an arrival.
    pub fn settles(&self, arrival: u64) -> bool {
        self.is_failing || arrival <= self.synced
    }
}

#[derive(Debug)]
pub(super) struct Journal {
    rows: Vec<MessageRow>,
    bytes: usize,
    bytes_max: usize,
    progress: Progress,
    /// Somebody waits for the disk: the writer should not.
    is_urgent: bool,
    /// The last arrival of the rows that somebody waits for, by shard.
    waiting: [u64; super::SHARDS_MAX],
    /// The last arrival that came here.
    last: u64,
    /// Messages of an earlier run up to this arrival may be missing: the disk had failed.
    lost_until: u64,
    readings: readings::HistoryReads,
    purges: readings::Purges,
    notes: notes::Notes,
}

impl Journal {
    pub(super) fn new(settings: &JournalSettings) -> Self {
        Self {
            rows: Vec::new(),
            bytes: 0,
            bytes_max: settings.messages_bytes_max.max(2),
            progress: Progress::default(),
            is_urgent: false,
            waiting: [0; super::SHARDS_MAX],
            last: 0,
            lost_until: 0,
            readings: readings::HistoryReads::default(),
            purges: readings::Purges::default(),
            notes: notes::Notes::default(),
        }
    }

    pub(super) fn is_failing(&self) -> bool {
        self.progress.is_failing
    }

    pub(super) fn has_synced(&self, arrival: u64) -> bool {
        self.progress.holds(arrival)
    }

    /// Everything up to here came from the journal.
    pub(super) fn begin_at(&mut self, arrival: u64) {
        self.progress.synced = arrival;
    }

    pub(super) fn push(&mut self, row: MessageRow) {
        self.last = row.message.arrival;
        self.is_urgent |= row.needs_disk;
        self.bytes += row.cost_bytes();
        self.rows.push(row);
    }

    pub(super) fn note_purge(&mut self, subject: &str, arrival: u64, epoch: u64) {
        self.purges.add(subject, arrival);
        self.notes.put_purge(subject, arrival, epoch);
    }

    pub(super) fn restore_purge(&mut self, subject: &str, arrival: u64) {
        self.purges.add(subject, arrival);
    }

    pub(super) fn note(&mut self, name: String, text: Option<String>) {
        self.notes.put(name, text);
    }

    pub(super) fn note_lost(&mut self, arrival: u64) {
        self.lost_until = self.lost_until.max(arrival);
    }

    /// A shard reads nothing any more; returns those that may.
    pub(super) fn abandon(&mut self, shard: u8) -> u64 {
        self.readings.abandon(shard)
    }

    /// While the disk works what comes in is no more than it takes.
    pub(super) fn holds_publishers(&self) -> bool {
        !self.progress.is_failing && (self.progress.is_full || self.bytes >= self.bytes_max / 2)
    }
}

impl Node {
    /// Whether accepted messages are written down.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// What has been accepted since the last call, in order of arrival, swapped with an empty list. True: somebody waits for it.
    pub fn take_rows(&mut self, into: &mut Vec<MessageRow>) -> bool {
        let Some(journal) = &mut self.journal else { return false };
        journal.bytes = 0;
        std::mem::swap(&mut journal.rows, into);
        std::mem::take(&mut journal.is_urgent)
    }

    /// Whether rows wait to be taken, and whether somebody waits for them.
    pub fn has_rows(&self) -> (bool, bool) {
        self.journal.as_ref().map_or((false, false), |journal| (!journal.rows.is_empty(), journal.is_urgent))
    }

    /// The writer is so far behind that publishers should not be read; `journaled` says when they may be again.
    pub fn hold_publishers(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.progress.is_full = true;
        }
    }

    /// The writer has come so far. Shows what was not to be seen before; returns the shards to wake: those with news in
    /// the feed, and those that wait for the disk.
    pub fn journaled(&mut self, progress: Progress) -> u64 {
        let Some(journal) = &mut self.journal else { return 0 };
        let synced = journal.progress.synced.max(progress.synced);
        let lost = journal.progress.lost.max(progress.lost);
        journal.progress = Progress { synced, lost, ..progress };
        let mut mask = 0;
        for (shard, waiting) in journal.waiting.iter_mut().enumerate() {
            if *waiting > 0 {
                mask |= 1 << shard;
                if *waiting <= synced {
                    *waiting = 0;
                }
            }
        }
        mask | self.show_until(synced, progress.is_failing)
    }

    /// How far the journal has come; none where there is none.
    pub fn journal_progress(&self) -> Option<Progress> {
        self.journal.as_ref().map(|journal| journal.progress)
    }

    /// A shard waits for the disk up to this arrival: it is woken as that comes nearer.
    pub fn await_disk(&mut self, shard: u8, arrival: u64) {
        let waiting = self.journal.as_mut().and_then(|journal| journal.waiting.get_mut(usize::from(shard)));
        if let Some(waiting) = waiting {
            *waiting = arrival.max(*waiting);
        }
    }

    /// Whether MQTT clients of a log are promised the disk.
    pub(super) fn promises_disk(&self, id: LogId) -> bool {
        let policy = self.names.get(id).map(|log| self.policies.get(log.policy));
        self.journal.is_some() && policy.is_some_and(|policy| policy.acks_mqtt_from_disk && policy.journals)
    }

    /// Whether MQTT clients are promised the disk of anything that a selector may hold.
    pub(crate) fn promises_disk_within(&self, selector: &str) -> bool {
        self.journal.is_some() && self.policies.promises_disk_within(selector)
    }

    /// Whether a draft may be promised what it asks for.
    pub(super) fn check_ack(&self, draft: &Draft) -> Result<(), Code> {
        match (draft.ack, &self.journal) {
            (Ack::Cached, _) => Ok(()),
            (Ack::Disk, Some(_)) if !draft.is_guaranteed => Err(Code::AckUnavailable),
            (Ack::Disk, Some(journal)) if journal.is_failing() => Err(Code::DiskFailing),
            (Ack::Disk, Some(_)) => Ok(()),
            (Ack::Disk, None) | (Ack::Replicated, _) => Err(Code::AckUnavailable),
        }
    }
}
