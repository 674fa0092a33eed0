//! Random lives of many clients against a model that knows every message: nothing missed, nothing twice, nothing out of
//! order, and every gap says exactly what it is. Sockets fill up in mid-frame, logs are tiny, clients come back with what
//! they had. Each seed is one life; a failure names it.

use std::collections::HashMap;

use crate::world::client::{Client, Ledger, Random, live_all, position};
use crate::world::{Place, World, open_settings};
use serde_json::{Value, json};

fn wire(is_binary: bool) -> &'static str {
    if is_binary { "binary" } else { "json" }
}

struct Life {
    world: World,
    random: Random,
    ledger: Ledger,
    clients: Vec<Client>,
    publisher: Place,
    count: u64,
}

const SUBJECTS: [&str; 5] = ["/a/x", "/a/y", "/a/z/deep", "/b/x", "/b"];
const SELECTORS: [&str; 8] = ["/a/x", "/a/y", "/b/x", "/b", "/a/*", "/a/**", "/**", "/*/x"];

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..10 {
            random.below(2);
        }
        let mut settings = open_settings();
        settings.limits.log_messages_max = 1 + random.below(12) as usize;
        settings.limits.log_age_ms_max = 500 + random.below(5000);
        settings.limits.stream_window_bytes_max = 256 << random.below(6);
        settings.limits.stream_linger_ms = random.below(2) * 3000;
        settings.limits.reply_buffer_bytes_max = 256 << random.below(5);
        settings.limits.index_entries_max = 16 << random.below(12);
        settings.limits.catch_up_bytes_max = 1 << random.below(16);
        settings.limits.idle_ms_max = 1 << 40;
        let mut world = World::new(settings, 1 + random.below(3) as u8, random.below(2) == 0);
        let publisher = world.connect(0);
        Self { world, random, ledger: Ledger::default(), clients: Vec::new(), publisher, count: 0 }
    }

    fn shards(&self) -> u64 {
        self.world.shard_count() as u64
    }

    fn publish(&mut self) {
        let subject = SUBJECTS[self.random.below(5) as usize];
        let burst_max = if self.random.below(4) == 0 { 40 } else { 4 };
        let burst = 1 + self.random.below(burst_max);
        for _ in 0..burst {
            self.count += 1;
            let pad = if self.random.below(60) == 0 { 40_000 } else { self.random.below(200) as usize };
            let content = json!({"n": self.count, "pad": "x".repeat(pad)});
            let id = self.count;
            self.world.say(self.publisher, &json!({"id": id, "publish": subject, "content": content}).to_string());
            self.world.turn_if(self.publisher.0, self.random.below(3) == 0);
            self.ledger.contents.insert((subject.to_owned(), 0, id), content);
        }
        self.world.turn(self.publisher.0);
        self.world.settle();
        for reply in self.world.heard(self.publisher) {
            assert_eq!(reply["ok"], "published", "{reply}");
            let (at, id) = (position(&reply["at"]), reply["id"].as_u64().unwrap());
            let content = self.ledger.contents.remove(&(subject.to_owned(), 0, id)).expect("one answer for each");
            self.ledger.contents.insert((subject.to_owned(), at.epoch, at.sequence), content);
            let before = self.ledger.heads.insert(subject.to_owned(), at);
            if let Some(before) = before.filter(|before| before.epoch == at.epoch) {
                assert_eq!(at.sequence, before.sequence + 1);
            }
        }
    }

    fn join(&mut self) {
        let selector = SELECTORS[self.random.below(8) as usize];
        let is_binary = self.random.below(2) == 0;
        let place = self.world.connect_on(self.random.below(self.shards()) as usize, wire(is_binary));
        let conflate_ms = if self.random.below(5) == 0 { 100 * (1 + self.random.below(5)) } else { 0 };
        let mut client = Client {
            place,
            selector: selector.to_owned(),
            is_pattern: selector.contains('*'),
            conflate_ms,
            is_binary,
            has_resumed: false,
            stands: HashMap::new(),
            resume_token: None,
            begins_anywhere: selector.contains('*'),
            allows_repeats: false,
            is_subscribed: false,
            standard: (0, 0),
            asked_history: false,
        };
        let command = client.subscribe(&mut self.random, false);
        self.clients.push(client);
        let last = self.clients.len() - 1;
        self.clients[last].standard = (0, self.count_standard(last));
        self.say(place, is_binary, &command);
        self.world.turn_if(place.0, self.random.below(2) == 0);
    }

    /// The connection breaks wherever it is; what was received whole counts.
    fn come_back(&mut self) {
        let Some(index) = self.pick() else { return };
        self.listen(index);
        self.world.gone(self.clients[index].place);
        if self.random.below(2) == 0 {
            self.publish();
        }
        let is_binary = self.random.below(2) == 0;
        let place = self.world.connect_on(self.random.below(self.shards()) as usize, wire(is_binary));
        let before = self.count_standard(index);
        let client = &mut self.clients[index];
        client.is_binary = is_binary;
        client.place = place;
        let is_resume = if client.is_pattern {
            client.resume_token.is_some()
        } else {
            client.stands.contains_key(&client.selector)
        };
        if client.is_pattern {
            client.allows_repeats = is_resume;
        }
        if !is_resume {
            client.stands.clear();
            client.begins_anywhere = client.is_pattern;
        }
        client.is_subscribed = false;
        client.has_resumed = true;
        client.standard = (0, before);
        let command = client.subscribe(&mut self.random, is_resume);
        self.say(place, is_binary, &command);
        self.world.turn_if(place.0, self.random.below(2) == 0);
    }

    /// Standard messages of a client's subjects so far.
    fn count_standard(&self, index: usize) -> u64 {
        let pattern = godwit_core::subject::Pattern::parse(&self.clients[index].selector).unwrap();
        self.ledger.standard.iter().filter(|(subject, _)| pattern.matches(subject)).map(|(_, count)| count).sum()
    }

    fn publish_standard(&mut self) {
        let subject = SUBJECTS[self.random.below(5) as usize];
        for _ in 0..1 + self.random.below(5) {
            let command = json!({"publish": subject, "content": 0, "guaranteed": false});
            self.world.say(self.publisher, &command.to_string());
            *self.ledger.standard.entry(subject.to_owned()).or_default() += 1;
            let is_due = self.random.below(2) == 0;
            self.world.turn_if(self.publisher.0, is_due);
        }
        self.world.turn(self.publisher.0);
        self.world.settle();
    }

    fn say(&mut self, place: Place, is_binary: bool, command: &Value) {
        if is_binary {
            self.world.say_bytes(place, &crate::world::binary::subscribe(command));
        } else {
            self.world.say(place, &command.to_string());
        }
    }

    fn pick(&mut self) -> Option<usize> {
        let count = self.clients.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize)
    }

    fn squeeze(&mut self) {
        let Some(index) = self.pick() else { return };
        let place = self.clients[index].place;
        if self.random.below(2) == 0 {
            self.world.socket(place).room = self.random.below(400) as usize;
        } else {
            let room = [1, 10, 100, 1000, 100_000][self.random.below(5) as usize];
            self.world.give_room(place, room);
            self.world.turn_if(place.0, self.random.below(2) == 0);
        }
    }

    fn listen(&mut self, index: usize) {
        let heard = self.world.heard(self.clients[index].place);
        self.clients[index].hear(&self.ledger, heard);
    }

    fn step(&mut self) {
        match self.random.below(13) {
            12 => self.publish_standard(),
            0..=4 => self.publish(),
            5 if self.clients.len() < 12 => self.join(),
            6 => self.come_back(),
            7 | 8 => self.squeeze(),
            9 => {
                let ms = [1, 50, 120, 400, 3000, 1_200_000][self.random.below(6) as usize];
                self.world.advance(ms);
                self.world.turn_all();
            }
            _ => {
                if let Some(index) = self.pick() {
                    self.listen(index);
                }
            }
        }
    }

    fn end(&mut self) {
        for index in 0..self.clients.len() {
            self.world.give_room(self.clients[index].place, usize::MAX / 4);
        }
        self.world.turn_all();
        for _ in 0..8 {
            self.world.advance(300);
            self.world.turn_all();
        }
        let _ = self.world.heard(self.publisher);
        for index in 0..self.clients.len() {
            self.listen(index);
            let client = &self.clients[index];
            assert!(client.is_subscribed);
            if client.conflate_ms == 0 {
                let (counted, before) = client.standard;
                // Who came back may also be sent some from before, as long as the window has them.
                let expected = self.count_standard(index) - before;
                let is_loose = client.has_resumed || client.asked_history;
                let is_exact = counted == expected || is_loose && counted >= expected;
                assert!(is_exact, "{}: of {expected} standard messages {counted} accounted for", client.selector);
            }
            for (subject, head) in &self.ledger.heads {
                let stand = client.stands.get(subject);
                let is_mine = if client.is_pattern {
                    godwit_core::subject::Pattern::parse(&client.selector).unwrap().matches(subject)
                } else {
                    client.selector == *subject
                };
                if is_mine && self.world.is_known(subject) && (stand.is_some() || !client.is_pattern) {
                    assert_eq!(
                        stand,
                        Some(head),
                        "{} conflate {} stands elsewhere on {subject}",
                        client.selector,
                        client.conflate_ms
                    );
                }
            }
        }
    }
}

#[test]
fn nobody_ever_loses_their_place() {
    live_all(|seed| {
        let mut life = Life::new(seed);
        (0..250).for_each(|_| life.step());
        life.end();
    });
}
