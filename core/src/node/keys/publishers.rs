//! Publishers that number their publishes: a publish that is sent again is found by its number, however many others came meanwhile.
//! Scoped by (holder, publisher), for all subjects. Owns which numbers are remembered and for how long; each publisher has a window
//! above its floor, all together have room for so many numbers each, and who has no connection is forgotten by age.
use std::collections::{HashMap, VecDeque};

use super::Known;
use crate::codes::Code;
use crate::command::Numbered;
use crate::holder::Holder;
use crate::node::Node;
use crate::node::listeners::bit;
use crate::node::names::{Owner, Shares};
use crate::position::Now;

/// Numbers that a publisher may have remembered whatever others do.
const NUMBERS_EACH: usize = 16;
/// Room for so many numbers is kept when most have been given up.
const SPARE_MAX: usize = 32;

#[derive(Debug)]
struct Publisher {
    owner: Owner,
    /// The shards of its connections, each as often as it has one.
    connections: Vec<u8>,
    /// Monotonic: when it last connected, left or published; what came back from the journal may be older than the clock.
    used_ms: i64,
    is_queued: bool,
    /// All publishes from this number on were first sent while it was remembered.
    known_from: u64,
    /// Of the numbers below it nothing is known.
    window: u64,
    /// In order of their numbers.
    known: VecDeque<(u64, Known)>,
}

/// The bounds of the table, from the limits.
#[derive(Clone, Copy, Debug)]
pub(in crate::node) struct Bounds {
    pub(in crate::node) publishers_max: usize,
    pub(in crate::node) age_ms_max: u64,
    /// Numbers of one publisher from its floor on.
    pub(in crate::node) numbers_max: usize,
}

#[derive(Debug, Default)]
pub(in crate::node) struct Publishers {
    entries: HashMap<u128, Publisher>,
    /// Those without a connection, each once, with the time at which it was put here.
    idle: VecDeque<(i64, u128)>,
    numbers: usize,
    shares: Shares,
}

impl Publishers {
    pub(in crate::node) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A connection of this publisher; `first` is the first number that it has not used. False: there is no room for it.
    pub(in crate::node) fn attach(
        &mut self,
        scope: u128,
        (shard, owner): (u8, Owner),
        first: Option<u64>,
        now_ms: i64,
        bounds: Bounds,
    ) -> bool {
        if !self.entries.contains_key(&scope) && self.add(scope, owner, now_ms, bounds).is_err() {
            return false;
        }
        let Some(entry) = self.entries.get_mut(&scope) else { return false };
        entry.known_from = entry.known_from.min(first.unwrap_or(u64::MAX));
        entry.connections.push(shard);
        true
    }

    pub(in crate::node) fn detach(&mut self, scope: u128, shard: u8, now_ms: i64) {
        if let Some(entry) = self.entries.get_mut(&scope) {
            if let Some(place) = entry.connections.iter().position(|of| *of == shard) {
                entry.connections.swap_remove(place);
            }
            entry.used_ms = now_ms;
            self.queue(scope, now_ms);
        }
    }

    /// The connections of these shards are gone without a word.
    pub(in crate::node) fn abandon(&mut self, shards: u64, now_ms: i64) {
        let mut left = Vec::new();
        for (scope, entry) in &mut self.entries {
            let before = entry.connections.len();
            entry.connections.retain(|shard| shards & bit(*shard) == 0);
            if entry.connections.len() < before {
                entry.used_ms = now_ms;
                left.push(*scope);
            }
        }
        left.into_iter().for_each(|scope| self.queue(scope, now_ms));
    }

    /// What is known of a numbered publish: none, it is new. `is_same` judges what is remembered of its content.
    pub(in crate::node) fn find(
        &mut self,
        scope: u128,
        numbered: Numbered,
        is_same: impl Fn(u128) -> bool,
    ) -> Result<Option<Known>, Code> {
        let Some(entry) = self.entries.get_mut(&scope) else {
            return if numbered.is_again { Err(Code::RepeatUnknown) } else { Ok(None) };
        };
        while entry.known.front().is_some_and(|(number, _)| *number < numbered.floor) {
            entry.known.pop_front();
            self.numbers -= 1;
        }
        if entry.known.capacity() > SPARE_MAX && entry.known.len() < entry.known.capacity() / 4 {
            entry.known.shrink_to(entry.known.len() * 2);
        }
        entry.window = entry.window.max(numbered.floor);
        if numbered.number < entry.window {
            return Err(Code::NumberTooOld);
        }
        let found = entry.known.binary_search_by_key(&numbered.number, |(number, _)| *number).ok();
        match found.and_then(|place| entry.known.get(place)) {
            Some((_, known)) if is_same(known.content) => Ok(Some(*known)),
            Some(_) => Err(Code::KeyConflict),
            None if numbered.is_again && numbered.number < entry.known_from => Err(Code::RepeatUnknown),
            None => Ok(None),
        }
    }

    /// All numbers below the floor are settled, also of a publisher that has just become known.
    pub(in crate::node) fn settle(&mut self, scope: u128, floor: u64) {
        if let Some(entry) = self.entries.get_mut(&scope) {
            entry.window = entry.window.max(floor);
        }
    }

    /// Remembers a publish that was accepted.
    pub(in crate::node) fn insert(&mut self, scope: u128, number: u64, known: Known, now_ms: i64, bounds: Bounds) {
        let Some(entry) = self.entries.get_mut(&scope) else { return };
        (entry.used_ms, entry.known_from) = (entry.used_ms.max(now_ms), entry.known_from.min(number));
        match entry.known.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(_) => return,
            Err(place) => entry.known.insert(place, (number, known)),
        }
        self.numbers += 1;
        let is_full = self.numbers > bounds.publishers_max.saturating_mul(NUMBERS_EACH);
        let most = if is_full { bounds.numbers_max.min(NUMBERS_EACH) } else { bounds.numbers_max };
        while entry.known.len() > most {
            let Some((number, _)) = entry.known.pop_front() else { break };
            entry.window = entry.window.max(number + 1);
            self.numbers -= 1;
        }
    }

    /// The journal has told all it knows: of a publish that is not there nobody can say whether it was ever accepted, unless it is above all
    /// that are there without a gap.
    pub(in crate::node) fn end_restore(&mut self) {
        for entry in self.entries.values_mut() {
            let mut numbers = entry.known.iter().rev().map(|(number, _)| *number);
            let Some(mut first) = numbers.next() else { continue };
            while first > 0 && numbers.next() == Some(first - 1) {
                first -= 1;
            }
            entry.known_from = first;
        }
    }

    /// A publisher of which nothing is known yet; refused where there is no room.
    pub(in crate::node) fn add(&mut self, scope: u128, owner: Owner, now_ms: i64, bounds: Bounds) -> Result<(), Code> {
        if self.entries.contains_key(&scope) {
            return Ok(());
        }
        if self.entries.len() >= bounds.publishers_max {
            return Err(Code::NodeBusy);
        }
        self.shares.check(owner, self.entries.len(), bounds.publishers_max)?;
        self.shares.add(owner);
        let known = VecDeque::new();
        let (known_from, window) = (u64::MAX, 0);
        let entry =
            Publisher { owner, connections: Vec::new(), used_ms: now_ms, is_queued: false, known_from, window, known };
        self.entries.insert(scope, entry);
        self.queue(scope, now_ms);
        Ok(())
    }

    /// Forgets those that have had no connection for too long, at most `count`.
    pub(in crate::node) fn sweep(&mut self, now_ms: i64, count: usize, bounds: Bounds) {
        let is_old = |since_ms: i64| since_ms.saturating_add_unsigned(bounds.age_ms_max) <= now_ms;
        for _ in 0..count {
            let Some(&(_, scope)) = self.idle.front().filter(|(queued_ms, _)| is_old(*queued_ms)) else { return };
            self.idle.pop_front();
            let Some(entry) = self.entries.get_mut(&scope) else { continue };
            entry.is_queued = false;
            if !entry.connections.is_empty() {
                continue;
            }
            let used_ms = entry.used_ms;
            if is_old(used_ms) {
                self.numbers -= entry.known.len();
                self.shares.remove(entry.owner);
                self.entries.remove(&scope);
            } else {
                self.queue(scope, used_ms);
            }
        }
    }

    fn queue(&mut self, scope: u128, now_ms: i64) {
        if let Some(entry) = self.entries.get_mut(&scope).filter(|entry| !entry.is_queued) {
            entry.is_queued = true;
            self.idle.push_back((now_ms, scope));
        }
    }
}

impl Node {
    pub(in crate::node) fn publisher_bounds(&self) -> Bounds {
        Bounds {
            publishers_max: self.limits.publishers_max,
            age_ms_max: self.limits.publishers_age_ms_max,
            numbers_max: self.limits.commands_in_flight_max,
        }
    }

    /// A connection of a publisher, under which its numbers are remembered for as long as it stays; none where there is no room.
    pub fn attach_publisher(
        &mut self,
        holder: &Holder,
        (shard, origin): (u8, u64),
        publisher: &str,
        first: Option<u64>,
        now: Now,
    ) -> Option<u128> {
        let scope = self.keys.scope_of_publisher(holder, publisher);
        let (owner, bounds) = (self.owner_of(holder, origin), self.publisher_bounds());
        self.publishers.attach(scope, (shard, owner), first, now.mono_ms as i64, bounds).then_some(scope)
    }

    /// A connection of it has ended.
    pub fn detach_publisher(&mut self, scope: u128, shard: u8, now: Now) {
        self.publishers.detach(scope, shard, now.mono_ms as i64);
    }
}
