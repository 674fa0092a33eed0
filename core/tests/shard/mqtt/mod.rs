//! Random lives of MQTT sessions: publishers and subscribers are cut off, come back, and take over from themselves, on any
//! shard and with sockets that fill up, while packets are under way both ways. Every message arrives at QoS 1 at least once and
//! in order, at QoS 2 exactly once, through subscriptions that overlap as well, and that come and go. Each seed is one life; a failure
//! names it.
mod admit;
mod crashes;
mod disk;
mod end;
mod expiry;
mod holder;
mod overlap;
mod owed;
mod publisher;
mod restored;
mod room;
mod shared_takeover;
mod shares;
mod subscriber;
mod takeover;
mod will_limit;
mod will_rights;
mod wills;

use std::collections::BTreeMap;

pub(crate) use end::{come, connect, listeners, packet, subscribe, text};

use crate::world::client::{Random, live_all};
use crate::world::{Place, World, open_settings};
use publisher::Publisher;
use subscriber::Subscriber;

const TOPICS: [&str; 3] = ["a/x", "a/y", "b"];
const FILTERS: [&str; 5] = ["a/x", "a/+", "a/#", "#", "b"];
const QOS: [&str; 3] = ["none", "1", "2"];

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
        settings.listeners = listeners();
        settings.limits.log_messages_max = 100_000;
        settings.limits.stream_window_bytes_max = 256 << random.below(6);
        settings.limits.stream_linger_ms = random.below(2) * 3000;
        settings.limits.reply_buffer_bytes_max = 256 << random.below(5);
        settings.limits.mqtt_inflight_max = 1 + random.below(8) as usize;
        settings.limits.catch_up_bytes_max = 1 << random.below(16);
        settings.limits.idle_ms_max = 1 << 40;
        let world = World::new(settings, 1 + random.below(3) as u8, random.below(2) == 0);
        let publishers = (0..2).map(Publisher::new).collect();
        let subscribers = (0..4).map(|n| Subscriber::new(n, &mut random)).collect();
        let mut life = Self { world, random, publishers, subscribers, sent: 0, topics: BTreeMap::new() };
        life.publishers.iter_mut().for_each(|one| one.end.come(&mut life.world, &mut life.random));
        life.subscribers.iter_mut().for_each(|one| one.end.come(&mut life.world, &mut life.random));
        life
    }

    fn step(&mut self) {
        let (world, random) = (&mut self.world, &mut self.random);
        match random.below(13) {
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
            11 => {
                let (which, filter) = (random.below(4) as usize, random.below(5) as usize);
                // Half of them stay at one QoS, or fall to it.
                let qos = random.below(if which < 2 { 2 } else { 3 }) as u8;
                self.subscribers[which].change(world, filter, qos);
            }
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
                let got = one.got.get(&topic).into_iter().flatten().copied();
                let mut got: Vec<u32> = got.filter(|number| *number > one.owed_from).collect();
                got.sort_unstable();
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
