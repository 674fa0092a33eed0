//! Idempotency keys: the first publish under a key decides, a duplicate returns its position, other content is a conflict.
//! Scoped by (holder, subject, key). Only keyed digests are kept: 128 bits under a secret of this run, so that a key costs the
//! same however long it is, and nobody can choose two that meet. Bounded by count and age; the oldest go, and in the last fifth of the
//! table those of the holder itself that has more than its share.
mod publishers;

use std::collections::HashMap;
use std::hash::Hasher;

use hashbrown::HashTable;
use siphasher::sip128::{Hasher128, SipHasher13};

use super::names::{Owner, Shares};
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

/// No entry.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Entry {
    scope: u128,
    known: Known,
    /// Monotonic; what came back from the journal may be older than the clock.
    added_ms: i64,
    owner: Owner,
    older: u32,
    newer: u32,
    /// The next ones of the same owner.
    older_own: u32,
    newer_own: u32,
}

/// One holder's entries.
#[derive(Clone, Copy, Debug)]
struct Ends {
    oldest: u32,
    newest: u32,
}

#[derive(Debug)]
pub(super) struct Keys {
    secret: (u64, u64),
    entries_max: usize,
    age_ms_max: u64,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    ends: Ends,
    of_owners: HashMap<Owner, Ends>,
    shares: Shares,
    by_scope: HashTable<(u128, u32)>,
}

impl Keys {
    pub(super) fn new(secret: (u64, u64), entries_max: usize, age_ms_max: u64) -> Self {
        Self {
            secret,
            entries_max,
            age_ms_max,
            entries: Vec::new(),
            free: Vec::new(),
            ends: Ends { oldest: NONE, newest: NONE },
            of_owners: HashMap::new(),
            shares: Shares::default(),
            by_scope: HashTable::new(),
        }
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

    /// What a numbered publish that is sent again must have in common with the first.
    pub(super) fn digest_of_numbered(&self, shape: [u8; 2], subject: &str, content_bytes: u32, bytes: &[u8]) -> u128 {
        self.digest(&[&shape, subject.as_bytes(), &content_bytes.to_le_bytes(), bytes])
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
        let &(_, place) = self.by_scope.find(scope as u64, |(other, _)| *other == scope)?;
        let entry = self.entry(place)?;
        (!self.is_old(entry, mono_ms)).then_some(entry.known)
    }

    /// Whoever has more than its share of a table that is nearly full loses its own oldest key, and nobody else one.
    pub(super) fn insert(&mut self, owner: Owner, scope: u128, known: Known, mono_ms: i64) {
        if self.entries_max == 0 {
            return;
        }
        if let Some(&(_, place)) = self.by_scope.find(scope as u64, |(other, _)| *other == scope) {
            // One that was too old to be found gives its place up.
            self.remove(place);
        }
        if self.shares.check(owner, self.len(), self.entries_max).is_err()
            && let Some(own) = self.of_owners.get(&owner)
        {
            self.remove(own.oldest);
        }
        while self.len() >= self.entries_max {
            self.remove(self.ends.oldest);
        }
        let older_own = self.of_owners.get(&owner).map_or(NONE, |own| own.newest);
        let older = self.ends.newest;
        self.append(Entry { scope, known, added_ms: mono_ms, owner, older, newer: NONE, older_own, newer_own: NONE });
    }

    /// Lets at most `count` old ones go. True when more may remain.
    pub(super) fn sweep(&mut self, mono_ms: u64, count: usize) -> bool {
        for _ in 0..count {
            let oldest = self.ends.oldest;
            if !self.entry(oldest).is_some_and(|entry| self.is_old(entry, mono_ms)) {
                return false;
            }
            self.remove(oldest);
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn append(&mut self, entry: Entry) {
        let (scope, owner) = (entry.scope, entry.owner);
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        self.by_scope.insert_unique(scope as u64, (scope, place), |(scope, _)| *scope as u64);
        if let Some(newest) = self.entry_mut(self.ends.newest) {
            newest.newer = place;
        } else {
            self.ends.oldest = place;
        }
        self.ends.newest = place;
        let own = self.of_owners.entry(owner).or_insert(Ends { oldest: place, newest: place });
        own.newest = place;
        if let Some(older) = self.entry_mut(entry.older_own) {
            older.newer_own = place;
        }
        if let Some(free) = self.entries.get_mut(place as usize) {
            *free = Some(entry);
        }
        self.shares.add(owner);
    }

    fn remove(&mut self, place: u32) {
        let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::take) else { return };
        self.free.push(place);
        let Entry { scope, owner, older, newer, older_own, newer_own, .. } = entry;
        if let Ok(found) = self.by_scope.find_entry(scope as u64, |(_, other)| *other == place) {
            found.remove();
        }
        match self.entry_mut(older) {
            Some(older) => older.newer = newer,
            None => self.ends.oldest = newer,
        }
        match self.entry_mut(newer) {
            Some(newer) => newer.older = older,
            None => self.ends.newest = older,
        }
        self.remove_own(owner, older_own, newer_own);
        self.shares.remove(owner);
    }

    fn remove_own(&mut self, owner: Owner, older_own: u32, newer_own: u32) {
        if let Some(older) = self.entry_mut(older_own) {
            older.newer_own = newer_own;
        }
        if let Some(newer) = self.entry_mut(newer_own) {
            newer.older_own = older_own;
        }
        if older_own == NONE && newer_own == NONE {
            self.of_owners.remove(&owner);
        } else if let Some(own) = self.of_owners.get_mut(&owner) {
            own.oldest = if older_own == NONE { newer_own } else { own.oldest };
            own.newest = if newer_own == NONE { older_own } else { own.newest };
        }
    }

    fn entry(&self, place: u32) -> Option<&Entry> {
        self.entries.get(place as usize)?.as_ref()
    }

    fn entry_mut(&mut self, place: u32) -> Option<&mut Entry> {
        self.entries.get_mut(place as usize)?.as_mut()
    }

    fn is_old(&self, entry: &Entry, mono_ms: u64) -> bool {
        entry.added_ms.saturating_add_unsigned(self.age_ms_max) <= mono_ms as i64
    }
}
