//! Random lives with crashes: a node is killed at any moment, with rows and notes on the disk up to any of those that it handed over, and
//! starts again with what is there. Where the disk is promised, QoS 2 is exactly once and in order for publishers and subscribers, and QoS 1
//! loses nothing. Each seed is one life; a failure names it.
use std::collections::{BTreeMap, BTreeSet};

use godwit_core::node::{PastRun, Progress};
use godwit_core::settings::{JournalSettings, PatternSettings};

use super::TOPICS;
use super::end::listeners;
use super::publisher::Publisher;
use super::subscriber::Subscriber;
use crate::world::client::{Random, live_all};
use crate::world::past::Past;
use crate::world::{World, open_settings};

const RUN: u64 = 0xa1;

struct Life {
    world: World,
    random: Random,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    sent: u32,
    topics: BTreeMap<u32, usize>,
    /// Publishes of clients whose session was lost before the node had promised anything: they give them up.
    unsure: BTreeSet<u32>,
    past: Past,
    runs: Vec<PastRun>,
    /// Notes that are on the disk, and those that are being written.
    notes: BTreeMap<String, Option<String>>,
    writing: BTreeMap<String, Option<String>>,
    bounds: (u8, usize, usize),
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..10).for_each(|_| {
            random.below(2);
        });
        let bounds = (1 + random.below(3) as u8, 1 + random.below(8) as usize, 256 << random.below(5));
        let publishers = (0..2).map(Publisher::new).collect();
        let subscribers = (0..4).map(|n| Subscriber::new(n, &mut random)).collect();
        let mut life = Self {
            world: World::new(open_settings(), 1, false),
            random,
            publishers,
            subscribers,
            sent: 0,
            topics: BTreeMap::new(),
            unsure: BTreeSet::new(),
            past: Past::default(),
            runs: Vec::new(),
            notes: BTreeMap::new(),
            writing: BTreeMap::new(),
            bounds,
        };
        life.begin();
        life
    }

    fn begin(&mut self) {
        let number = self.runs.len() as u64;
        let mut settings = open_settings();
        settings.listeners = listeners();
        settings.limits.log_messages_max = 100_000;
        settings.limits.idle_ms_max = 1 << 40;
        (settings.limits.mqtt_inflight_max, settings.limits.reply_buffer_bytes_max) = (self.bounds.1, self.bounds.2);
        settings.journal = Some(JournalSettings::default());
        settings.patterns = vec![PatternSettings {
            pattern: "/**".into(),
            mqtt_ack: Some("disk".into()),
            ..PatternSettings::default()
        }];
        (settings.run, settings.epoch, self.past.run) = (RUN + number, 7 + number, RUN + number);
        self.world = World::new(settings, self.bounds.0, self.random.below(2) == 0);
        self.world.holds_notes = true;
        let (now, mut began) = (self.world.now, 0);
        if number > 0 {
            let mut node = self.world.node.lock().unwrap();
            node.begin_restore(self.runs.clone());
            self.notes.retain(|_, text| text.is_some());
            for (name, text) in &self.notes {
                node.restore_note(name, text.as_deref().unwrap_or_default(), 0, now);
            }
            self.past.rows.iter().for_each(|row| node.restore(row.clone(), now));
            began = node.finish_restore(now).arrival + 1;
        }
        self.runs.push(PastRun { run: RUN + number, epoch: 7 + number, epoch_end: u64::MAX, began, last: began });
        self.publishers.iter_mut().for_each(|one| one.end.return_after_crash(&mut self.world, &mut self.random));
        for one in &mut self.subscribers {
            one.answers.clear();
            one.end.return_after_crash(&mut self.world, &mut self.random);
        }
    }

    /// Of the rows that the node handed over, some are on the disk.
    fn write_rows(&mut self, all: bool) {
        self.past.note(&self.world);
        let more = self.past.rows.len() - self.past.written;
        self.past.written += if all { more } else { self.random.below(more as u64 + 1) as usize };
        let synced = self.past.rows[..self.past.written].last().map_or(0, |row| row.arrival);
        let _ = self.world.node.lock().unwrap().journaled(Progress { synced, ..Progress::default() });
    }

    /// Notes are handed over, or are on the disk.
    fn write_notes(&mut self) {
        let mut node = self.world.node.lock().unwrap();
        if self.writing.is_empty() {
            self.writing = node.take_notes();
        }
        if self.random.below(2) == 0 {
            self.notes.append(&mut self.writing);
            let _ = node.notes_synced();
        }
    }

    /// The node is killed: what was being written may be there or not.
    fn crash(&mut self) {
        self.hear();
        self.past.note(&self.world);
        let more = self.past.rows.len() - self.past.written;
        self.past.rows.truncate(self.past.written + self.random.below(more as u64 + 1) as usize);
        self.past.written = self.past.rows.len();
        if self.random.below(2) == 0 {
            self.notes.append(&mut self.writing);
        }
        self.writing.clear();
        let notes = &self.notes;
        let is_known = |name: &str| notes.get(&format!("session {name}")).is_some_and(Option::is_some);
        for one in self.publishers.iter_mut().filter(|one| !is_known(&one.end.name)) {
            assert!(!one.end.is_promised, "{}: what it was promised is gone", one.end.name);
            for given_up in one.under_way.drain(..) {
                self.unsure.insert(given_up.number);
                self.topics.remove(&given_up.number);
            }
        }
        if let Some(run) = self.runs.last_mut() {
            run.last = self.past.rows.last().map_or(0, |row| row.arrival).max(run.began);
        }
        let epoch = 7 + self.runs.len() as u64;
        self.runs.iter_mut().rfind(|run| run.epoch_end == u64::MAX).into_iter().for_each(|run| run.epoch_end = epoch);
        self.begin();
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0..=2 => {
                let which = self.random.below(2) as usize;
                let topic = if which == 0 { self.random.below(2) as usize } else { 2 };
                let publisher = &mut self.publishers[which];
                if publisher.under_way.len() < 20 && publisher.end.is_connected {
                    self.sent += 1;
                    self.topics.insert(self.sent, topic);
                    publisher.publish(&mut self.world, topic, self.sent);
                }
            }
            3..=5 => (0..=self.random.below(6)).for_each(|_| {
                let which = self.random.below(4) as usize;
                self.subscribers[which].answer(&mut self.world);
            }),
            6 => self.write_rows(false),
            7 => self.write_notes(),
            8 if self.random.below(4) == 0 => {
                let which = self.random.below(6) as usize;
                if which < 4 {
                    self.subscribers[which].end.come(&mut self.world, &mut self.random);
                    self.subscribers[which].answers.clear();
                } else {
                    self.publishers[which - 4].end.come(&mut self.world, &mut self.random);
                }
            }
            9 => self.world.advance(self.random.below(400)),
            10 if self.random.below(6) == 0 => self.crash(),
            _ => self.world.turn_all(),
        }
        self.hear();
    }

    fn hear(&mut self) {
        let sent = self.sent;
        self.publishers.iter_mut().for_each(|one| one.hear(&mut self.world));
        self.subscribers.iter_mut().for_each(|one| one.hear(&mut self.world, sent));
    }

    /// The disk works, and everybody says everything: then nothing may be missing.
    fn end(&mut self) {
        for _ in 0..20_000 {
            self.write_rows(true);
            self.write_notes();
            self.world.turn_all();
            self.hear();
            let is_done = self.subscribers.iter().all(|one| one.answers.is_empty() && one.end.is_connected);
            for one in &mut self.subscribers {
                while !one.answers.is_empty() && one.end.is_connected {
                    one.answer(&mut self.world);
                }
            }
            self.world.turn_all();
            if is_done && self.publishers.iter().all(|one| one.under_way.is_empty()) && self.has_all() {
                return self.check();
            }
        }
        self.check();
        panic!("it never comes to rest");
    }

    fn has_all(&self) -> bool {
        self.subscribers.iter().filter(|one| one.is_subscribed).all(|one| {
            let got = |number: &u32, topic: &usize| one.got.get(topic).is_some_and(|got| got.contains(number));
            let owed = self.topics.iter().filter(|(number, topic)| **number > one.owed_from && one.wants(**topic) > 0);
            owed.into_iter().all(|(number, topic)| got(number, topic))
        })
    }

    fn check(&self) {
        for one in self.subscribers.iter().filter(|one| one.is_subscribed) {
            for (topic, name) in TOPICS.iter().enumerate() {
                let owed = |number: &u32| {
                    one.wants(topic) > 0 && *number > one.owed_from && self.topics.get(number) == Some(&topic)
                };
                let wanted: Vec<u32> = self.topics.keys().copied().filter(owed).collect();
                let got = one.got.get(&topic).into_iter().flatten().copied();
                let mut got: Vec<u32> =
                    got.filter(|number| *number > one.owed_from && !self.unsure.contains(number)).collect();
                got.sort_unstable();
                assert_eq!(got, wanted, "{} {name} at QoS {}", one.end.name, one.wants(topic));
            }
        }
        // At QoS 2 each publish is one message, whatever was said again.
        let mut seen = std::collections::HashSet::new();
        for row in &self.past.rows {
            let number: [u8; 4] = row.content().try_into().unwrap();
            assert!(seen.insert(number), "{} is two messages", u32::from_be_bytes(number));
        }
    }
}

#[test]
fn where_the_disk_is_promised_a_crash_neither_loses_nor_repeats() {
    live_all(|seed| {
        let mut life = Life::new(seed);
        (0..600).for_each(|_| life.step());
        life.end();
    });
}
