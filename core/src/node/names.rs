//! Names to logs: by name for every publish, in name order for listings, by handle for whoever knows it.
//! Logs lie in pages that never move, so that the millionth subject costs no copy. A slot is used again, its generation is not.
mod shares;

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::ops::Bound;
use std::sync::Arc;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use super::log::Log;
use crate::codes::Code;
use crate::message::LogId;
use crate::subject::Pattern;

pub use shares::Owner;
pub(crate) use shares::Shares;
pub(super) use shares::is_within;

const PAGE: usize = 256;

#[derive(Debug)]
struct Slot {
    log: Option<Log>,
    generation: u32,
}

#[derive(Debug)]
pub(super) struct Names {
    secret: (u64, u64),
    pages: Vec<Vec<Slot>>,
    free: Vec<u32>,
    /// Half of the name's hash, and the slot.
    table: HashTable<(u32, u32)>,
    ordered: BTreeMap<Arc<str>, u32>,
    shares: Shares,
}

impl Names {
    pub(super) fn new(secret: (u64, u64)) -> Self {
        Self {
            secret,
            pages: Vec::new(),
            free: Vec::new(),
            table: HashTable::new(),
            ordered: BTreeMap::new(),
            shares: Shares::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Slots that were ever used: all logs lie below.
    pub(super) fn slots(&self) -> u32 {
        self.pages.last().map_or(0, |last| (self.pages.len() - 1) * PAGE + last.len()) as u32
    }

    /// A secret hash of a name, the same as long as the node runs.
    pub(super) fn hash(&self, name: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.secret.0, self.secret.1);
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    pub(super) fn find(&self, name: &str) -> Option<LogId> {
        let half = self.hash(name) as u32;
        let is_it =
            |&(other, slot): &(u32, u32)| other == half && self.log_at(slot).is_some_and(|log| &*log.subject == name);
        let &(_, slot) = self.table.find(spread(half), is_it)?;
        self.id_at(slot)
    }

    /// Whether a holder may have one log more.
    pub(super) fn check_share(&self, owner: Owner, max: usize) -> Result<(), Code> {
        self.shares.check(owner, self.len(), max)
    }

    /// Adds a log whose name is not known yet.
    pub(super) fn insert(&mut self, log: Log) -> LogId {
        self.shares.add(log.owner);
        let half = self.hash(&log.subject) as u32;
        let slot = self.free.pop().unwrap_or_else(|| self.slots());
        self.ordered.insert(Arc::clone(&log.subject), slot);
        self.table.insert_unique(spread(half), (half, slot), |&(half, _)| spread(half));
        if slot == self.slots() {
            if self.pages.last().is_none_or(|page| page.len() == PAGE) {
                self.pages.push(Vec::with_capacity(PAGE));
            }
            if let Some(page) = self.pages.last_mut() {
                page.push(Slot { log: Some(log), generation: 0 });
            }
        } else if let Some(free) = self.slot_mut(slot) {
            free.log = Some(log);
        }
        self.id_at(slot).unwrap_or(LogId { slot, generation: 0 })
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Log> {
        let taken = self.slot_mut(slot)?;
        let log = taken.log.take()?;
        taken.generation = taken.generation.wrapping_add(1);
        self.shares.remove(log.owner);
        let half = self.hash(&log.subject) as u32;
        if let Ok(found) = self.table.find_entry(spread(half), |&(_, other)| other == slot) {
            found.remove();
        }
        self.ordered.remove(&log.subject);
        self.free.push(slot);
        Some(log)
    }

    pub(super) fn get(&self, id: LogId) -> Option<&Log> {
        let slot = self.slot(id.slot)?;
        if slot.generation == id.generation { slot.log.as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, id: LogId) -> Option<&mut Log> {
        let slot = self.slot_mut(id.slot)?;
        if slot.generation == id.generation { slot.log.as_mut() } else { None }
    }

    pub(super) fn log_at(&self, slot: u32) -> Option<&Log> {
        self.slot(slot)?.log.as_ref()
    }

    pub(super) fn log_at_mut(&mut self, slot: u32) -> Option<&mut Log> {
        self.slot_mut(slot)?.log.as_mut()
    }

    pub(super) fn id_at(&self, slot: u32) -> Option<LogId> {
        self.slot(slot).map(|found| LogId { slot, generation: found.generation })
    }

    /// Names after `after`, in order, that `pattern` may hold: those that share its beginning. To be matched by the caller.
    pub(super) fn range<'a>(
        &'a self,
        pattern: &'a Pattern,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, u32)> {
        let prefix = pattern.prefix();
        let stem = prefix.strip_suffix('/').unwrap_or(prefix);
        let start = match after {
            Some(after) if after >= stem => Bound::Excluded(after),
            _ => Bound::Included(stem),
        };
        self.ordered
            .range::<str, _>((start, Bound::Unbounded))
            .map(|(name, slot)| (name, *slot))
            .take_while(move |(name, _)| name.starts_with(prefix) || &***name < prefix)
    }

    /// As `range`; without a pattern all names.
    pub(super) fn range_all<'a>(
        &'a self,
        pattern: Option<&'a Pattern>,
        after: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, u32)> {
        let some = pattern.map(|pattern| self.range(pattern, Some(after)));
        let all = pattern.is_none().then(|| self.ordered.range::<str, _>((Bound::Excluded(after), Bound::Unbounded)));
        let all = all.into_iter().flatten().map(|(name, slot)| (name, *slot));
        some.into_iter().flatten().chain(all)
    }

    fn slot(&self, slot: u32) -> Option<&Slot> {
        self.pages.get(slot as usize / PAGE)?.get(slot as usize % PAGE)
    }

    fn slot_mut(&mut self, slot: u32) -> Option<&mut Slot> {
        self.pages.get_mut(slot as usize / PAGE)?.get_mut(slot as usize % PAGE)
    }
}

/// The table wants all 64 bits to differ; half a hash is kept, so that growing the table touches no name.
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
