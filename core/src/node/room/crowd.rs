//! How many connections the shards hold together: the limit is the node's, so that one shard is not refused what another
//! leaves. Counted where a connection comes and goes, never where a message does, and without the node's lock.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::node::SHARDS_MAX;

/// The counts; shared by all shards of a node.
#[derive(Clone, Debug)]
pub struct Crowd(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    all: AtomicUsize,
    of_shard: [AtomicUsize; SHARDS_MAX],
}

impl Default for Crowd {
    fn default() -> Self {
        Self(Arc::new(Counts { all: AtomicUsize::new(0), of_shard: [const { AtomicUsize::new(0) }; SHARDS_MAX] }))
    }
}

impl Crowd {
    /// One connection more of a shard's, unless there are `max` already.
    pub(crate) fn enter(&self, shard: u8, max: usize) -> bool {
        if self.0.all.fetch_add(1, Relaxed) >= max {
            self.0.all.fetch_sub(1, Relaxed);
            return false;
        }
        if let Some(count) = self.0.of_shard.get(usize::from(shard)) {
            count.fetch_add(1, Relaxed);
        }
        true
    }

    /// One of a shard's connections has gone.
    pub(crate) fn leave(&self, shard: u8) {
        if let Some(count) = self.0.of_shard.get(usize::from(shard)) {
            count.fetch_sub(1, Relaxed);
            self.0.all.fetch_sub(1, Relaxed);
        }
    }

    /// A shard gave up, and its connections with it.
    pub(crate) fn leave_all(&self, shard: u8) {
        if let Some(count) = self.0.of_shard.get(usize::from(shard)) {
            self.0.all.fetch_sub(count.swap(0, Relaxed), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_of_all_shards_together() {
        let crowd = Crowd::default();
        assert!((0..3).all(|_| crowd.enter(0, 4)) && crowd.enter(1, 4));
        assert!(!crowd.enter(0, 4) && !crowd.enter(1, 4));
        crowd.leave(0);
        assert!(crowd.enter(1, 4) && !crowd.enter(1, 4));
        crowd.leave_all(1);
        assert!(crowd.enter(0, 4) && crowd.enter(0, 4) && !crowd.enter(0, 4));
    }
}
