//! Random lives of MQTT sessions: publishers and subscribers are cut off, come back, and take over from themselves, on any
//! shard and with sockets that fill up, while packets are under way both ways. Every message arrives at QoS 1 at least once and
//! in order, at QoS 2 exactly once, through subscriptions that overlap as well. Each seed is one life; a failure names it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::world::client::{Random, live_all};
use crate::world::{Place, World, open_settings};
use godwit_core::settings::Listener;

const TOPICS: [&str; 3] = ["a/x", "a/y", "b"];
const FILTERS: [&str; 5] = ["a/x", "a/+", "a/#", "#", "b"];
const QOS: [&str; 3] = ["none", "1", "2"];

pub(crate) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    assert!(body.len() < 128);
    [&[first, body.len() as u8], body].concat()
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

pub(crate) fn connect(name: &str, is_five: bool) -> Vec<u8> {
    let level = if is_five { 5 } else { 4 };
    let keep: &[u8] = if is_five { &[5, 0x11, 0, 0, 0xff, 0xff] } else { &[] };
    packet(0x10, &[text("MQTT").as_slice(), &[level, 0, 0, 0], keep, &text(name)].concat())
}

/// What both ends of a client have in common: its connection, and how packets come out of it.
struct End {
    name: String,
    is_five: bool,
    place: Option<Place>,
    input: Vec<u8>,
    is_connected: bool,
    has_connected: bool,
}

impl End {
    fn new(name: &str, is_five: bool) -> Self {
        let name = name.to_owned();
        Self { name, is_five, place: None, input: Vec::new(), is_connected: false, has_connected: false }
    }

    /// Comes, to any shard; what it had before is given up without a word, or is still there to be taken over.
    fn come(&mut self, world: &mut World, random: &mut Random) {
        if let Some(place) = self.place.take().filter(|_| random.below(2) == 0) {
            world.gone(place);
        }
        let shard = random.below(world.shard_count() as u64) as usize;
        let place = world.accept_from(shard, ([127, 0, 0, 1], 4000).into(), 1);
        world.bytes(place, &connect(&self.name, self.is_five));
        (self.place, self.is_connected) = (Some(place), false);
        self.input.clear();
    }

    fn say(&self, world: &mut World, bytes: &[u8]) {
        if let Some(place) = self.place.filter(|&place| !world.socket(place).is_closed) {
            world.bytes(place, bytes);
        }
    }

    /// The packets that have come whole: first byte and body.
    fn hear(&mut self, world: &mut World) -> Vec<(u8, Vec<u8>)> {
        let Some(place) = self.place else { return Vec::new() };
        let socket = world.socket(place);
        self.input.append(&mut socket.taken);
        let mut packets = Vec::new();
        while let [first, length, ..] = self.input[..] {
            let end = 2 + usize::from(length);
            assert!(length < 128);
            if self.input.len() < end {
                break;
            }
            packets.push((first, self.input[2..end].to_vec()));
            self.input.drain(..end);
        }
        for (first, body) in &packets {
            if *first == 0x20 {
                assert_eq!(body[1], 0, "{} is refused: {body:x?}", self.name);
                assert!(body[0] == 1 || !self.has_connected, "{}: the session is gone", self.name);
                (self.is_connected, self.has_connected) = (true, true);
            }
        }
        packets
    }
}

/// A publish of QoS 2 under way.
struct Outgoing {
    id: u16,
    topic: usize,
    number: u32,
    is_released: bool,
}

struct Publisher {
    end: End,
    under_way: VecDeque<Outgoing>,
    last_id: u16,
}

impl Publisher {
    fn bytes(&self, one: &Outgoing, is_again: bool) -> Vec<u8> {
        if one.is_released {
            return packet(0x62, &one.id.to_be_bytes());
        }
        let properties: &[u8] = if self.end.is_five { &[0] } else { &[] };
        let body =
            [&text(TOPICS[one.topic]), &one.id.to_be_bytes()[..], properties, &one.number.to_be_bytes()].concat();
        packet(if is_again { 0x3c } else { 0x34 }, &body)
    }

    fn publish(&mut self, world: &mut World, topic: usize, number: u32) {
        self.last_id = self.last_id % 60_000 + 1;
        let one = Outgoing { id: self.last_id, topic, number, is_released: false };
        self.end.say(world, &self.bytes(&one, false));
        self.under_way.push_back(one);
    }

    fn hear(&mut self, world: &mut World) {
        for (first, body) in self.end.hear(world) {
            let id = body.get(..2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]));
            match first {
                0x20 => {
                    let again: Vec<_> = self.under_way.iter().map(|one| self.bytes(one, true)).collect();
                    again.iter().for_each(|bytes| self.end.say(world, bytes));
                }
                0x50 => {
                    assert_eq!(body.len(), 2, "a publish is refused: {body:x?}");
                    if let Some(one) = self.under_way.iter_mut().find(|one| one.id == id) {
                        one.is_released = true;
                        self.end.say(world, &packet(0x62, &id.to_be_bytes()));
                    }
                }
                // 5.0 may say that it knows nothing of it: then it had been completed.
                0x70 => self.under_way.retain(|one| one.id != id || !one.is_released),
                0xe0 => {}
                other => panic!("{other:x} {body:x?} to a publisher"),
            }
        }
    }
}

struct Subscriber {
    end: End,
    filters: Vec<(usize, u8)>,
    /// It has been granted what it asked for; messages from then on are owed, those before are not.
    is_subscribed: bool,
    owed_from: u32,
    received: HashSet<u16>,
    /// Answers that it has not given yet.
    answers: VecDeque<Vec<u8>>,
    got: HashMap<usize, Vec<u32>>,
}

impl Subscriber {
    fn wants(&self, topic: usize) -> u8 {
        let matches = |filter: &str| match filter {
            "#" => true,
            "a/+" | "a/#" => TOPICS[topic].starts_with("a/"),
            other => other == TOPICS[topic],
        };
        self.filters.iter().filter(|(filter, _)| matches(FILTERS[*filter])).map(|(_, qos)| *qos).max().unwrap_or(0)
    }

    fn hear(&mut self, world: &mut World, sent: u32) {
        for (first, body) in self.end.hear(world) {
            match first {
                0x20 if !self.is_subscribed => {
                    let properties: &[u8] = if self.end.is_five { &[0] } else { &[] };
                    let filters =
                        self.filters.iter().flat_map(|(filter, qos)| [text(FILTERS[*filter]), vec![*qos]].concat());
                    let body = [&[0, 1], properties, &filters.collect::<Vec<u8>>()].concat();
                    self.end.say(world, &packet(0x82, &body));
                }
                0x90 => (self.is_subscribed, self.owed_from) = (true, sent),
                0x20 | 0xe0 => {}
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
        assert_eq!(qos, self.wants(topic), "{}: {} came at another QoS", self.end.name, TOPICS[topic]);
        let (id, payload) = (u16::from_be_bytes([rest[0], rest[1]]), &rest[rest.len() - 4..]);
        let number = u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]]);
        let got = self.got.entry(topic).or_default();
        let is_new = qos == 1 || self.received.insert(id);
        if qos == 1 && first & 8 != 0 && got.contains(&number) {
            // Sent again: it may have been taken before.
        } else if is_new {
            assert!(
                got.last().is_none_or(|&last| last < number),
                "{} {}: {number} after {got:?}",
                self.end.name,
                TOPICS[topic]
            );
            got.push(number);
        }
        self.answers.push_back(packet(if qos == 1 { 0x40 } else { 0x50 }, &id.to_be_bytes()));
    }

    fn answer(&mut self, world: &mut World) {
        if let Some(answer) = self.answers.pop_front().filter(|_| self.end.is_connected) {
            self.end.say(world, &answer);
        }
    }
}

struct Life {
    world: World,
    random: Random,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    sent: u32,
    topics: BTreeMap<u32, (usize, usize)>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..10).for_each(|_| {
            random.below(2);
        });
        let mut settings = open_settings();
        settings.listeners = ["client", "mqtt"]
            .map(|name| Listener { name: name.into(), role: "both".into(), ..Listener::default() })
            .into();
        settings.limits.log_messages_max = 100_000;
        settings.limits.stream_window_bytes_max = 256 << random.below(6);
        settings.limits.stream_linger_ms = random.below(2) * 3000;
        settings.limits.reply_buffer_bytes_max = 256 << random.below(5);
        settings.limits.mqtt_inflight_max = 1 + random.below(8) as usize;
        settings.limits.catch_up_bytes_max = 1 << random.below(16);
        settings.limits.idle_ms_max = 1 << 40;
        let world = World::new(settings, 1 + random.below(3) as u8, random.below(2) == 0);
        let publishers = (0..2)
            .map(|n| Publisher { end: End::new(&format!("p{n}"), n == 0), under_way: VecDeque::new(), last_id: 0 })
            .collect();
        let subscribers = (0..4).map(|n| Self::subscriber(n, &mut random)).collect();
        let mut life = Self { world, random, publishers, subscribers, sent: 0, topics: BTreeMap::new() };
        life.publishers.iter_mut().for_each(|one| one.end.come(&mut life.world, &mut life.random));
        life.subscribers.iter_mut().for_each(|one| one.end.come(&mut life.world, &mut life.random));
        life
    }

    fn subscriber(n: u64, random: &mut Random) -> Subscriber {
        let mut filters: Vec<(usize, u8)> = Vec::new();
        for _ in 0..=random.below(3) {
            let one = (random.below(5) as usize, 1 + random.below(2) as u8);
            if filters.iter().all(|(filter, _)| *filter != one.0) {
                filters.push(one);
            }
        }
        Subscriber {
            end: End::new(&format!("s{n}"), random.below(2) == 0),
            filters,
            is_subscribed: false,
            owed_from: u32::MAX,
            received: HashSet::new(),
            answers: VecDeque::new(),
            got: HashMap::new(),
        }
    }

    fn step(&mut self) {
        let (world, random) = (&mut self.world, &mut self.random);
        match random.below(12) {
            0..=3 => {
                let which = random.below(2) as usize;
                // A topic is one publisher's: between two there is no order.
                let topic = if which == 0 { random.below(2) as usize } else { 2 };
                let publisher = &mut self.publishers[which];
                if publisher.under_way.len() < 20 && publisher.end.is_connected {
                    self.sent += 1;
                    self.topics.insert(self.sent, (topic, which));
                    publisher.publish(world, topic, self.sent);
                }
            }
            4..=6 => (0..=random.below(6)).for_each(|_| {
                let which = random.below(4) as usize;
                self.subscribers[which].answer(world);
            }),
            7 => {
                let which = random.below(4) as usize;
                if let Some(place) = self.subscribers[which].end.place {
                    let room = [0, 1, 7, 40, 4000][random.below(5) as usize];
                    world.socket(place).room = 0;
                    world.give_room(place, room);
                }
            }
            8 if random.below(3) == 0 => {
                let which = random.below(6) as usize;
                let end =
                    if which < 4 { &mut self.subscribers[which].end } else { &mut self.publishers[which - 4].end };
                end.come(world, random);
                if which < 4 {
                    // What it had not said of messages it took, it says of those that are sent again.
                    self.subscribers[which].answers.clear();
                }
            }
            9 => world.advance(random.below(200)),
            10 => world.turn_all(),
            _ => (0..world.shard_count()).for_each(|shard| world.turn(shard)),
        }
        self.hear();
    }

    fn hear(&mut self) {
        let sent = self.sent;
        self.publishers.iter_mut().for_each(|one| one.hear(&mut self.world));
        self.subscribers.iter_mut().for_each(|one| one.hear(&mut self.world, sent));
    }

    /// Everybody comes back and says everything: then nothing may be missing.
    fn end(&mut self) {
        for one in &mut self.subscribers {
            one.end.come(&mut self.world, &mut self.random);
            one.answers.clear();
        }
        self.publishers.iter_mut().for_each(|one| one.end.come(&mut self.world, &mut self.random));
        for _ in 0..20_000 {
            self.world.turn_all();
            self.hear();
            let is_done = self.subscribers.iter().all(|one| one.answers.is_empty() && one.end.is_connected);
            for one in &mut self.subscribers {
                while !one.answers.is_empty() && one.end.is_connected {
                    one.answer(&mut self.world);
                }
            }
            self.world.turn_all();
            if is_done && self.publishers.iter().all(|one| one.under_way.is_empty()) && self.is_quiet() {
                return self.check();
            }
        }
        panic!("it never comes to rest");
    }

    fn is_quiet(&mut self) -> bool {
        let places: Vec<Place> = self.subscribers.iter().filter_map(|one| one.end.place).collect();
        places.into_iter().all(|place| self.world.socket(place).taken.is_empty())
    }

    fn check(&self) {
        for one in self.subscribers.iter().filter(|one| one.is_subscribed) {
            for (topic, name) in TOPICS.iter().enumerate() {
                let qos = one.wants(topic);
                let owed = |number: &u32| qos > 0 && *number > one.owed_from && self.topics[number].0 == topic;
                let wanted: Vec<u32> = self.topics.keys().copied().filter(owed).collect();
                let got: Vec<u32> = one
                    .got
                    .get(&topic)
                    .map_or(Vec::new(), |got| got.iter().copied().filter(|number| *number > one.owed_from).collect());
                assert_eq!(got, wanted, "{} {name} at QoS {}", one.end.name, QOS[usize::from(qos)]);
            }
        }
    }
}

#[test]
fn sessions_lose_nothing_and_qos_2_comes_once() {
    live_all(|seed| {
        let mut life = Life::new(seed);
        (0..400).for_each(|_| life.step());
        life.end();
    });
}
