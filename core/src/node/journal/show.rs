//! From numbered to seen. A message is shown when it is accepted, but for subjects whose messages nobody is to see before they
//! are on the disk: those wait here, and whatever was numbered behind them waits too, so that what is seen is in order of
//! arrival, always. Where the disk fails nobody waits for it.
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::super::Node;
use super::super::feed::Entry;
use super::super::room::{Bounds, OwedBounds, drop_snapshot, is_expired, trim};
use super::super::snapshot::Latest;
use crate::message::Message;

/// Messages that one append lets go where they are too many or too old; the sweep goes on.
const TRIM_EACH: usize = 16;
/// What waits to be seen before publishers are not read.
const UNSEEN_MAX: usize = 65_536;
const UNSEEN_BYTES_MAX: usize = 67_108_864;

/// One that waits.
#[derive(Debug)]
struct Waiting {
    message: Arc<Message>,
    /// It must be on the disk.
    needs_disk: bool,
}

#[derive(Debug, Default)]
pub(in crate::node) struct Unseen {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// What waits of each log, by slot.
    logs: HashMap<u32, Behind>,
}

/// What waits of one log: its messages, and standard messages that will be its state.
#[derive(Debug, Default)]
struct Behind {
    messages: usize,
    /// The last number among them; 0 none.
    number: u64,
    /// The snapshot as it will be; none, as it is.
    state: Option<Latest>,
    /// An operator took back what arrived up to here.
    purged: u64,
}

impl Unseen {
    pub(in crate::node) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(in crate::node) fn concerns(&self, slot: u32) -> bool {
        !self.logs.is_empty() && self.logs.contains_key(&slot)
    }

    /// The last number that was given in a log, if that waits.
    pub(in crate::node) fn number(&self, slot: u32) -> Option<u64> {
        if self.logs.is_empty() {
            None
        } else {
            self.logs.get(&slot).map(|behind| behind.number).filter(|last| *last > 0)
        }
    }

    /// What a log's snapshot will be once all is seen, where that is another.
    pub(in crate::node) fn state(&self, slot: u32) -> Option<&Latest> {
        if self.logs.is_empty() { None } else { self.logs.get(&slot)?.state.as_ref() }
    }

    /// An operator takes back what waits of a log, up to an arrival.
    pub(in crate::node) fn purge(&mut self, slot: u32, end: u64) {
        if let Some(behind) = self.logs.get_mut(&slot) {
            (behind.purged, behind.state) = (end, Some(Latest::default()));
        }
    }

    pub(in crate::node) fn holds_publishers(&self) -> bool {
        self.waiting.len() >= UNSEEN_MAX || self.bytes >= UNSEEN_BYTES_MAX
    }
}

/// Whether a message will be in its log, or be its state.
fn is_kept(message: &Message) -> bool {
    message.sequence > 0 || message.is_retained
}

impl Node {
    /// The last arrival that was given.
    pub(in crate::node) fn numbered(&self) -> u64 {
        self.index.head() + self.unseen.waiting.len() as u64
    }

    /// Shows a numbered message, or has it wait; returns the shards to wake.
    pub(in crate::node) fn offer(&mut self, message: Arc<Message>, needs_disk: bool) -> u64 {
        if !needs_disk && self.unseen.is_empty() {
            return self.show(message);
        }
        self.unseen.bytes += message.cost_bytes();
        if is_kept(&message) {
            self.note_behind(&message);
        }
        self.unseen.waiting.push_back(Waiting { message, needs_disk });
        0
    }

    /// Shows what waits for the disk no longer; returns the shards to wake.
    pub(in crate::node) fn show_until(&mut self, synced: u64, is_failing: bool) -> u64 {
        let mut mask = 0;
        while let Some(first) = self.unseen.waiting.front()
            && (is_failing || !first.needs_disk || first.message.arrival <= synced)
            && let Some(Waiting { message, .. }) = self.unseen.waiting.pop_front()
        {
            self.unseen.bytes -= message.cost_bytes();
            let (mut purged, log, arrival) = (0, message.log, message.arrival);
            if let Some(behind) = self.unseen.logs.get_mut(&message.log.slot).filter(|_| is_kept(&message)) {
                purged = behind.purged;
                behind.messages -= 1;
                if behind.messages == 0 {
                    self.unseen.logs.remove(&message.log.slot);
                }
            }
            mask |= self.show(message);
            if arrival <= purged {
                self.take_back(log, purged);
            }
        }
        mask
    }

    /// Notes what a message that waits will do to its log.
    fn note_behind(&mut self, message: &Arc<Message>) {
        let behind = self.unseen.logs.entry(message.log.slot).or_default();
        behind.messages += 1;
        behind.number = behind.number.max(message.sequence);
        let Some(log) = self.names.get(message.log).filter(|_| message.is_retained) else { return };
        let policy = self.policies.get(log.policy);
        let is_old = is_expired(log, self.ages.cutoff(policy.snapshot_age));
        let state = behind.state.get_or_insert_with(|| if is_old { Latest::default() } else { log.latest.clone() });
        let mut own_bytes = state.held_bytes();
        if message.is_removal {
            state.clear(&mut own_bytes);
        } else if policy.keeps_snapshot && !(log.lacks_base && message.is_patch && state.is_none()) {
            state.update(message, &mut own_bytes);
        }
    }

    /// Into its log, the index, the snapshot and the feed; a standard message into the feed alone.
    fn show(&mut self, message: Arc<Message>) -> u64 {
        let mask = if message.sequence > 0 {
            self.keep(&message)
        } else {
            self.index.push_nobody();
            if message.is_retained {
                self.keep_state(&message);
            }
            let listeners = self.names.get(message.log).map_or(0, |log| log.listeners.mask());
            listeners | self.directory.mask(&message.subject)
        };
        let told = if mask == 0 { 0 } else { self.feed.push(mask, &Entry::Message(message)) };
        self.trim_index();
        told
    }

    /// Into its log, the index and the snapshot; returns the shards that listen.
    pub(in crate::node) fn keep(&mut self, message: &Arc<Message>) -> u64 {
        let Some(log) = self.names.get_mut(message.log) else {
            self.index.push_nobody();
            return 0;
        };
        self.index.push(message.log.slot, message.sequence);
        self.counts.bytes += message.cost_bytes();
        self.counts.messages += 1;
        log.push(Arc::clone(message));
        if message.is_retained {
            self.keep_state(message);
        }
        let Some(log) = self.names.get_mut(message.log) else { return 0 };
        let policy = self.policies.get(log.policy);
        let (messages_max, cutoff) = (policy.log_messages_max, self.ages.cutoff(policy.log_age));
        let bounds = Bounds { messages_max, cutoff, owed: OwedBounds::of(&self.limits, policy) };
        trim(log, bounds, TRIM_EACH, &self.owed, &mut self.counts, &mut self.skipped);
        if log.pattern_version != self.directory.version() {
            log.pattern_version = self.directory.version();
            log.pattern_mask = self.directory.mask(&message.subject);
        }
        log.listeners.mask() | log.pattern_mask
    }

    /// Takes a retained message into its subject's snapshot, or the snapshot away.
    pub(in crate::node) fn keep_state(&mut self, message: &Arc<Message>) {
        let Some(log) = self.names.get_mut(message.log) else { return };
        let policy = self.policies.get(log.policy);
        if message.is_removal || is_expired(log, self.ages.cutoff(policy.snapshot_age)) {
            drop_snapshot(log, &mut self.counts, &mut self.states);
        }
        log.lacks_base &= message.is_patch && !message.is_removal;
        if message.is_removal || !policy.keeps_snapshot || log.lacks_base {
            return;
        }
        self.counts.bytes -= log.lonely_bytes();
        self.counts.snapshots += usize::from(log.latest.is_none());
        log.latest.update(message, &mut self.counts.snapshot_bytes);
        self.counts.bytes += log.lonely_bytes();
        log.is_loose = message.sequence == 0 || log.latest.has_merged_fields() || log.is_loose && message.is_patch;
        if log.is_loose && policy.journals {
            self.states.note(log);
        }
        if self.counts.snapshot_bytes > self.limits.snapshots_bytes_max {
            self.make_snapshot_room(message.log.slot);
        }
    }
}
