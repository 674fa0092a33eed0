//! How much each MQTT session and group is owed, measured in the sweep, a bounded piece at a time, so that a publish costs the same whoever
//! sleeps. Owns the bound of each: of a holder that is owed too much the logs let the oldest go. What it lost, a holder finds when it reads on;
//! here it is only counted and reported.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::super::Node;
use crate::mqtt::shared_of;
use crate::node::log::Log;
use crate::subject::Pattern;

/// Names, messages and places of the index looked at in one call.
const LOOKS_MAX: usize = 16_384;
/// Messages of a log whose bytes are added up for one look.
const MESSAGES_A_LOOK: usize = 8;
/// Subscriptions that one look goes through.
const PARTS_A_LOOK: usize = 16;
/// Subscriptions of a holder up to which a subject that several of them select is counted once.
const DISTINCT_MAX: usize = 16;
/// Reports that nobody has fetched.
const NEWS_MAX: usize = 64;
/// Before a group's number in its key.
pub(super) const GROUP: u64 = 1 << 32;

/// A session or group was owed too much, and its oldest messages have been let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The client, or the group's filter.
    pub name: Arc<str>,
    pub messages: u64,
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct Holder {
    pub(super) name: Arc<str>,
    /// What it was owed when it was measured last.
    pub(super) bytes: usize,
}

/// How far the measuring of one holder has come.
#[derive(Debug, Default)]
struct Survey {
    key: u64,
    /// The subscription under way, and the last of its subjects that was looked at.
    part: usize,
    after: Option<Arc<str>>,
    messages: usize,
    bytes: usize,
    /// Less than its bound: the node's is passed.
    bytes_max: Option<usize>,
    cut: Option<Cut>,
}

/// How far the letting go for one holder has come.
#[derive(Debug, Default)]
struct Cut {
    /// Up to this arrival.
    floor: u64,
    messages: u64,
    bytes: u64,
    slots: HashSet<u32>,
}

#[derive(Debug, Default)]
pub(in crate::node) struct Holders {
    pub(super) all: BTreeMap<u64, Holder>,
    survey: Survey,
    news: Vec<Overdue>,
    skips: u64,
}

impl Holders {
    pub(in crate::node) fn len(&self) -> usize {
        self.all.len()
    }

    pub(in crate::node) fn skips(&self) -> u64 {
        self.skips
    }

    pub(super) fn add_client(&mut self, serial: u32, id: &Arc<str>) {
        self.all.entry(u64::from(serial)).or_insert_with(|| Holder { name: Arc::clone(id), bytes: 0 });
    }

    pub(super) fn add_group(&mut self, number: u32, name: (&str, &str)) {
        let name = Arc::from(shared_of(name.0, name.1));
        self.all.insert(GROUP | u64::from(number), Holder { name, bytes: 0 });
    }

    pub(super) fn begin(&mut self, key: u64, bytes_max: Option<usize>) {
        self.survey = Survey { key, bytes_max, ..Survey::default() };
    }
}

/// A holder's subscriptions, with the arrivals after which they are owed.
type Parts = Vec<(Pattern, u64)>;

impl Node {
    /// Sessions and groups whose oldest messages were let go since the last call.
    pub fn take_overdue(&mut self) -> Vec<Overdue> {
        std::mem::take(&mut self.holders.news)
    }

    /// Measures some holders; each once a call at most.
    pub(in crate::node) fn sweep_owed(&mut self) {
        let mut left = LOOKS_MAX;
        while left > 0 {
            let Some(key) = self.holders.all.range(self.holders.survey.key..).next().map(|(key, _)| *key) else {
                // All have been measured.
                self.holders.begin(0, None);
                return self.limit_owed();
            };
            if key != self.holders.survey.key {
                self.holders.begin(key, None);
            }
            let parts = self.parts_of(key);
            if parts.is_empty() {
                self.holders.all.remove(&key);
                continue;
            }
            if self.measure(&parts, &mut left) && self.let_go(&parts, &mut left) {
                self.holders.begin(key + 1, None);
            }
            left = left.saturating_sub(looks_of(&parts));
        }
    }

    fn parts_of(&self, key: u64) -> Parts {
        let parse = |selector: &str, arrival| Some((Pattern::parse(selector).ok()?, arrival));
        if key >= GROUP {
            return self.groups.part(key as u32).into_iter().collect();
        }
        let client = self.holders.all.get(&key).and_then(|holder| self.clients.by_id.get(&holder.name));
        let Some(client) = client.filter(|client| u64::from(client.serial) == key) else { return Vec::new() };
        let kept = client.kept.iter().flat_map(|kept| kept.stands());
        let held = client.hold.iter().flat_map(|hold| hold.stands());
        kept.chain(held).filter_map(|(selector, arrival)| parse(selector, arrival)).collect()
    }

    /// Adds up what a holder is owed; false where looks have run out.
    fn measure(&mut self, parts: &Parts, left: &mut usize) -> bool {
        let mut survey = std::mem::take(&mut self.holders.survey);
        while survey.cut.is_none()
            && let Some((pattern, arrival)) = parts.get(survey.part)
            && *left > 0
        {
            *left -= 1;
            let after = survey.after.take();
            for (name, slot) in self.names.range(pattern, after.as_deref()) {
                *left = left.saturating_sub(1);
                if !pattern.has_wildcard() && &**name > pattern.text() {
                    break;
                }
                let arrival = owed_after(parts, survey.part, name, *arrival);
                if let (Some(arrival), Some(log)) = (arrival, self.names.log_at(slot)) {
                    let (messages, bytes) = owed_of(log, arrival, left);
                    (survey.messages, survey.bytes) = (survey.messages + messages, survey.bytes + bytes);
                }
                if *left == 0 {
                    survey.after = Some(Arc::clone(name));
                    break;
                }
            }
            survey.part += usize::from(survey.after.is_none());
        }
        let is_done = survey.cut.is_some() || survey.part >= parts.len();
        if is_done && let Some(holder) = self.holders.all.get_mut(&survey.key) {
            holder.bytes = survey.bytes;
        }
        self.holders.survey = survey;
        is_done
    }

    /// Lets go of what is too much; false where looks have run out.
    fn let_go(&mut self, parts: &Parts, left: &mut usize) -> bool {
        let mut survey = std::mem::take(&mut self.holders.survey);
        let messages_max = self.limits.mqtt_owed_messages_max;
        let bytes_max = self.limits.mqtt_owed_bytes_max.min(survey.bytes_max.unwrap_or(usize::MAX));
        let first = parts.iter().map(|(_, arrival)| *arrival).min().unwrap_or(0);
        let mut cut =
            survey.cut.take().unwrap_or_else(|| Cut { floor: first.max(self.index.gone()), ..Cut::default() });
        let (head, mut known) = (self.index.head(), HashMap::new());
        let is_over = |survey: &Survey| survey.messages > messages_max || survey.bytes > bytes_max;
        while is_over(&survey) && cut.floor < head && *left > 0 {
            *left -= 1;
            cut.floor += 1;
            let Some(place) = self.index.get(cut.floor) else { continue };
            let Some(log) = self.names.log_at(place.slot) else { continue };
            let Some(message) = log.get(log.widen(place.sequence_low)).filter(|one| one.arrival == cut.floor) else {
                continue;
            };
            let after = known.entry(place.slot).or_insert_with(|| {
                *left = left.saturating_sub(looks_of(parts));
                let selecting = parts.iter().filter(|(pattern, _)| pattern.matches(&log.subject));
                selecting.map(|(_, after)| *after).min()
            });
            if after.is_some_and(|after| after < cut.floor) {
                let cost = message.cost_bytes();
                survey.messages = survey.messages.saturating_sub(1);
                survey.bytes = survey.bytes.saturating_sub(cost);
                (cut.messages, cut.bytes) = (cut.messages + 1, cut.bytes + cost as u64);
                cut.slots.insert(place.slot);
            }
        }
        if is_over(&survey) && cut.floor < head {
            survey.cut = Some(cut);
            self.holders.survey = survey;
            return false;
        }
        if cut.messages > 0 {
            self.finish_cut(survey.key, cut);
        }
        true
    }

    fn finish_cut(&mut self, key: u64, cut: Cut) {
        self.raise_hold(key, cut.floor);
        self.skipped = self.skipped.max(cut.floor);
        self.holders.skips += 1;
        for slot in cut.slots {
            self.trim_log(slot, cut.messages as usize);
        }
        if let Some(holder) = self.holders.all.get_mut(&key) {
            holder.bytes = holder.bytes.saturating_sub(cut.bytes as usize);
            if self.holders.news.len() < NEWS_MAX {
                let (name, messages, bytes) = (Arc::clone(&holder.name), cut.messages, cut.bytes);
                self.holders.news.push(Overdue { name, messages, bytes });
            }
        }
    }

    /// What a holder was owed up to an arrival is held for it no longer.
    fn raise_hold(&mut self, key: u64, floor: u64) {
        if key >= GROUP {
            return self.raise_group(key as u32, floor);
        }
        let Some(name) = self.holders.all.get(&key).map(|holder| Arc::clone(&holder.name)) else { return };
        let Some(client) = self.clients.by_id.get_mut(&name) else { return };
        let owed = &mut self.owed;
        if let Some(hold) = &mut client.hold {
            hold.raise(floor, owed);
        }
        if let Some(kept) = &mut client.kept {
            let before: Vec<u64> = kept.stands().map(|(_, arrival)| arrival).collect();
            kept.floor = floor;
            for ((selector, arrival), before) in kept.stands().zip(before) {
                owed.add(selector, arrival);
                owed.remove(selector, before);
            }
        }
    }
}

/// Looks that it takes to go through a holder's subscriptions once.
fn looks_of(parts: &Parts) -> usize {
    1 + parts.len() / PARTS_A_LOOK
}

/// The arrival after which a holder is owed a subject, if this subscription is the first of its that selects it.
fn owed_after(parts: &Parts, part: usize, name: &str, arrival: u64) -> Option<u64> {
    let selects = |(pattern, _): &&(Pattern, u64)| pattern.matches(name);
    if parts.len() > DISTINCT_MAX {
        return parts.get(part).filter(selects).map(|_| arrival);
    }
    let first = parts.iter().position(|one| selects(&one))?;
    let earliest = parts.iter().filter(selects).map(|(_, arrival)| *arrival).min();
    earliest.filter(|_| first == part)
}

/// Messages and bytes of a log after an arrival.
fn owed_of(log: &Log, arrival: u64, left: &mut usize) -> (usize, usize) {
    let before = log.count_until(arrival);
    let count = log.len() - before;
    *left = left.saturating_sub(count.min(before) / MESSAGES_A_LOOK);
    let sum = |range: std::ops::Range<usize>| -> usize {
        range.filter_map(|index| log.nth(index)).map(|message| message.cost_bytes()).sum()
    };
    let bytes = if count < before { sum(before..log.len()) } else { log.bytes().saturating_sub(sum(0..before)) };
    (count, bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{LOOKS_MAX, Node};
    use crate::holder::Holder;
    use crate::message::{Batch, Draft, Kind};
    use crate::node::mqtt::{Client, Kept, KeptSubscription};
    use crate::position::Now;
    use crate::settings::Settings;

    /// A session that is away, with so many subscriptions.
    fn node_with(subscriptions: usize) -> Node {
        let mut settings = Settings::default();
        settings.limits.mqtt_owed_messages_max = 10;
        let mut node = Node::new(&settings);
        let subscription = |number| KeptSubscription::new(&format!("/a/{number}/*"));
        let subscriptions = (0..subscriptions).map(subscription).collect();
        let kept = Kept { subscriptions, owed_after: u64::MAX, ..Kept::default() };
        let (id, mut client) = (Arc::from("c"), Client::new(1, Holder::nobody()));
        node.own(&kept, "");
        node.holders.add_client(1, &id);
        client.kept = Some(Box::new(kept));
        node.clients.by_id.insert(id, Box::new(client));
        node
    }

    fn publish(node: &mut Node, subject: &str) {
        let (mut batch, mut outcomes) = (Batch::default(), Vec::new());
        batch.push(subject, Draft::new(Kind::Json, b"1", "", Holder::nobody(), 1));
        node.append(&mut batch, &mut outcomes, Now::default());
    }

    #[test]
    fn one_sweep_is_bounded_for_a_session_of_many_subscriptions_that_is_owed_too_much() {
        let mut node = node_with(1_000);
        (0..3_000).for_each(|number| publish(&mut node, &format!("/a/{}/{number}", number % 1_000)));
        let mut sweeps = 0;
        while node.holders.skips() == 0 {
            node.sweep_owed();
            sweeps += 1;
            assert!(sweeps < 100, "it ends");
        }
        let matches = 3_000 * 1_000;
        assert!(sweeps > matches / super::PARTS_A_LOOK / LOOKS_MAX, "{sweeps}");
        // Of few subjects it is known after one look at each.
        let mut node = node_with(1_000);
        (0..3_000).for_each(|number| publish(&mut node, &format!("/a/{}/x", number % 3)));
        node.sweep_owed();
        assert_eq!(node.holders.skips(), 1);
    }

    #[test]
    fn sessions_with_many_subscriptions_are_measured_few_at_a_time() {
        let mut node = node_with(2 * LOOKS_MAX);
        node.sweep_owed();
        assert_eq!(node.holders.survey.key, 1, "all its subscriptions take more than a sweep");
        (0..3).for_each(|_| node.sweep_owed());
        assert_eq!(node.holders.all.len(), 1);
    }
}
