//! Logs owed to MQTT sessions that are away: what such a session has yet to be sent does not grow too old, though there may be
//! too many or too much of it. Owns which arrivals of a subject are owed, and whether a session can be served without a hole.
use std::collections::{BTreeMap, HashMap};

use super::super::Node;
use super::Kept;
use crate::message::LogId;
use crate::mqtt::split_shared;
use crate::subject::Pattern;

/// Subjects of one pattern looked at to find out whether something owed is gone; past it the hole is found when it is met.
const LOOKS_MAX: usize = 4_096;
/// The bits of a subscription's options that say its QoS.
const QOS_BITS: u8 = 3;

/// Arrivals after which something is owed, with how many sessions stand there.
type Stands = BTreeMap<u64, u32>;

/// For each selector the arrivals after which it is owed, with how many sessions stand there.
#[derive(Debug, Default)]
pub(in crate::node) struct Owed {
    subjects: HashMap<Box<str>, Stands>,
    patterns: HashMap<Box<str>, Vec<(Pattern, Stands)>>,
}

impl Owed {
    pub(in crate::node) fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.patterns.is_empty()
    }

    fn change(&mut self, selector: &str, change: impl FnOnce(&mut Stands)) {
        let Ok(pattern) = Pattern::parse_levels(selector) else { return };
        if !pattern.has_wildcard() {
            let stands = self.subjects.entry(selector.into()).or_default();
            change(stands);
            if stands.is_empty() {
                self.subjects.remove(selector);
            }
            return;
        }
        let prefix: Box<str> = stem(&pattern).into();
        let group = self.patterns.entry(prefix.clone()).or_default();
        let at = group.iter().position(|(other, _)| *other == pattern).unwrap_or_else(|| {
            group.push((pattern, BTreeMap::new()));
            group.len() - 1
        });
        if let Some((_, stands)) = group.get_mut(at) {
            change(stands);
            if stands.is_empty() {
                group.swap_remove(at);
            }
        }
        if group.is_empty() {
            self.patterns.remove(&prefix);
        }
    }

    pub(super) fn add(&mut self, selector: &str, arrival: u64) {
        self.change(selector, |stands| *stands.entry(arrival).or_default() += 1);
    }

    pub(super) fn remove(&mut self, selector: &str, arrival: u64) {
        self.change(selector, |stands| {
            if let Some(count) = stands.get_mut(&arrival) {
                *count -= 1;
                if *count == 0 {
                    stands.remove(&arrival);
                }
            }
        });
    }

    /// The arrival after which something of a subject is owed to somebody.
    pub(in crate::node) fn after(&self, subject: &str) -> Option<u64> {
        let first = |stands: &Stands| stands.keys().next().copied();
        let own = self.subjects.get(subject).and_then(first);
        if self.patterns.is_empty() {
            return own;
        }
        let ends = subject.match_indices('/').map(|(at, _)| at).chain([subject.len()]);
        let groups = ends.filter_map(|end| self.patterns.get(subject.get(..end)?));
        let matching = groups.flatten().filter(|(pattern, _)| pattern.matches(subject));
        matching.filter_map(|(_, stands)| first(stands)).chain(own).min()
    }
}

/// A pattern's text up to the slash before its first wildcard.
fn stem(pattern: &Pattern) -> &str {
    pattern.prefix().strip_suffix('/').unwrap_or(pattern.prefix())
}

impl Node {
    /// From now on a client that is away is owed what its subscriptions of QoS 1 and 2 select.
    pub(super) fn own(&mut self, kept: &Kept) {
        for subscription in kept.subscriptions.iter().filter(|s| s.options & QOS_BITS > 0) {
            self.owed.add(&subscription.selector, subscription.arrival.min(kept.owed_after));
        }
        self.count_groups(kept, true);
    }

    /// It has come back, or its session has ended.
    pub(super) fn disown(&mut self, kept: &Kept) {
        for subscription in kept.subscriptions.iter().filter(|s| s.options & QOS_BITS > 0) {
            self.owed.remove(&subscription.selector, subscription.arrival.min(kept.owed_after));
        }
        self.count_groups(kept, false);
    }

    fn count_groups(&mut self, kept: &Kept, is_away: bool) {
        for subscription in &kept.subscriptions {
            if let Some((group, selector)) = split_shared(&subscription.selector) {
                self.count_away(group, selector, is_away);
            }
        }
    }

    /// The arrival before the oldest of the messages in flight.
    pub fn before_in_flight(&self, places: impl Iterator<Item = (LogId, u64)>) -> u64 {
        let arrivals = places.filter_map(|(log, sequence)| Some(self.names.get(log)?.get(sequence)?.arrival - 1));
        arrivals.min().unwrap_or(u64::MAX)
    }

    /// Whether everything that a client is owed is still there. Where the subjects are very many the answer may be yes too
    /// soon; then what is missing is told when it is met.
    pub fn can_resume(&self, kept: &Kept) -> bool {
        let has_flying = |log, sequence| self.message(log, sequence).is_some();
        if !kept.in_flight.iter().all(|flying| flying.is_released() || has_flying(flying.log, flying.sequence)) {
            return false;
        }
        let mut owed = kept.subscriptions.iter().filter(|s| s.options & QOS_BITS > 0);
        owed.all(|subscription| {
            split_shared(&subscription.selector).is_some()
                || self.is_whole(&subscription.selector, subscription.arrival)
        })
    }

    fn is_whole(&self, selector: &str, arrival: u64) -> bool {
        let Ok(pattern) = Pattern::parse_levels(selector) else { return false };
        if self.forgotten.concerns(&pattern, arrival) {
            return false;
        }
        let is_kept = |slot| self.names.log_at(slot).is_none_or(|log| log.evicted_arrival() <= arrival);
        if !pattern.has_wildcard() {
            return self.names.find(selector).is_none_or(|id| is_kept(id.slot));
        }
        let mut names = self.names.range(&pattern, None).take(LOOKS_MAX);
        arrival >= self.index.gone() && names.all(|(name, slot)| !pattern.matches(name) || is_kept(slot))
    }
}
