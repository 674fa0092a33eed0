//! What happens with time alone: messages and snapshots grow too old, idle subjects are forgotten, keys and interest run out.
//! Each call does a bounded piece and the next goes on, so that no shard waits long for the lock.
use std::sync::Arc;

use super::Node;
use super::room::{Bounds, OwedBounds, drop_snapshot, is_expired, trim};
use crate::position::Now;

/// What one call may spend: to look at a log, or to let a message go, is one; a 32nd of all logs, within these bounds.
const SPEND_MIN: usize = 256;
const SPEND_MAX: usize = 1_024;
/// To forget a log costs so much more.
const FORGET_COST: usize = 8;
/// Keys, moments of interest and places of the index settled in one call.
const STEPS: usize = 2_048;
/// The index remembers this many arrivals even of messages that are gone, so that a resume token among them gets exact gaps.
const INDEX_MIN: usize = 65_536;
/// The epoch rises at most this often: an epoch made from the clock at the next start is then higher still.
const EPOCH_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Progress {
    slot: u32,
    /// When the present sweep began (monotonic).
    began_ms: Option<u64>,
}

impl Node {
    /// Whether a sweep is due: none began within `interval_ms`. It has begun then; who is told so calls `sweep`.
    pub fn begin_sweep(&mut self, now: Now, interval_ms: u64) -> bool {
        let is_due = self.sweep.began_ms.is_none_or(|began_ms| now.mono_ms >= began_ms.saturating_add(interval_ms));
        if is_due {
            self.sweep.began_ms = Some(now.mono_ms);
        }
        is_due
    }

    /// Places for logs: what there is to sweep.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.names.slots()
    }

    /// Does the next piece. True when the present round over all logs is not finished.
    pub fn sweep(&mut self, now: Now) -> bool {
        self.time_ms = self.time_ms.max(now.wall_ms);
        self.ages.tick(now.mono_ms, self.index.head());
        self.sweep_patterns(now);
        self.sweep_interest(now.mono_ms, STEPS);
        self.keys.sweep(now.mono_ms, STEPS);
        self.publishers.sweep(now.mono_ms as i64, STEPS, self.publisher_bounds());
        self.sweep_clients(now.mono_ms, STEPS);
        self.sweep_groups();
        self.sweep_owed();
        let mut left = (self.names.slots() as usize / 32).clamp(SPEND_MIN, SPEND_MAX);
        while left > 0 && self.sweep.slot < self.names.slots() {
            left = left.saturating_sub(self.sweep_log(self.sweep.slot, now, left));
            // A log with more to let go than may be spent now waits for the next call.
            self.sweep.slot += u32::from(left > 0);
        }
        for _ in 0..STEPS {
            if !self.pop_index() {
                break;
            }
        }
        if self.sweep.slot >= self.names.slots() {
            self.sweep.slot = 0;
        }
        self.sweep.slot != 0
    }

    /// Lets go of what a log may keep no longer, at most `left` messages.
    pub(super) fn trim_log(&mut self, slot: u32, left: usize) -> usize {
        let Some(log) = self.names.log_at_mut(slot) else { return 0 };
        let policy = self.policies.get(log.policy);
        let (messages_max, cutoff) = (policy.log_messages_max, self.ages.cutoff(policy.log_age));
        let bounds = Bounds { messages_max, cutoff, owed: OwedBounds::of(&self.limits, policy) };
        trim(log, bounds, left, &self.owed, &mut self.counts, &mut self.skipped)
    }

    /// Returns what it cost: `left` when there may be more to do here.
    fn sweep_log(&mut self, slot: u32, now: Now, left: usize) -> usize {
        if self.feed.abandoned != 0 {
            self.sweep_listeners(slot, now);
        }
        let Some(log) = self.names.log_at_mut(slot) else { return 1 };
        let policy = self.policies.get(log.policy);
        let has_ended = log.latest.last().is_some_and(|last| last.expires_in_s(now.wall_ms) == Some(0));
        if has_ended || is_expired(log, self.ages.cutoff(policy.snapshot_age)) {
            drop_snapshot(log, &mut self.counts, &mut self.states);
        }
        let cost = 1 + self.trim_log(slot, left);
        let Some(log) = self.names.log_at(slot) else { return cost };
        if !log.is_idle() || self.unseen.concerns(slot) {
            return cost;
        }
        // One that came back, and has had nothing since, is remembered as it was.
        if log.last_arrival() > 0 {
            // What is numbered in an epoch that has passed can be forgotten freely: it returns in a later one.
            if log.epoch == self.epoch {
                if self.epoch_ms.is_some_and(|last_ms| now.mono_ms < last_ms + EPOCH_MS) {
                    return cost;
                }
                self.epoch += 1;
                self.epoch_ms = Some(now.mono_ms);
            }
            self.forgotten.add(log.last_arrival(), Arc::clone(&log.subject), log.position(log.number()));
            self.counts.forgotten += 1;
        }
        self.states.note_forgotten(log);
        self.names.remove(slot);
        cost + FORGET_COST
    }

    /// Keeps the index within its limit, and within need, while it grows.
    pub(super) fn trim_index(&mut self) {
        while self.index.len() > self.limits.index_entries_max {
            self.index.pop();
            self.skipped = self.skipped.max(self.index.gone());
        }
        if self.index.len() > INDEX_MIN && self.pop_index() {
            self.pop_index();
        }
    }

    /// Lets the oldest arrival of the index go, if nobody can need it. False when it stays.
    fn pop_index(&mut self) -> bool {
        let oldest = self.index.gone() + 1;
        if self.index.len() == 0 {
            return false;
        }
        let is_kept = || {
            self.index.get(oldest).is_some_and(|place| {
                let log = self.names.log_at(place.slot).filter(|log| oldest > log.since_arrival);
                log.is_some_and(|log| log.get(log.widen(place.sequence_low)).is_some())
            })
        };
        if oldest > self.forgotten.base() && (self.index.len() <= INDEX_MIN || is_kept()) {
            return false;
        }
        self.index.pop();
        true
    }
}
