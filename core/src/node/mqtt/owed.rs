//! Logs owed to MQTT sessions and groups: what they have yet to be sent or to settle is kept for them, within bounds. Owns which arrivals of a subject are owed, and what a session that returns will miss.
use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::Node;
use super::{Kept, KeptSubscription};
use crate::message::LogId;
use crate::mqtt::split_shared;
use crate::subject::Pattern;

/// Subjects of one pattern looked at to find out whether something owed is gone; past them a missing range is found when it is met.
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
                let range = if is_counted { self.find_missing(slot, arrival, head) } else { None };
                match range.map(|(range, _)| range.missed) {
                    Some(Some(count)) => missed.count += count,
                    Some(None) => missed.is_exact = false,
                    None => missed.is_exact &= is_counted,
                }
            }
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTS_MAX, Missed};
    use crate::holder::Holder;
    use crate::message::{Batch, Draft, Kind};
    use crate::node::Node;
    use crate::node::mqtt::{InFlight, Kept, KeptSubscription};
    use crate::position::Now;
    use crate::settings::{PatternSettings, Settings};

    /// A log keeps three messages; for `/end/**` a session is over where something is gone, and `/off/**` is in no journal.
    fn node() -> Node {
        let mut settings = Settings::default();
        settings.limits.log_messages_max = 3;
        settings.limits.subjects_max = 1_000;
        let pattern = |pattern: &str| PatternSettings { pattern: pattern.into(), ..PatternSettings::default() };
        settings.patterns = vec![
            PatternSettings { mqtt_at_owed_max: Some("end".into()), ..pattern("/end/**") },
            PatternSettings { journal: Some(false), ..pattern("/off/**") },
        ];
        Node::new(&settings)
    }

    fn publish(node: &mut Node, subject: &str, count: usize) {
        let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
        (0..count).for_each(|_| batch.push(subject, Draft::new(Kind::Json, b"1", "", Holder::nobody(), 1)));
        node.append(&mut batch, &mut outcomes, Now::default());
    }

    /// What subscriptions miss that stand before everything.
    fn missed(node: &mut Node, selectors: &[(&str, u8)]) -> Missed {
        let one = |(selector, options): &(&str, u8)| KeptSubscription {
            options: *options,
            ..KeptSubscription::new(selector)
        };
        node.missed_by(&Kept { subscriptions: selectors.iter().map(one).collect(), ..Kept::default() })
    }

    fn exactly(count: u64) -> Missed {
        Missed { count, is_exact: true, ends_session: false }
    }

    #[test]
    fn what_waits_and_is_gone_is_counted_once_whatever_selects_it() {
        let mut node = node();
        publish(&mut node, "/a/x", 3);
        assert_eq!(missed(&mut node, &[("/a/x", 1)]), exactly(0));
        publish(&mut node, "/a/x", 7);
        publish(&mut node, "/a/y", 4);
        for selectors in [&[("/a/*", 1)][..], &[("/a/x", 1), ("/a/y", 2)], &[("/a/x", 1), ("/a/*", 1), ("/**", 2)]] {
            assert_eq!(missed(&mut node, selectors), exactly(7 + 1), "{selectors:?}");
        }
        for other in [("/b/*", 1), ("/a/*", 0), ("$share/g/a/*", 1)] {
            assert_eq!(missed(&mut node, &[other]), exactly(0), "{other:?}");
        }
        let later = KeptSubscription { arrival: 5, ..KeptSubscription::new("/a/x") };
        assert_eq!(node.missed_by(&Kept { subscriptions: vec![later], ..Kept::default() }), exactly(2));
    }

    #[test]
    fn more_subjects_than_are_counted_are_an_unknown_number() {
        let mut node = node();
        for number in 0..=COUNTS_MAX {
            assert_eq!(missed(&mut node, &[("/a/*", 1)]), exactly(number as u64));
            publish(&mut node, &format!("/a/{number}"), 4);
        }
        let missed = missed(&mut node, &[("/a/*", 1)]);
        assert!(!missed.is_exact && missed.text() == "unknown", "{missed:?}");
    }

    #[test]
    fn a_pattern_says_whether_the_session_is_over() {
        let mut node = node();
        publish(&mut node, "/end/x", 4);
        assert_eq!(missed(&mut node, &[("/end/*", 1)]), Missed { ends_session: true, ..exactly(1) });
        assert_eq!(missed(&mut node, &[("/**", 1)]), Missed { ends_session: true, ..exactly(1) });
        assert_eq!(missed(&mut node, &[("/a/**", 1)]), exactly(0));
    }

    #[test]
    fn after_a_restart_what_no_journal_keeps_is_an_unknown_number() {
        let mut node = node();
        for (selector, is_exact) in [("/off/x", false), ("/**", false), ("/a/*", true)] {
            let subscriptions = vec![KeptSubscription::new(selector)];
            let mut kept = Kept { subscriptions, is_restored: true, ..Kept::default() };
            assert_eq!(node.missed_by(&kept).is_exact, is_exact, "{selector}");
            kept.is_restored = false;
            assert_eq!(node.missed_by(&kept), exactly(0), "{selector}");
        }
    }

    #[test]
    fn what_is_in_flight_and_gone_is_missed_unless_the_packet_holds_it_or_needs_it_no_more() {
        let mut node = node();
        publish(&mut node, "/end/x", 1);
        let log = node.find("/end/x").expect("is published");
        let message = node.message(log, 1).cloned();
        let packet = InFlight {
            packet_id: 1,
            flags: 0,
            log,
            sequence: 1,
            subscription_id: 0,
            group: 0,
            arrival: 1,
            message: None,
        };
        let mut missed = |packet: InFlight| node.missed_by(&Kept { in_flight: vec![packet], ..Kept::default() });
        assert_eq!(missed(packet.clone()), exactly(0), "its log has it");
        publish(&mut node, "/end/x", 3);
        let mut missed = |packet: InFlight| node.missed_by(&Kept { in_flight: vec![packet], ..Kept::default() });
        assert_eq!(missed(packet.clone()), Missed { ends_session: true, ..exactly(1) });
        assert_eq!(missed(InFlight { message, ..packet.clone() }), exactly(0));
        for flags in [InFlight::RELEASED, InFlight::WITHDRAWN] {
            assert_eq!(missed(InFlight { flags, ..packet.clone() }), exactly(0));
        }
    }
}
