//! How many connections the shards hold together: the limit is the node's, so that one shard is not refused what another
//! leaves. Its last fifth is for addresses that have less than a hundredth of it. Counted where a connection comes and goes, never
//! where a message does, and without the node's lock.
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::node::SHARDS_MAX;
use crate::node::names::is_within;

/// Counts of addresses in a row.
const ROW: usize = 4_096;
const ROW_BITS: u32 = ROW.trailing_zeros();

/// The counts; shared by all shards of a node.
#[derive(Clone, Debug)]
pub struct ConnectionCount(Arc<Counts>);

/// Where two addresses meet in both rows, each is counted as both: never as fewer than it has.
type Addresses = Box<[[AtomicU32; ROW]; 2]>;

#[derive(Debug)]
struct Counts {
    all: AtomicUsize,
    of_shard: [AtomicUsize; SHARDS_MAX],
    of_address: Addresses,
    /// The same for each shard that ever had a connection, so that what it has can be given back without it.
    of_shard_address: [OnceLock<Addresses>; SHARDS_MAX],
}

fn no_addresses() -> Addresses {
    Box::new([const { [const { AtomicU32::new(0) }; ROW] }; 2])
}

fn counts_in(addresses: &Addresses, address: u32) -> impl Iterator<Item = &AtomicU32> {
    let places = [address as usize % ROW, (address >> ROW_BITS) as usize % ROW];
    addresses.iter().zip(places).filter_map(|(row, place)| row.get(place))
}

impl Default for ConnectionCount {
    fn default() -> Self {
        Self(Arc::new(Counts {
            all: AtomicUsize::new(0),
            of_shard: [const { AtomicUsize::new(0) }; SHARDS_MAX],
            of_address: no_addresses(),
            of_shard_address: [const { OnceLock::new() }; SHARDS_MAX],
        }))
    }
}

impl ConnectionCount {
    /// One connection more of a shard's from an address (a hash; 0: one that has no share), unless there are `max` already or what is left
    /// is for others.
    pub(crate) fn enter(&self, shard: u8, max: usize, address: u32) -> bool {
        let before = self.0.all.fetch_add(1, Relaxed);
        if before >= max || !self.enter_address(shard, address, before, max) {
            self.0.all.fetch_sub(1, Relaxed);
            return false;
        }
        if let Some(count) = self.0.of_shard.get(usize::from(shard)) {
            count.fetch_add(1, Relaxed);
        }
        true
    }

    /// A connection that is counted turns out to come from another address; false where that has its share, and it is counted as nobody's.
    pub(crate) fn move_address(&self, shard: u8, from: u32, to: u32, max: usize) -> bool {
        self.leave_address(shard, from);
        self.enter_address(shard, to, self.0.all.load(Relaxed).saturating_sub(1), max)
    }

    fn enter_address(&self, shard: u8, address: u32, before: usize, max: usize) -> bool {
        if address == 0 {
            return true;
        }
        self.counts_of_shard(shard, address).for_each(|count| {
            count.fetch_add(1, Relaxed);
        });
        let held = counts_in(&self.0.of_address, address).map(|count| count.fetch_add(1, Relaxed)).min();
        let is_in = is_within(held.unwrap_or(0) as usize, before, max);
        if !is_in {
            self.leave_address(shard, address);
        }
        is_in
    }

    fn leave_address(&self, shard: u8, address: u32) {
        if address != 0 {
            self.counts_of_shard(shard, address).chain(counts_in(&self.0.of_address, address)).for_each(|count| {
                count.fetch_sub(1, Relaxed);
            });
        }
    }

    fn counts_of_shard(&self, shard: u8, address: u32) -> impl Iterator<Item = &AtomicU32> {
        let addresses = self.0.of_shard_address.get(usize::from(shard)).map(|all| all.get_or_init(no_addresses));
        addresses.into_iter().flat_map(move |addresses| counts_in(addresses, address))
    }

    /// One of a shard's connections, from an address, has gone.
    pub(crate) fn leave(&self, shard: u8, address: u32) {
        self.leave_address(shard, address);
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
        let addresses = self.0.of_shard_address.get(usize::from(shard)).and_then(OnceLock::get);
        let own = addresses.into_iter().flat_map(|rows| rows.iter().flatten());
        for (own, all) in own.zip(self.0.of_address.iter().flatten()) {
            all.fetch_sub(own.swap(0, Relaxed), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_of_all_shards_together() {
        let connection_count = ConnectionCount::default();
        assert!((0..3).all(|_| connection_count.enter(0, 4, 7)) && connection_count.enter(1, 4, 7));
        assert!(!connection_count.enter(0, 4, 7) && !connection_count.enter(1, 4, 7));
        connection_count.leave(0, 7);
        assert!(connection_count.enter(1, 4, 7) && !connection_count.enter(1, 4, 7));
        connection_count.leave_all(1);
        assert!(connection_count.enter(0, 4, 7) && connection_count.enter(0, 4, 7) && !connection_count.enter(0, 4, 7));
    }

    #[test]
    fn a_shard_that_gives_up_gives_back_the_shares_of_its_addresses() {
        let connection_count = ConnectionCount::default();
        let (greedy, third) = (0x0123_4567, 0x0555_5555);
        assert!((0..400).all(|_| connection_count.enter(0, 1_000, greedy) && connection_count.enter(1, 1_000, greedy)));
        assert!(!connection_count.enter(0, 1_000, greedy));
        connection_count.leave_all(1);
        assert!((0..400).all(|_| connection_count.enter(0, 1_000, third)));
        assert!((0..391).all(|_| {
            connection_count.leave(0, greedy);
            true
        }));
        assert!(
            connection_count.enter(0, 1_000, greedy) && !connection_count.enter(0, 300, greedy),
            "nine are left of this address"
        );
    }

    #[test]
    fn the_last_fifth_is_for_addresses_with_few() {
        let connection_count = ConnectionCount::default();
        let (greedy, other, third) = (0x0123_4567, 0x0765_4321, 0x0555_5555);
        assert_eq!((0..1_000).take_while(|_| connection_count.enter(0, 1_000, greedy)).count(), 800);
        assert_eq!((0..1_000).take_while(|_| connection_count.enter(0, 1_000, other)).count(), 10);
        assert!(connection_count.enter(0, 1_000, 0), "who has no share is let in as long as there is room");
        assert!(
            !connection_count.move_address(0, 0, greedy, 1_000) && connection_count.move_address(0, 0, third, 1_000)
        );
        connection_count.leave(0, other);
        assert!(connection_count.enter(0, 1_000, other) && !connection_count.enter(0, 1_000, other));
        assert!((0..400).all(|_| {
            connection_count.leave(0, greedy);
            true
        }));
        assert!(connection_count.enter(0, 1_000, greedy));
    }
}
