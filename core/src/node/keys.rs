//! Idempotency keys: the first publish under a key decides, a duplicate returns its position, other content is a conflict.
//! Scoped by (holder, subject, key). Only keyed digests are kept: 128 bits under a secret of this run, so that a key costs the
//! same however long it is, and nobody can choose two that meet. Bounded by count and age; the oldest go.
mod publishers;

use std::collections::VecDeque;
use std::hash::Hasher;

use hashbrown::HashTable;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::holder::Holder;
use crate::position::Position;

pub(super) use publishers::Publishers;

/// What the first publish under a key was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) content: u128,
    /// None: a standard message.
    pub(super) at: Option<Position>,
    /// Its arrival.
    pub(super) arrival: u64,
}

#[derive(Debug)]
struct Entry {
    scope: u128,
    known: Known,
    /// Monotonic; what came back from the journal may be older than the clock.
    added_ms: i64,
}

#[derive(Debug)]
pub(super) struct Keys {
    secret: (u64, u64),
    entries_max: usize,
    age_ms_max: u64,
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// The number of the oldest; entries are numbered as they come.
    first: u64,
    numbers: HashTable<u64>,
}

impl Keys {
    pub(super) fn new(secret: (u64, u64), entries_max: usize, age_ms_max: u64) -> Self {
        let (entries, numbers) = (VecDeque::new(), HashTable::new());
        Self { secret, entries_max, age_ms_max, entries, first: 0, numbers }
    }

    /// The digest of several parts, each with its length, so that no two lists of parts are the same bytes.
    pub(super) fn digest(&self, parts: &[&[u8]]) -> u128 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        hasher.finish128().as_u128()
    }

    /// What a holder's key on a subject is kept under.
    pub(super) fn scope(&self, holder: &Holder, subject: &str, key: &[u8]) -> u128 {
        let Holder { tenant, authority, identity } = holder;
        self.digest(&[tenant.as_bytes(), authority.as_bytes(), identity.as_bytes(), subject.as_bytes(), key])
    }

    /// What a holder's publisher is kept under.
    pub(super) fn scope_of_publisher(&self, holder: &Holder, publisher: &str) -> u128 {
        let Holder { tenant, authority, identity } = holder;
        let parts = [tenant, authority, identity].map(|part| part.as_bytes());
        self.digest(&[parts[0], parts[1], parts[2], publisher.as_bytes()])
    }

    pub(super) fn find(&self, scope: u128, mono_ms: u64) -> Option<Known> {
        let number = self.numbers.find(scope as u64, |number| self.scope_of(*number) == Some(scope))?;
        let entry = self.entry(*number)?;
        (!self.is_old(entry, mono_ms)).then_some(entry.known)
    }

    pub(super) fn insert(&mut self, scope: u128, known: Known, mono_ms: i64) {
        if self.entries_max == 0 {
            return;
        }
        while self.entries.len() >= self.entries_max {
            self.pop();
        }
        // One that was too old to be found gives its number up.
        let first = self.first;
        let entries = &self.entries;
        let scope_at = |number: u64| entries.get(number.wrapping_sub(first) as usize).map(|entry| entry.scope);
        if let Ok(old) = self.numbers.find_entry(scope as u64, |number| scope_at(*number) == Some(scope)) {
            old.remove();
        }
        let number = first + self.entries.len() as u64;
        self.numbers.insert_unique(scope as u64, number, |number| scope_at(*number).unwrap_or(0) as u64);
        self.entries.push_back(Entry { scope, known, added_ms: mono_ms });
    }

    /// Lets at most `count` old ones go. True when more may remain.
    pub(super) fn sweep(&mut self, mono_ms: u64, count: usize) -> bool {
        for _ in 0..count {
            if !self.entries.front().is_some_and(|entry| self.is_old(entry, mono_ms)) {
                return false;
            }
            self.pop();
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn pop(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        let number = self.first;
        self.first += 1;
        if let Ok(found) = self.numbers.find_entry(entry.scope as u64, |other| *other == number) {
            found.remove();
        }
    }

    fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn scope_of(&self, number: u64) -> Option<u128> {
        self.entry(number).map(|entry| entry.scope)
    }

    fn is_old(&self, entry: &Entry, mono_ms: u64) -> bool {
        entry.added_ms.saturating_add_unsigned(self.age_ms_max) <= mono_ms as i64
    }
}
