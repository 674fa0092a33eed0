//! Logs owed to MQTT sessions and groups: what they have yet to be sent or to settle is kept for them, within bounds. Owns which arrivals of a subject are owed, and what a session that returns will miss.
use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::Node;
use super::{Kept, KeptSubscription};
use crate::message::LogId;
use crate::mqtt::split_shared;
use crate::subject::Pattern;

/// Subjects of one pattern looked at to find out whether something owed is gone; past it the hole is found when it is met.
const LOOKS_MAX: usize = 4_096;
/// The same of all subscriptions of a session, subjects that were forgotten included: the node waits meanwhile.
const LOOKS_ALL_MAX: usize = 65_536;
/// Subjects of which so much is counted exactly.
const COUNTS_MAX: usize = 64;
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
        let Ok(pattern) = Pattern::parse(selector) else { return };
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

/// What a client was owed and will not be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    pub count: u64,
    /// There is no more than that.
    pub is_exact: bool,
    /// A pattern says that its session is over then.
    pub ends_session: bool,
}

impl Missed {
    /// For people and programs; empty: nothing.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self { count: 0, is_exact: true, .. } => String::new(),
            Self { count, is_exact: true, .. } => count.to_string(),
            _ => "unknown".to_owned(),
        }
    }
}

impl Kept {
    /// What its subscriptions at QoS 1 and 2 hold: selectors, with the arrivals after which something is owed.
    pub(super) fn stands(&self) -> impl Iterator<Item = (&str, u64)> {
        let owed = |one: &&KeptSubscription| one.options & QOS_BITS > 0 && split_shared(&one.selector).is_none();
        self.subscriptions
            .iter()
            .filter(owed)
            .map(|one| (&*one.selector, one.arrival.min(self.owed_after).max(self.floor)))
    }
}

impl Node {
    /// From now on a client of a tenant that is away is owed what its subscriptions of QoS 1 and 2 select.
    pub(super) fn own(&mut self, kept: &Kept, tenant: &str) {
        for (selector, arrival) in kept.stands() {
            self.owed.add(selector, arrival);
        }
        self.count_groups(kept, tenant, true);
    }

    /// It has come back, or its session has ended.
    pub(super) fn disown(&mut self, kept: &Kept, tenant: &str) {
        for (selector, arrival) in kept.stands() {
            self.owed.remove(selector, arrival);
        }
        self.count_groups(kept, tenant, false);
    }

    fn count_groups(&mut self, kept: &Kept, tenant: &str, is_away: bool) {
        for subscription in &kept.subscriptions {
            if let Some(name) = split_shared(&subscription.selector) {
                self.count_away(name, tenant, is_away);
            }
        }
    }

    /// The arrival before the oldest of the messages in flight.
    pub fn before_in_flight(&self, places: impl Iterator<Item = (LogId, u64)>) -> u64 {
        let arrivals = places.filter_map(|(log, sequence)| Some(self.names.get(log)?.get(sequence)?.arrival - 1));
        arrivals.min().unwrap_or(u64::MAX)
    }

    /// What a client that comes back was owed and is no longer there, as far as a bounded look can tell; what it does not find is reported when
    /// it is met.
    pub fn missed_by(&mut self, kept: &Kept) -> Missed {
        let mut missed = Missed { count: 0, is_exact: true, ends_session: false };
        for flying in kept.in_flight.iter().filter(|flying| flying.needs_message() && flying.message.is_none()) {
            if self.message(flying.log, flying.sequence).is_none() {
                missed.count += 1;
                let policy = self.names.get(flying.log).map(|log| self.policies.get(log.policy));
                missed.ends_session |= policy.is_some_and(|policy| policy.ends_session);
            }
        }
        let (mut seen, mut counts, head) = (HashSet::new(), 0, self.index.head());
        let owed = |one: &&KeptSubscription| one.options & QOS_BITS > 0 && split_shared(&one.selector).is_none();
        let mut looks = LOOKS_ALL_MAX;
        for subscription in kept.subscriptions.iter().filter(owed) {
            if looks == 0 {
                break;
            }
            let Ok(pattern) = Pattern::parse(&subscription.selector) else { continue };
            let arrival = subscription.arrival;
            if kept.is_restored && self.policies.unjournaled_within(&pattern).next().is_some() {
                missed.is_exact = false;
                missed.ends_session |= self.policy(pattern.text()).ends_session;
            }
            looks = looks.saturating_sub(1 + self.forgotten.looks(arrival));
            if self.forgotten.last_of(&pattern, arrival, self.skipped > arrival).is_some() {
                missed.is_exact = false;
                missed.ends_session |= self.policy(pattern.text()).ends_session;
            }
            let names = self.names.range(&pattern, None).take(LOOKS_MAX.min(looks));
            let names = names.inspect(|_| looks -= 1);
            let gone = names.filter(|(name, slot)| {
                let log = self.names.log_at(*slot).filter(|log| log.evicted_arrival() > arrival);
                log.is_some() && pattern.matches(name) && seen.insert(*slot)
            });
            for (_, slot) in gone {
                let policy = self.names.log_at(slot).map(|log| self.policies.get(log.policy));
                missed.ends_session |= policy.is_some_and(|policy| policy.ends_session);
                counts += 1;
                let is_counted = missed.is_exact && counts <= COUNTS_MAX;
                let hole = if is_counted { self.find_hole(slot, arrival, head) } else { None };
                match hole.map(|(hole, _)| hole.missed) {
                    Some(Some(count)) => missed.count += count,
                    Some(None) => missed.is_exact = false,
                    None => missed.is_exact &= is_counted,
                }
            }
        }
        missed
    }
}
