//! Who subscribes, and changes what to; it keeps what came, and holds each packet against what it asked for.

use std::collections::{HashMap, HashSet, VecDeque};

use super::end::{End, packet, text};
use super::{FILTERS, TOPICS};
use crate::world::World;
use crate::world::client::Random;

pub(super) struct Subscriber {
    pub(super) end: End,
    /// Which, at which QoS, and whether it was among the first.
    filters: Vec<(usize, u8, bool)>,
    /// It has been granted what it asked for; messages from then on are owed, those before are not.
    pub(super) is_subscribed: bool,
    pub(super) owed_from: u32,
    received: HashSet<u16>,
    /// Answers that it has not given yet.
    pub(super) answers: VecDeque<Vec<u8>>,
    pub(super) got: HashMap<usize, Vec<u32>>,
    /// How each topic may come: what was sent before its subscriptions changed may still be under way.
    granted: HashSet<(usize, u8)>,
    /// The packet that changes them, until it is answered.
    changing: Option<Vec<u8>>,
    /// Some of them were asked for at a higher QoS: between what they send and others do there is no order.
    is_raised: bool,
}

impl Subscriber {
    pub(super) fn new(n: u64, random: &mut Random) -> Self {
        let mut filters: Vec<(usize, u8, bool)> = Vec::new();
        for _ in 0..=random.below(3) {
            let one = (random.below(5) as usize, 1 + random.below(2) as u8, true);
            if filters.iter().all(|other| other.0 != one.0) {
                filters.push(one);
            }
        }
        Self {
            end: End::new(&format!("s{n}"), random.below(2) == 0),
            filters,
            is_subscribed: false,
            owed_from: u32::MAX,
            received: HashSet::new(),
            answers: VecDeque::new(),
            got: HashMap::new(),
            granted: HashSet::new(),
            changing: None,
            is_raised: false,
        }
    }

    /// The QoS of each subscription that selects a topic, and whether it has been there from the first.
    fn selecting(&self, topic: usize) -> impl Iterator<Item = (u8, bool)> {
        let matches = move |filter: &str| match filter {
            "#" => true,
            "a/+" | "a/#" => TOPICS[topic].starts_with("a/"),
            other => other == TOPICS[topic],
        };
        let selecting = self.filters.iter().filter(move |one| matches(FILTERS[one.0]));
        selecting.map(|&(_, qos, is_first)| (qos, is_first))
    }

    pub(super) fn wants(&self, topic: usize) -> u8 {
        self.selecting(topic).map(|(qos, _)| qos).max().unwrap_or(0)
    }

    pub(super) fn hear(&mut self, world: &mut World, sent: u32) {
        for (first, body) in self.end.hear(world) {
            match first {
                0x20 if !self.is_subscribed => {
                    self.grant();
                    let properties: &[u8] = if self.end.is_five { &[0] } else { &[] };
                    let filters = self.filters.iter().flat_map(|one| [text(FILTERS[one.0]), vec![one.1]].concat());
                    let body = [&[0, 1], properties, &filters.collect::<Vec<u8>>()].concat();
                    self.end.say(world, &packet(0x82, &body));
                }
                0x90 if !self.is_subscribed => (self.is_subscribed, self.owed_from) = (true, sent),
                0x90 | 0xb0 => self.changing = None,
                0x20 => {
                    if let Some(bytes) = &self.changing {
                        self.end.say(world, bytes);
                    }
                }
                0xe0 => {}
                0x62 => {
                    self.received.remove(&u16::from_be_bytes([body[0], body[1]]));
                    self.answers.push_back(packet(0x70, &body[..2]));
                }
                _ if first >> 4 == 3 => self.take(first, &body),
                other => panic!("{other:x} {body:x?} to a subscriber"),
            }
        }
    }

    fn take(&mut self, first: u8, body: &[u8]) {
        let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
        let topic = TOPICS.iter().position(|topic| topic.as_bytes() == &body[2..2 + length]).expect("a topic of ours");
        let (qos, rest) = (first >> 1 & 3, &body[2 + length..]);
        assert!(self.granted.contains(&(topic, qos)), "{}: {} came at QoS {qos}", self.end.name, TOPICS[topic]);
        let (id, payload) = (u16::from_be_bytes([rest[0], rest[1]]), &rest[rest.len() - 4..]);
        let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
        let got = self.got.entry(topic).or_default();
        let is_new = qos == 1 || self.received.insert(id);
        let is_known = got.contains(&number);
        if qos == 1 && is_known && (first & 8 != 0 || self.end.has_crashed) {
            // Sent again: it may have been taken before.
        } else if is_new {
            // One from before it subscribed comes late where its row was lost, so that its publisher sent it again.
            let is_ordered = self.is_raised || number <= self.owed_from || got.last().is_none_or(|&last| last < number);
            assert!(
                !is_known && is_ordered,
                "{} {}: {number} after {got:?} (first byte {first:x}, identifier {id}, crashed {})",
                self.end.name,
                TOPICS[topic],
                self.end.has_crashed
            );
            got.push(number);
        }
        self.answers.push_back(packet(if qos == 1 { 0x40 } else { 0x50 }, &id.to_be_bytes()));
    }

    fn grant(&mut self) {
        for topic in 0..TOPICS.len() {
            self.granted.insert((topic, self.wants(topic)));
        }
    }

    /// One of its subscriptions ends, or one is asked for (again) at a QoS: what it selected from the first it still does, and nothing
    /// besides.
    pub(super) fn change(&mut self, world: &mut World, filter: usize, qos: u8) {
        let ends = qos == 0;
        let before = self.filters.clone();
        let wanted: Vec<bool> = (0..TOPICS.len()).map(|topic| self.wants(topic) > 0).collect();
        let known = before.iter().find(|one| one.0 == filter);
        self.filters.retain(|one| one.0 != filter);
        if !ends {
            self.filters.push((filter, qos, known.is_some_and(|one| one.2)));
        }
        let is_whole = (0..TOPICS.len()).all(|topic| {
            self.selecting(topic).any(|one| one.1) == wanted[topic] && (self.wants(topic) > 0) == wanted[topic]
        });
        if !self.end.is_connected
            || self.changing.is_some()
            || !self.is_subscribed
            || !is_whole
            || (ends && known.is_none())
        {
            self.filters = before;
            return;
        }
        self.is_raised |= qos == 2;
        for topic in 0..TOPICS.len() {
            let all: Vec<_> = self.selecting(topic).map(|(qos, _)| (topic, qos)).collect();
            self.granted.extend(all); // of what came before another began, the others are the highest
        }
        let properties: &[u8] = if self.end.is_five { &[0] } else { &[] };
        let body = [&[0, 2], properties, &text(FILTERS[filter])].concat();
        let bytes = if ends { packet(0xa2, &body) } else { packet(0x82, &[&body[..], &[qos]].concat()) };
        self.end.say(world, &bytes);
        self.changing = Some(bytes);
    }

    pub(super) fn answer(&mut self, world: &mut World) {
        if let Some(answer) = self.answers.pop_front().filter(|_| self.end.is_connected) {
            self.end.say(world, &answer);
        }
    }
}
