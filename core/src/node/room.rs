//! Letting go: of what is too much or too old in one log, and of the largest when the node is full.
mod connection_count;
mod purge;
mod snapshots;

pub use connection_count::ConnectionCount;
pub use purge::Purged;
use snapshots::LOOK_MAX;

use std::collections::BinaryHeap;

use super::Node;
use super::journal::States;
use super::log::Log;
use super::mqtt::Owed;
use super::policy::Policy;
use super::report::Counts;
use crate::command::GapReason;
use crate::limits::Limits;

/// Logs looked at for the largest, when room is needed.
const SAMPLES: usize = 8;
/// How often one append looks for a large log to make room; past it, it is refused.
const ROUNDS_MAX: usize = 1_024;
/// The same of snapshots: each time the largest goes.
const SNAPSHOT_ROUNDS_MAX: usize = 64;
/// Messages that one log loses before the largest is looked for again.
const EVICTIONS_EACH: usize = 64;
/// When there is no room, so much is made (or a 64th of all, where that is less) that not every append has to.
const ROOM_BYTES: usize = 65_536;

/// Logs that one search may look at for what nobody is owed, so that nothing that is owed goes before; past it LOOK_MAX.
pub(super) const LOOK_ALL_MAX: u32 = 65_536;
/// Looks at all logs are so rare that a publish to a full node pays for so many of them.
const LOOKS_EARNED: u32 = 8;

/// Logs that a search found, those that can free most first.
#[derive(Debug, Default)]
struct Seen {
    list: BinaryHeap<(usize, u32)>,
    /// It was made for this publish.
    is_fresh: bool,
}

/// What goes for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spare {
    /// Messages that no MQTT session or group is owed.
    Unowed,
    Messages,
    /// A snapshot that nothing else holds, too.
    Everything,
}

impl Node {
    /// Makes room for `cost` more bytes, taking the oldest messages of the largest of a few logs, met by chance: one that
    /// holds much is met more often. First go those that nobody is owed, then others, and snapshots last. False when there is
    /// nothing to be had.
    pub(super) fn make_room(&mut self, cost: usize) -> bool {
        let bytes_max = self.limits.logs_bytes_max;
        if self.counts.bytes + cost <= bytes_max {
            return true;
        }
        let aim = bytes_max - ROOM_BYTES.min(bytes_max / 64);
        for spare in [Spare::Unowed, Spare::Messages, Spare::Everything] {
            if self.counts.bytes + cost <= bytes_max {
                // Nothing of more worth goes only to keep some room free.
                return true;
            }
            let mut seen = Seen::default();
            if spare == Spare::Unowed {
                self.look_credit = (self.look_credit + LOOKS_EARNED).min(LOOK_ALL_MAX);
                seen.list = std::mem::take(&mut self.unowed);
            }
            let is_made = self.make_room_of(spare, cost, aim, &mut seen);
            if spare == Spare::Unowed {
                self.unowed = seen.list;
            }
            if is_made {
                return true;
            }
        }
        self.counts.bytes + cost <= bytes_max
    }

    fn make_room_of(&mut self, spare: Spare, cost: usize, aim: usize, seen: &mut Seen) -> bool {
        for _ in 0..if spare == Spare::Everything { SNAPSHOT_ROUNDS_MAX } else { ROUNDS_MAX } {
            if self.counts.bytes + cost <= aim {
                return true;
            }
            let Some(slot) = self.find_large(spare, seen) else { break };
            if !self.shrink(slot, aim.saturating_sub(cost), spare) {
                break;
            }
        }
        false
    }

    /// Takes the older half of a log at most, so that one that was met by bad luck keeps its better half. False where nothing was to be taken; a
    /// message that is the snapshot as well frees nothing, but those behind it can go then.
    fn shrink(&mut self, slot: u32, aim: usize, spare: Spare) -> bool {
        let after = self.owed_after(slot, spare);
        let Some(log) = self.names.log_at_mut(slot) else { return false };
        let (before, len) = (self.counts.bytes, log.len());
        for _ in 0..len.div_ceil(2).min(EVICTIONS_EACH) {
            let Some(oldest) = log.oldest().map(|oldest| oldest.arrival) else { break };
            if oldest > after {
                break;
            }
            if spare != Spare::Unowed
                && !self.owed.is_empty()
                && self.owed.after(&log.subject).is_some_and(|at| oldest > at)
            {
                self.skipped = self.skipped.max(oldest);
            }
            self.counts.bytes -= evict(log, GapReason::Overrun, &mut self.counts);
            self.counts.messages -= 1;
            self.counts.messages_evicted_by_bytes += 1;
            if self.counts.bytes <= aim {
                return true;
            }
        }
        if log.len() == 0 && !log.latest.is_none() && spare == Spare::Everything {
            evict_snapshot(log, &mut self.counts, &mut self.states);
        }
        self.counts.bytes < before || log.len() < len
    }

    /// The arrival after which nothing of a log may go.
    fn owed_after(&self, slot: u32, spare: Spare) -> u64 {
        let log = self.names.log_at(slot).filter(|_| spare == Spare::Unowed && !self.owed.is_empty());
        log.and_then(|log| self.owed.after(&log.subject)).unwrap_or(u64::MAX)
    }

    /// What a log could free.
    fn spare_bytes(&self, slot: u32, spare: Spare) -> usize {
        let Some(log) = self.names.log_at(slot) else { return 0 };
        if spare == Spare::Everything {
            return log.bytes() + log.lonely_bytes();
        }
        let after = self.owed_after(slot, spare);
        let is_owed = log.oldest().is_none_or(|oldest| oldest.arrival > after);
        if is_owed { 0 } else { log.bytes().saturating_sub(log.shown_bytes()) }
    }

    /// The log that can free most of a few; each is found by a message that was accepted at random. `seen` is what a longer search found, which
    /// is made once for this publish.
    fn find_large(&mut self, spare: Spare, seen: &mut Seen) -> Option<u32> {
        let (gone, len, slots) = (self.index.gone(), self.index.len() as u64, u64::from(self.names.slots()));
        let mut best: Option<(usize, u32)> = None;
        if slots == 0 || self.counts.bytes == 0 {
            return None;
        }
        for round in 0..SAMPLES * 8 {
            if round >= SAMPLES && best.is_some() {
                break;
            }
            let random = self.next_random();
            let place = if len > 0 { self.index.get(gone + 1 + random % len) } else { None };
            let slot = place.map_or((random % slots) as u32, |place| place.slot);
            let bytes = self.spare_bytes(slot, spare);
            if bytes > 0 {
                best = best.max(Some((bytes, slot)));
            }
        }
        if best.is_none() || spare == Spare::Everything {
            // Chance met none, or would take small snapshots for large ones.
            let mut found = self.largest_of(&mut seen.list, spare);
            if found.is_none() && !std::mem::replace(&mut seen.is_fresh, true) {
                let looks = self.looks_for(spare);
                seen.list = self.list_among(looks, |node, slot| node.spare_bytes(slot, spare));
                found = self.largest_of(&mut seen.list, spare);
            }
            best = best.max(found);
        }
        best.map(|(_, slot)| slot)
    }

    /// How many logs one search looks at: all of them for what nobody is owed, where publishes have earned that.
    fn looks_for(&mut self, spare: Spare) -> u32 {
        let slots = self.names.slots();
        if spare != Spare::Unowed || self.owed.is_empty() || slots > self.look_credit {
            return LOOK_MAX;
        }
        self.look_credit -= slots;
        slots
    }

    /// The log of a list that can free most now: it stays there for as long as it can free anything, and has less each time it was met.
    fn largest_of(&self, seen: &mut BinaryHeap<(usize, u32)>, spare: Spare) -> Option<(usize, u32)> {
        while let Some((bytes, slot)) = seen.pop() {
            let now = self.spare_bytes(slot, spare);
            if now > 0 {
                seen.push((now, slot));
            }
            if now == bytes {
                return Some((bytes, slot));
            }
        }
        None
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}

/// Whether the snapshot's last message has reached the age at which it is no longer shown.
pub(super) fn is_expired(log: &Log, cutoff: u64) -> bool {
    log.latest.last().is_some_and(|last| last.arrival <= cutoff)
}

/// The same for want of room: patches that follow are not the whole.
fn evict_snapshot(log: &mut Log, counts: &mut Counts, states: &mut States) {
    log.lacks_base = true;
    drop_snapshot(log, counts, states);
    counts.evicted_snapshots += 1;
}

pub(super) fn drop_snapshot(log: &mut Log, counts: &mut Counts, states: &mut States) {
    states.note_gone(log);
    counts.bytes -= log.lonely_bytes();
    counts.snapshots -= usize::from(!log.latest.is_none());
    log.latest.clear(&mut counts.snapshot_bytes);
}

/// What a log may keep: so many messages, none that arrived up to the cutoff; more where they are owed, within bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) messages_max: usize,
    pub(super) cutoff: u64,
    pub(super) owed: OwedBounds,
}

/// What is owed of one log to MQTT sessions and groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwedBounds {
    pub(super) messages_max: usize,
    pub(super) bytes_max: usize,
}

impl OwedBounds {
    /// As nobody is owed more than this in all, no log keeps more than this of its own.
    pub(super) fn of(limits: &Limits, policy: &Policy) -> Self {
        if policy.holds_owed {
            Self { messages_max: limits.mqtt_owed_messages_max, bytes_max: limits.mqtt_owed_bytes_max }
        } else {
            Self { messages_max: 0, bytes_max: 0 }
        }
    }
}

/// Lets go what is too much or too old and not owed, at most `left`; returns how many went. `skipped` is the last arrival of what went though it
/// was owed.
pub(super) fn trim(
    log: &mut Log,
    bounds: Bounds,
    left: usize,
    owed: &Owed,
    counts: &mut Counts,
    skipped: &mut u64,
) -> usize {
    let mut gone = 0;
    let mut after = None;
    while gone < left {
        let is_too_many = log.len() > bounds.messages_max;
        let Some(oldest) = log.oldest().map(|oldest| oldest.arrival) else { break };
        if !is_too_many && oldest > bounds.cutoff {
            break;
        }
        let after = *after.get_or_insert_with(|| owed.after(&log.subject).unwrap_or(u64::MAX));
        if oldest > after {
            if log.len() <= bounds.owed.messages_max && log.bytes() <= bounds.owed.bytes_max {
                counts.owed_bytes += log.note_held(log.len().saturating_sub(bounds.messages_max), bounds.cutoff);
                break;
            }
            *skipped = oldest.max(*skipped);
        }
        counts.bytes -= evict(log, if is_too_many { GapReason::Overrun } else { GapReason::Expired }, counts);
        counts.messages_evicted_by_count += u64::from(is_too_many);
        counts.messages_evicted_by_age += u64::from(!is_too_many);
        gone += 1;
    }
    counts.messages -= gone;
    gone
}

/// Lets the oldest message of a log go; returns the bytes that this frees.
pub(super) fn evict(log: &mut Log, reason: GapReason, counts: &mut Counts) -> usize {
    if let Some(cost) = log.oldest().map(|oldest| oldest.cost_bytes())
        && log.release_held()
    {
        counts.owed_bytes -= cost;
    }
    log.evict(reason)
}
