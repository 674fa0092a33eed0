//! One subject's bounded log: the latest consecutive messages, where numbering stands, the snapshot beside them, and who
//! listens. Owns what is kept and what of it can be served; limits are told from outside, so that all logs share them.
//! Messages are numbered on over all runs of the log (`sequence`); what a client sees is a position in one of them.
mod runs;

pub(super) use runs::{Change, Known};

use std::collections::VecDeque;
use std::sync::Arc;

use super::listeners::Listeners;
use super::names::Owner;
use super::snapshot::Latest;
use crate::account::Bucket;
use crate::command::GapReason;
use crate::message::{LogNumber, Message};

/// Kept messages: a box of its own only from the second one on.
#[expect(clippy::box_collection, reason = "16 bytes instead of 40 in every log that keeps one message")]
#[derive(Debug, Default)]
enum Kept {
    #[default]
    None,
    One(Arc<Message>),
    Many(Box<VecDeque<Arc<Message>>>),
}

#[derive(Debug)]
pub(super) struct Log {
    pub(super) subject: Arc<str>,
    kept: Kept,
    pub(super) epoch: u64,
    /// The feed's last arrival when the log began: only later ones can be its own.
    pub(super) since_arrival: u64,
    /// Runs before this one that the journal remembers.
    past: Option<Box<runs::Past>>,
    /// The last number that was given; 0 none.
    sequence: u64,
    /// Arrival of the last message; 0 none.
    last_arrival: u64,
    /// Arrival of the last message that is no longer kept.
    evicted_arrival: u64,
    /// Up to this sequence messages went because the log was full, not because they were old.
    overrun_to: u64,
    bytes: usize,
    /// So many of the oldest are kept only because they are owed.
    held: u32,
    pub(super) latest: Latest,
    pub(super) listeners: Listeners,
    /// Shards whose patterns hold the subject, as of this version of the directory.
    pub(super) pattern_mask: u64,
    pub(super) pattern_version: u32,
    pub(super) policy: u16,
    /// What was taken of the rate at which one may publish here.
    pub(super) published: Bucket,
    /// Somebody named it as the subject of replies.
    pub(super) is_reply: bool,
    /// Whose place it takes.
    pub(super) owner: Owner,
    /// It was named as the place for replies before anything was published on it.
    pub(super) began_as_reply: bool,
    /// Watchers think that somebody listens.
    pub(super) is_announced: bool,
    /// It waits for the moment when watchers hear that nobody does.
    pub(super) is_leaving: bool,
    /// The journal has nothing of the subject from before the log's first number.
    pub(super) is_all: bool,
    /// The journal's file of snapshots has one of the subject, or is to have one.
    pub(super) is_in_file: bool,
    /// A standard message is in the snapshot, or fields of several messages are: the journal's rows may not hold it.
    pub(super) is_loose: bool,
    /// The snapshot was lost: patches make none before somebody says what the whole is.
    pub(super) lacks_base: bool,
}

impl Log {
    pub(super) fn new(subject: Arc<str>, epoch: u64, since_arrival: u64, policy: u16) -> Self {
        Self {
            subject,
            kept: Kept::None,
            epoch,
            past: None,
            since_arrival,
            sequence: 0,
            last_arrival: 0,
            evicted_arrival: 0,
            overrun_to: 0,
            bytes: 0,
            held: 0,
            latest: Latest::default(),
            listeners: Listeners::None,
            pattern_mask: 0,
            pattern_version: 0,
            policy,
            published: Bucket::default(),
            is_reply: false,
            owner: Owner::default(),
            began_as_reply: false,
            is_announced: false,
            is_leaving: false,
            is_all: false,
            is_in_file: false,
            is_loose: false,
            lacks_base: false,
        }
    }

    /// The last number that was given.
    pub(super) fn number(&self) -> u64 {
        self.sequence
    }

    /// Where the next message goes.
    pub(super) fn next(&self) -> LogNumber {
        let follows = self.past.as_ref().map(|past| past.follows());
        LogNumber { epoch: self.epoch, sequence: self.sequence + 1, follows, accepted_us: 0 }
    }

    /// Numbers up to here are not here: the next is the one after, and came after this arrival. What was kept has been let go.
    pub(super) fn jump(&mut self, number: u64, arrival: u64) {
        self.sequence = number;
        self.evicted_arrival = self.evicted_arrival.max(arrival);
    }

    pub(super) fn last_arrival(&self) -> u64 {
        self.last_arrival
    }

    pub(super) fn evicted_arrival(&self) -> u64 {
        self.evicted_arrival
    }

    pub(super) fn len(&self) -> usize {
        match &self.kept {
            Kept::None => 0,
            Kept::One(_) => 1,
            Kept::Many(many) => many.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number before the oldest kept: who stands there, or later, can be served everything after.
    pub(super) fn base(&self) -> u64 {
        self.sequence - self.len() as u64
    }

    /// Whether nothing would be lost with it but its numbering.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.kept, Kept::None) && self.latest.is_none() && self.listeners.is_empty() && !self.is_leaving
    }

    pub(super) fn push(&mut self, message: Arc<Message>) {
        self.sequence = message.sequence;
        self.last_arrival = message.arrival;
        self.bytes += message.cost_bytes();
        self.kept = match std::mem::take(&mut self.kept) {
            Kept::None => Kept::One(message),
            Kept::One(first) => {
                let mut many = VecDeque::with_capacity(4);
                many.extend([first, message]);
                Kept::Many(Box::new(many))
            }
            Kept::Many(mut many) => {
                many.push_back(message);
                Kept::Many(many)
            }
        };
    }

    pub(super) fn oldest(&self) -> Option<&Arc<Message>> {
        self.nth(0)
    }

    /// The message of a kept number.
    pub(super) fn get(&self, sequence: u64) -> Option<&Arc<Message>> {
        self.nth(usize::try_from(sequence.checked_sub(self.base() + 1)?).ok()?)
    }

    /// The full number of which the index kept the low half.
    pub(super) fn widen(&self, sequence_low: u32) -> u64 {
        self.sequence.saturating_sub(u64::from((self.sequence as u32).wrapping_sub(sequence_low)))
    }

    /// When the last message came that is still known; 0 none.
    pub(super) fn last_ms(&self) -> u64 {
        let newest = self.len().checked_sub(1).and_then(|index| self.nth(index));
        newest.or(self.latest.last()).map_or(0, |message| message.time_ms)
    }

    /// How many of the kept have an arrival up to this one.
    pub(super) fn count_until(&self, arrival: u64) -> usize {
        match &self.kept {
            _ if arrival >= self.last_arrival => self.len(),
            Kept::Many(many) => many.partition_point(|message| message.arrival <= arrival),
            _ => 0,
        }
    }

    pub(super) fn nth(&self, index: usize) -> Option<&Arc<Message>> {
        match &self.kept {
            Kept::None => None,
            Kept::One(one) => (index == 0).then_some(one),
            Kept::Many(many) => many.get(index),
        }
    }

    /// Notes that the oldest messages up to `count`, or that arrived up to `cutoff`, are kept only because they are owed; returns the bytes that
    /// this adds.
    pub(super) fn note_held(&mut self, count: usize, cutoff: u64) -> usize {
        let mut bytes = 0;
        while let Some(next) = self.nth(self.held as usize)
            && ((self.held as usize) < count || next.arrival <= cutoff)
        {
            bytes += next.cost_bytes();
            self.held += 1;
        }
        bytes
    }

    /// Whether the oldest is kept only because it is owed; it goes next.
    pub(super) fn release_held(&mut self) -> bool {
        let is_held = self.held > 0;
        self.held = self.held.saturating_sub(1);
        is_held
    }

    /// Lets the oldest message go; tells the bytes this frees, 0 where the snapshot still holds it.
    pub(super) fn evict(&mut self, reason: GapReason) -> usize {
        let message = match &mut self.kept {
            Kept::Many(many) => many.pop_front(),
            _ => match std::mem::take(&mut self.kept) {
                Kept::One(one) => Some(one),
                _ => None,
            },
        };
        let Some(message) = message else { return 0 };
        if let Kept::Many(many) = &mut self.kept {
            if many.is_empty() {
                self.kept = Kept::None;
            } else if many.capacity() > 64 && many.len() < many.capacity() / 4 {
                many.shrink_to(many.len() * 2);
            }
        }
        self.evicted_arrival = message.arrival;
        if reason == GapReason::Overrun {
            self.overrun_to = message.sequence;
        }
        let cost = message.cost_bytes();
        self.bytes -= cost;
        let is_shown = self.latest.last().is_some_and(|last| Arc::ptr_eq(last, &message));
        if is_shown { 0 } else { cost }
    }

    /// Bytes of the snapshot's last message, where it alone still holds it.
    pub(super) fn lonely_bytes(&self) -> usize {
        self.latest.last().filter(|last| last.sequence <= self.base()).map_or(0, |last| last.cost_bytes())
    }

    /// Bytes of a kept message that the snapshot holds as well.
    pub(super) fn shown_bytes(&self) -> usize {
        self.latest.last().filter(|last| last.sequence > self.base()).map_or(0, |last| last.cost_bytes())
    }

    /// Why what follows `sequence` is missing.
    pub(super) fn gap_reason(&self, sequence: u64) -> GapReason {
        if sequence < self.overrun_to { GapReason::Overrun } else { GapReason::Expired }
    }
}
