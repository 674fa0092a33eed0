//! Subjects that somebody awaits replies on but that have no log yet: what comes there is not retained unless asked for.
use std::collections::VecDeque;

use hashbrown::HashTable;

const REPLIES_MAX: usize = 16_384;

/// A bounded set of hashes; the oldest go.
#[derive(Debug, Default)]
pub(super) struct Replies {
    order: VecDeque<u64>,
    known: HashTable<u64>,
}

impl Replies {
    pub(super) fn insert(&mut self, hash: u64) {
        if self.known.find(hash, |known| *known == hash).is_some() {
            return;
        }
        if self.order.len() >= REPLIES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.remove(oldest);
        }
        self.order.push_back(hash);
        self.known.insert_unique(hash, hash, |known| *known);
    }

    /// Whether it was there. Its turn in the ring passes by itself.
    pub(super) fn take(&mut self, hash: u64) -> bool {
        self.remove(hash)
    }

    fn remove(&mut self, hash: u64) -> bool {
        match self.known.find_entry(hash, |known| *known == hash) {
            Ok(found) => {
                found.remove();
                true
            }
            Err(_) => false,
        }
    }
}
