//! What each shard has still to be told, in the order of arrival. An entry waits only with the shards it concerns; the others
//! never see it. Bounded: a shard that falls a whole feed behind loses its entries and catches up from the logs.
use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::Message;

pub const SHARDS_MAX: usize = 64;

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

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
    has_fallen: bool,
}

#[derive(Debug)]
pub(super) struct Feed {
    queues: Vec<Queue>,
    entries_max: usize,
    bytes_max: usize,
    /// Shards that gave up; nothing is kept for them.
    abandoned: u64,
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
            if queue.has_fallen {
                continue;
            }
            if queue.entries.len() >= self.entries_max || queue.bytes + bytes > self.bytes_max.max(bytes) {
                *queue = Queue { has_fallen: true, ..Queue::default() };
                self.falls += 1;
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

    /// Whether the shard lost its entries since it was last asked; from here on it is told again.
    pub(super) fn take_fall(&mut self, shard: u8) -> bool {
        self.queues.get_mut(usize::from(shard)).is_some_and(|queue| std::mem::take(&mut queue.has_fallen))
    }

    pub(super) fn abandon(&mut self, shard: u8) {
        self.abandoned |= super::listeners::bit(shard);
        if let Some(queue) = self.queues.get_mut(usize::from(shard)) {
            *queue = Queue::default();
        }
    }
}

fn entry_bytes(entry: &Entry) -> usize {
    match entry {
        Entry::Message(message) => message.cost_bytes(),
        Entry::Interest { selector, .. } => size_of::<Entry>() + selector.len(),
    }
}
