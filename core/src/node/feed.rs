//! What each shard has still to be told, in the order of arrival. An entry waits only with the shards it concerns; the others
//! never see it. Bounded: a shard that falls a whole feed behind loses its entries and catches up from the logs.
mod tap;

pub use tap::Heard;
pub(super) use tap::Tap;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::message::{LogId, Message};

pub const SHARDS_MAX: usize = 64;
/// Subjects of which it is counted how many standard messages a fallen shard lost.
const LOST_MAX: usize = 65_536;

/// What a shard is told.
#[derive(Clone, Debug)]
pub enum Entry {
    Message(Arc<Message>),
    /// Somebody listens to `selector`, or nobody any more; it became so after `arrival`.
    Interest {
        selector: Arc<str>,
        has_subscribers: bool,
        arrival: u64,
    },
}

/// How far the slowest shard is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    pub entries: usize,
    pub bytes: usize,
}

/// Standard messages of one subject that a fallen shard was not told; no log has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub subject: Arc<str>,
    pub log: LogId,
    pub count: u32,
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Since it fell: what it lost.
    fall: Option<BTreeMap<Arc<str>, Lost>>,
}

#[derive(Debug)]
pub(super) struct Feed {
    queues: Vec<Queue>,
    entries_max: usize,
    bytes_max: usize,
    /// Shards that gave up; nothing is kept for them.
    pub(super) abandoned: u64,
    /// How often a shard fell a whole feed behind.
    pub(super) falls: u64,
}

impl Feed {
    pub(super) fn new(entries_max: usize, bytes_max: usize) -> Self {
        let queues = (0..SHARDS_MAX).map(|_| Queue::default()).collect();
        Self { queues, entries_max: entries_max.max(2), bytes_max: bytes_max.max(2), abandoned: 0, falls: 0 }
    }

    /// Tells every shard in `mask`; returns those that were told.
    pub(super) fn push(&mut self, mask: u64, entry: &Entry) -> u64 {
        let told = mask & !self.abandoned;
        let bytes = entry_bytes(entry);
        let mut left = told;
        while left != 0 {
            let shard = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(queue) = self.queues.get_mut(shard) else { continue };
            let is_full = queue.entries.len() >= self.entries_max || queue.bytes + bytes > self.bytes_max.max(bytes);
            if queue.fall.is_none() && is_full {
                queue.fall();
                self.falls += 1;
            }
            if let Some(lost) = &mut queue.fall {
                count_lost(lost, entry);
                continue;
            }
            queue.bytes += bytes;
            queue.entries.push_back(entry.clone());
        }
        told
    }

    /// Moves at most `max` entries of a shard to `out`. True when more remain.
    pub(super) fn drain(&mut self, shard: u8, out: &mut Vec<Entry>, max: usize) -> bool {
        let Some(queue) = self.queues.get_mut(usize::from(shard)) else { return false };
        let count = queue.entries.len().min(max);
        for entry in queue.entries.drain(..count) {
            queue.bytes -= entry_bytes(&entry);
            out.push(entry);
        }
        if queue.entries.is_empty() && queue.entries.capacity() > 65_536 {
            queue.entries = VecDeque::new();
        }
        !queue.entries.is_empty()
    }

    /// Everything that concerns the shard up to this arrival has been drained; `head` is the last one.
    pub(super) fn drained_to(&self, shard: u8, head: u64) -> u64 {
        match self.queues.get(usize::from(shard)).and_then(|queue| queue.entries.front()) {
            None => head,
            Some(Entry::Message(message)) => message.arrival - 1,
            Some(Entry::Interest { arrival, .. }) => *arrival,
        }
    }

    pub(super) fn lag(&self) -> Lag {
        self.queues.iter().fold(Lag::default(), |lag, queue| Lag {
            entries: lag.entries.max(queue.entries.len()),
            bytes: lag.bytes.max(queue.bytes),
        })
    }

    /// Whether a shard is half a feed behind.
    pub(super) fn is_congested(&self) -> bool {
        let Lag { entries, bytes } = self.lag();
        entries >= self.entries_max / 2 || bytes >= self.bytes_max / 2
    }

    /// Some: the shard lost its entries since it was last asked; from here on it is told again.
    pub(super) fn take_fall(&mut self, shard: u8) -> Option<Vec<Lost>> {
        let lost = self.queues.get_mut(usize::from(shard))?.fall.take()?;
        Some(lost.into_values().collect())
    }

    pub(super) fn abandon(&mut self, shard: u8) {
        self.abandoned |= super::listeners::bit(shard);
        if let Some(queue) = self.queues.get_mut(usize::from(shard)) {
            *queue = Queue::default();
        }
    }
}

impl Queue {
    fn fall(&mut self) {
        let mut lost = BTreeMap::new();
        self.entries.iter().for_each(|entry| count_lost(&mut lost, entry));
        *self = Self { fall: Some(lost), ..Self::default() };
    }
}

fn count_lost(lost: &mut BTreeMap<Arc<str>, Lost>, entry: &Entry) {
    let Entry::Message(message) = entry else { return };
    if message.sequence > 0 || lost.len() >= LOST_MAX && !lost.contains_key(&message.subject) {
        return;
    }
    let subject = &message.subject;
    let of_subject = lost.entry(Arc::clone(subject)).or_insert_with(|| Lost {
        subject: Arc::clone(subject),
        log: message.log,
        count: 0,
    });
    of_subject.count = of_subject.count.saturating_add(1);
}

fn entry_bytes(entry: &Entry) -> usize {
    match entry {
        Entry::Message(message) => message.cost_bytes(),
        Entry::Interest { selector, .. } => size_of::<Entry>() + selector.len(),
    }
}
