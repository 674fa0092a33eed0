//! How many connections the shards hold together: the limit is the node's, so that one shard is not refused what another
//! leaves. Its last fifth is for addresses that have less than a hundredth of it. Counted where a connection comes and goes, never
//! where a message does, and without the node's lock.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::node::SHARDS_MAX;
use crate::node::names::is_within;

/// Counts of addresses in a row. Where two addresses meet in both rows, each is counted as both: never as fewer than it has.
const ROW: usize = 4_096;
const ROW_BITS: u32 = ROW.trailing_zeros();

/// The counts; shared by all shards of a node.
#[derive(Clone, Debug)]
pub struct Crowd(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    all: AtomicUsize,
    of_shard: [AtomicUsize; SHARDS_MAX],
    of_address: Box<[[AtomicU32; ROW]; 2]>,
}

impl Default for Crowd {
    fn default() -> Self {
        Self(Arc::new(Counts {
            all: AtomicUsize::new(0),
            of_shard: [const { AtomicUsize::new(0) }; SHARDS_MAX],
            of_address: Box::new([const { [const { AtomicU32::new(0) }; ROW] }; 2]),
        }))
    }
}

impl Crowd {
    /// One connection more of a shard's from an address (a hash; 0: one that has no share), unless there are `max` already or what is left
    /// is for others.
    pub(crate) fn enter(&self, shard: u8, max: usize, address: u32) -> bool {
        let before = self.0.all.fetch_add(1, Relaxed);
        if before >= max || !self.enter_address(address, before, max) {
            self.0.all.fetch_sub(1, Relaxed);
            return false;
        }
        if let Some(count) = self.0.of_shard.get(usize::from(shard)) {
            count.fetch_add(1, Relaxed);
        }
        true
    }

    /// A connection that is counted turns out to come from another address; false where that has its share, and it is counted as nobody's.
    pub(crate) fn move_address(&self, from: u32, to: u32, max: usize) -> bool {
        self.leave_address(from);
        self.enter_address(to, self.0.all.load(Relaxed).saturating_sub(1), max)
    }

    fn enter_address(&self, address: u32, before: usize, max: usize) -> bool {
        if address == 0 {
            return true;
        }
        let held = self.counts_of(address).map(|count| count.fetch_add(1, Relaxed)).min();
        let is_in = is_within(held.unwrap_or(0) as usize, before, max);
        if !is_in {
            self.leave_address(address);
        }
        is_in
    }

    fn leave_address(&self, address: u32) {
        if address != 0 {
            self.counts_of(address).for_each(|count| {
                count.fetch_sub(1, Relaxed);
            });
        }
    }

    fn counts_of(&self, address: u32) -> impl Iterator<Item = &AtomicU32> {
        let places = [address as usize % ROW, (address >> ROW_BITS) as usize % ROW];
        self.0.of_address.iter().zip(places).filter_map(|(row, place)| row.get(place))
    }

    /// One of a shard's connections, from an address, has gone.
    pub(crate) fn leave(&self, shard: u8, address: u32) {
        self.leave_address(address);
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
        assert!((0..3).all(|_| crowd.enter(0, 4, 7)) && crowd.enter(1, 4, 7));
        assert!(!crowd.enter(0, 4, 7) && !crowd.enter(1, 4, 7));
        crowd.leave(0, 7);
        assert!(crowd.enter(1, 4, 7) && !crowd.enter(1, 4, 7));
        crowd.leave_all(1);
        assert!(crowd.enter(0, 4, 7) && crowd.enter(0, 4, 7) && !crowd.enter(0, 4, 7));
    }

    #[test]
    fn the_last_fifth_is_for_addresses_with_few() {
        let crowd = Crowd::default();
        let (greedy, other, third) = (0x0123_4567, 0x0765_4321, 0x0555_5555);
        assert_eq!((0..1_000).take_while(|_| crowd.enter(0, 1_000, greedy)).count(), 800);
        assert_eq!((0..1_000).take_while(|_| crowd.enter(0, 1_000, other)).count(), 10);
        assert!(crowd.enter(0, 1_000, 0), "who has no share is let in as long as there is room");
        assert!(!crowd.move_address(0, greedy, 1_000) && crowd.move_address(0, third, 1_000));
        crowd.leave(0, other);
        assert!(crowd.enter(0, 1_000, other) && !crowd.enter(0, 1_000, other));
        assert!((0..400).all(|_| {
            crowd.leave(0, greedy);
            true
        }));
        assert!(crowd.enter(0, 1_000, greedy));
    }
}
