//! Scans the feed's index for a pattern: everything that matches between two arrivals, in the order in which it was accepted.
//! Each arrival that is no longer kept is counted in one missing range, however many calls a scan takes and whatever is evicted meanwhile.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::Node;
use super::log::Log;
use super::read::MissingRange;
use crate::message::{LogId, Message};
use crate::subject::Pattern;

/// How far one call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternScan {
    /// Everything of the pattern up to this arrival is accounted for: put out, or in a missing range.
    pub reached: u64,
    /// Nothing is known from `after` on: a subject of the pattern was forgotten, or the index does not reach back. The client gets a gap for
    /// the pattern.
    pub is_lost: bool,
}

/// How much one call may do.
#[derive(Clone, Copy, Debug)]
pub struct ScanBudget {
    /// Arrivals looked at.
    pub entries_max: usize,
    /// Bytes put out; at least one message is.
    pub bytes_max: usize,
    /// Logs of which something is gone.
    pub missing_max: usize,
}

/// The arrivals to scan, in `(after, until]`.
#[derive(Clone, Copy, Debug)]
pub struct ScanRange {
    pub after: u64,
    pub until: u64,
    pub budget: ScanBudget,
}

/// What scans found; each call appends.
#[derive(Debug, Default)]
pub struct Found {
    /// Oldest first.
    pub messages: Vec<Arc<Message>>,
    /// They come before all messages of their call: within a log, what is gone was older.
    pub missing: Vec<(LogId, Arc<str>, MissingRange)>,
}

/// A pattern that holds few subjects is read from their logs when the way is long: a feed of a million messages is not
/// scanned for one client's ten.
const LOGS_MAX: usize = 64;
const LOOKS_MAX: u64 = 256;
const WAY_MIN: u64 = 64;
/// Missing ranges that one call reports at most; they are looked through for each message that is gone.
pub const MISSING_MAX: usize = 256;

impl Node {
    /// Messages that `pattern` holds on the way.
    pub fn scan_pattern(&self, pattern: &Pattern, way: ScanRange, found: &mut Found) -> PatternScan {
        if way.after < self.index.gone() || self.forgotten.concerns(pattern, way.after) {
            return PatternScan { reached: way.after, is_lost: true };
        }
        let known = ScanRange { until: way.until.min(self.index.head()), ..way };
        let reached = match self.find_few(pattern, known.until.saturating_sub(way.after)) {
            Some(slots) => self.scan_logs(pattern, &slots, known, found),
            None => self.scan_index(pattern, known, found),
        };
        let reached = if reached >= known.until { way.until.max(way.after) } else { reached };
        PatternScan { reached, is_lost: false }
    }

    /// The same for who goes on whatever is gone, as its index or its subjects' names are; `known` is what it knows of up to which arrival
    /// something is. Some: so far it reaches now, and nobody can count it.
    pub fn scan_pattern_past(
        &self,
        pattern: &Pattern,
        way: ScanRange,
        known: u64,
        found: &mut Found,
    ) -> (PatternScan, Option<u64>) {
        let after = way.after.max(known);
        let gone = self.index.gone();
        let is_short = after < gone && self.skipped > after;
        let lost = self.forgotten.last_of(pattern, after, self.skipped > after).max(is_short.then_some(gone));
        let known = ScanRange { until: way.until.min(self.index.head()), ..way };
        let reached = match self.find_few(pattern, known.until.saturating_sub(way.after)) {
            Some(slots) => self.scan_logs(pattern, &slots, known, found),
            None => self.scan_index(pattern, ScanRange { after: way.after.max(gone), ..known }, found),
        };
        let reached = if reached >= known.until { way.until.max(way.after) } else { reached };
        (PatternScan { reached, is_lost: false }, lost)
    }

    /// The slots of a pattern's logs, where they are few and found with less effort than `way` arrivals are looked at.
    fn find_few(&self, pattern: &Pattern, way: u64) -> Option<Vec<u32>> {
        if way < WAY_MIN {
            return None;
        }
        let (mut slots, mut looks) = (Vec::new(), 0);
        for (name, slot) in self.names.range(pattern, None) {
            looks += 1;
            if looks > LOOKS_MAX.min(way / 4) || slots.len() == LOGS_MAX {
                return None;
            }
            if pattern.matches(name) {
                slots.push(slot);
            }
        }
        Some(slots)
    }

    /// Merges a few logs by arrival.
    fn scan_logs(&self, pattern: &Pattern, slots: &[u32], way: ScanRange, found: &mut Found) -> u64 {
        let ScanRange { after, until, budget } = way;
        let Found { messages: out, missing } = found;
        let (mut next, mut left, out_before) = (BinaryHeap::new(), budget.bytes_max, out.len());
        let missing_before = missing.len();
        let arrival_of = |slot: u32, index: usize| {
            let message = self.names.log_at(slot)?.nth(index)?;
            (message.arrival <= until).then_some(message.arrival)
        };
        for &slot in slots {
            let index = self.names.log_at(slot).map_or(0, |log| log.count_until(after));
            next.extend(arrival_of(slot, index).map(|arrival| Reverse((arrival, slot, index))));
        }
        let mut reached = until;
        while let Some(Reverse((_, slot, index))) = next.pop() {
            let Some(message) = self.names.log_at(slot).and_then(|log| log.nth(index)) else { continue };
            let (cost, count) = (message.cost_bytes(), out.len() - out_before);
            if count > 0 && (cost > left || count >= budget.entries_max) {
                reached = out.last().map_or(after, |last| last.arrival);
                break;
            }
            left = left.saturating_sub(cost);
            out.push(Arc::clone(message));
            next.extend(arrival_of(slot, index + 1).map(|arrival| Reverse((arrival, slot, index + 1))));
        }
        for &slot in slots {
            let (Some(log), Some(id)) = (self.names.log_at(slot), self.names.id_at(slot)) else { continue };
            if log.evicted_arrival() > after
                && let Some((range, _)) = self.find_missing(slot, after, reached)
            {
                missing.push((id, Arc::clone(&log.subject), range));
            }
        }
        if missing.len() - missing_before > budget.missing_max {
            // Fewer of them lie on a part of the way.
            out.truncate(out_before);
            missing.truncate(missing_before);
            return self.scan_index(pattern, way, found);
        }
        reached
    }

    /// Looks at every arrival on the way.
    fn scan_index(&self, pattern: &Pattern, way: ScanRange, found: &mut Found) -> u64 {
        let ScanRange { after, until, budget } = way;
        let Found { messages: out, missing } = found;
        let (mut left, mut reached) = (budget.bytes_max, after);
        let (out_before, missing_before) = (out.len(), missing.len());
        let end = until.min(after.saturating_add(budget.entries_max.max(1) as u64));
        while reached < end && missing.len() - missing_before < budget.missing_max {
            let arrival = reached + 1;
            let place = self.index.get(arrival);
            let log = place.and_then(|place| Some((self.names.log_at(place.slot)?, place)));
            // A slot may have had another log before, which the pattern does not hold, or the way would be lost.
            let is_wanted = |log: &Log| arrival > log.since_arrival && pattern.matches(&log.subject);
            if let Some((log, place)) = log.filter(|(log, _)| is_wanted(log)) {
                let sequence = log.widen(place.sequence_low);
                if let Some(message) = log.get(sequence) {
                    let cost = message.cost_bytes();
                    if cost > left && out.len() > out_before {
                        break;
                    }
                    left = left.saturating_sub(cost);
                    out.push(Arc::clone(message));
                } else {
                    let id = self.names.id_at(place.slot).unwrap_or(LogId { slot: place.slot, generation: 0 });
                    widen_range(missing, missing_before, id, log, sequence);
                }
            }
            reached = arrival;
        }
        reached
    }
}

/// One more of a log's messages that is gone: extends its missing range of this call, or begins one.
fn widen_range(missing: &mut Vec<(LogId, Arc<str>, MissingRange)>, from: usize, id: LogId, log: &Log, sequence: u64) {
    let known = missing.get_mut(from..).unwrap_or_default();
    if let Some((_, _, range)) = known.iter_mut().find(|(other, _, _)| *other == id) {
        (range.at, range.number) = (log.position(sequence), sequence);
        range.missed = range.missed.map(|missed| missed + 1);
        return;
    }
    let before = sequence.saturating_sub(1);
    let (after, at, reason) = (Some(log.position(before)), log.position(sequence), log.gap_reason(before));
    missing.push((id, Arc::clone(&log.subject), MissingRange { missed: Some(1), after, at, number: sequence, reason }));
}
