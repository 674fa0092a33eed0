//! Shares of a table that all holders fill together: its last fifth is for those who hold less than a hundredth of it, so that nobody
//! alone can keep the others out. Who has no name counts by its address. Owns the counts; holders are kept as keyed hashes.
use std::collections::HashMap;

use crate::codes::Code;
use crate::holder::Holder;
use crate::node::Node;

/// Tables of fewer places are not shared out.
const PLACES_MIN: usize = 100;

/// Whose a place is; 0: the node's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner(u64);

/// Whether whoever has `held` places of `max`, of which `len` are taken, may have one more.
pub(crate) fn is_within(held: usize, len: usize, max: usize) -> bool {
    max < PLACES_MIN || len < max - max / 5 || held < max / 100
}

/// How many places each holder has.
#[derive(Debug, Default)]
pub(crate) struct Shares(HashMap<Owner, u64>);

impl Shares {
    /// Whether a holder may have one more place of `max`, of which `len` are taken.
    pub(crate) fn check(&self, owner: Owner, len: usize, max: usize) -> Result<(), Code> {
        let held = self.0.get(&owner).map_or(0, |count| *count as usize);
        if owner == Owner::default() || is_within(held, len, max) { Ok(()) } else { Err(Code::ShareExceeded) }
    }

    pub(crate) fn add(&mut self, owner: Owner) {
        self.add_many(owner, 1);
    }

    pub(crate) fn remove(&mut self, owner: Owner) {
        self.remove_many(owner, 1);
    }

    /// Where places are of unequal size: so many units of one.
    pub(crate) fn add_many(&mut self, owner: Owner, units: u64) {
        if owner != Owner::default() {
            *self.0.entry(owner).or_default() += units;
        }
    }

    pub(crate) fn remove_many(&mut self, owner: Owner, units: u64) {
        if let Some(count) = self.0.get_mut(&owner) {
            *count = count.saturating_sub(units);
            if *count == 0 {
                self.0.remove(&owner);
            }
        }
    }
}

impl Node {
    /// Whose places a holder takes; `origin` tells the addresses of those apart who have no name.
    pub fn owner_of(&self, holder: &Holder, origin: u64) -> Owner {
        let Holder { tenant, authority, identity } = holder;
        let origin = if holder.is_anonymous() { origin.to_le_bytes() } else { [0; 8] };
        let digest =
            self.keys.digest(&[tenant.as_bytes(), authority.as_bytes(), identity.as_bytes(), &origin, b"owner"]);
        Owner((digest as u64).max(1))
    }

    /// Whoever subscribes next is this: what begins for it is counted as its own.
    pub fn ask_as(&mut self, owner: Owner) {
        self.asking = owner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fifth_is_for_who_has_less_than_a_hundredth() {
        let (mut shares, greedy, small) = (Shares::default(), Owner(1), Owner(2));
        let mut len = 0;
        while shares.check(greedy, len, 1_000).is_ok() {
            shares.add(greedy);
            len += 1;
        }
        assert_eq!(len, 800);
        let before = len;
        while shares.check(small, len, 1_000).is_ok() {
            shares.add(small);
            len += 1;
        }
        assert_eq!(len - before, 10);
        assert!(shares.check(Owner::default(), len, 1_000).is_ok(), "the node's own are not counted");
        for _ in 0..795 {
            shares.remove(greedy);
        }
        assert!(shares.check(greedy, 990, 1_000).is_ok());
        assert!(shares.check(greedy, 99, 99).is_ok() && Shares::default().check(small, 999, 1_000).is_ok());
    }
}
