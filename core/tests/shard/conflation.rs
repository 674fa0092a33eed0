//! Readers of merged messages who come and go in the midst of windows, on other shards and with whatever place they have: each is sent
//! every message in exactly one frame, and its rows in the journal say so to the last message.

use std::collections::{BTreeMap, HashMap};

use crate::ledger::{deliveries, journaling};
use crate::world::seeds::seeded;
use crate::world::{Place, World};
use godwit_core::journal::{DeliveryRow, Range};
use godwit_core::position::{Position, ResumeToken};
use godwit_core::subject::Pattern;
use proptest::prelude::*;
use serde_json::{Value, json};

const SUBJECTS: [&str; 3] = ["/a", "/b", "/c/d"];
const SELECTORS: [&str; 4] = ["/a", "/b", "/*", "/**"];

/// A reader: what it has of each subject, and how it names that when it comes back.
struct Reader {
    place: Place,
    selector: &'static str,
    conflate_ms: u64,
    is_binary: bool,
    stands: BTreeMap<String, Position>,
    resume_token: Option<String>,
    /// Resumed by a resume token alone, with these places: what lies between that and them comes again.
    again: BTreeMap<String, Position>,
    /// It wanted nothing of what there was: a subject begins with its next message.
    begins_anywhere: bool,
}

impl Reader {
    fn is_pattern(&self) -> bool {
        self.selector.contains('*')
    }

    fn hear(&mut self, heard: Vec<Value>) -> Result<(), TestCaseError> {
        for value in heard {
            if value["ok"] == "subscribed" {
                if !self.is_pattern() && value["outcome"] == "live" {
                    self.stands.insert(self.selector.into(), parse(&value["at"]));
                }
            } else if let Some(resume_token) = value["resume_token"].as_str() {
                self.resume_token = Some(resume_token.to_owned());
            } else if value["message"].is_string() {
                self.take(&value)?;
            } else {
                prop_assert!(value["ok"].is_string(), "{} heard {value}", self.selector);
            }
        }
        Ok(())
    }

    fn take(&mut self, value: &Value) -> Result<(), TestCaseError> {
        let (subject, at) = (value["message"].as_str().unwrap().to_owned(), parse(&value["at"]));
        let again = self.again.remove(&subject);
        let stand = self.stands.insert(subject, at);
        if value["snapshot"] == true {
            return Ok(());
        }
        let after = value.get("after").map_or(Position { sequence: at.sequence - 1, ..at }, parse);
        let count = value["conflated"].as_u64().unwrap_or(1);
        prop_assert_eq!(count, at.sequence - after.sequence, "{}", value);
        if let Some(stand) = stand {
            let is_again = again.is_some_and(|again| after.sequence <= again.sequence);
            prop_assert!(
                after == stand || is_again,
                "after {stand}: {} every {} ms: {}",
                self.selector,
                self.conflate_ms,
                value
            );
        } else if stand.is_none() && self.is_pattern() && !self.begins_anywhere {
            prop_assert_eq!(after.sequence, 0, "{} begins in the midst: {}", self.selector, value);
        }
        Ok(())
    }
}

fn parse(value: &Value) -> Position {
    Position::parse(value.as_str().expect("a position")).expect("a position")
}

struct Life {
    world: World,
    publisher: Place,
    readers: Vec<Reader>,
    rows: Vec<DeliveryRow>,
    /// Contents are padded with fewer bytes.
    pad_max: usize,
    /// What was published, by arrival: they are given in the order of acceptance.
    published: Vec<&'static str>,
}

impl Life {
    fn new(is_pending: bool, window_bytes_max: usize) -> Self {
        let mut settings = journaling();
        settings.limits.stream_window_bytes_max = window_bytes_max;
        settings.limits.resume_token_interval_ms = 100;
        let mut world = World::new(settings, 2, is_pending);
        let publisher = world.connect(0);
        Self { world, publisher, readers: Vec::new(), rows: Vec::new(), pad_max: 1, published: Vec::new() }
    }

    fn publish(&mut self, which: usize, count: usize) {
        for _ in 0..count {
            let subject = SUBJECTS[which % SUBJECTS.len()];
            self.published.push(subject);
            let number = self.published.len();
            let content = json!({ format!("{}", number % 4): number, "pad": "x".repeat(number * 37 % self.pad_max) });
            self.world.say(self.publisher, &json!({"publish": subject, "content": content}).to_string());
        }
        self.world.turn(self.publisher.0);
    }

    fn join(&mut self, which: usize, conflate_ms: u64, is_binary: bool, shard: usize, wants_snapshot: bool) {
        let selector = SELECTORS[which % SELECTORS.len()];
        let place = self.world.connect_on(shard, if is_binary { "binary" } else { "json" });
        let (stands, resume_token) = (BTreeMap::new(), None);
        let reader = Reader {
            place,
            selector,
            conflate_ms,
            is_binary,
            stands,
            resume_token,
            again: BTreeMap::new(),
            begins_anywhere: false,
        };
        self.readers.push(reader);
        let mut command = json!({"id": 1, "subscribe": selector, "conflate_ms": conflate_ms});
        if !is_binary && !wants_snapshot {
            command["snapshot"] = json!(false);
            self.readers.last_mut().unwrap().begins_anywhere = true;
        }
        self.say(self.readers.len() - 1, &command);
    }

    fn say(&mut self, index: usize, command: &Value) {
        let reader = &self.readers[index];
        let (place, is_binary) = (reader.place, reader.is_binary);
        if is_binary {
            self.world.say_bytes(place, &crate::world::binary::subscribe(command));
        } else {
            self.world.say(place, &command.to_string());
        }
        self.world.turn(place.0);
    }

    /// The connection ends wherever it is; the reader comes back with what it received whole.
    fn come_back(&mut self, index: usize, shard: usize, is_exact: bool, conflate_ms: u64) -> Result<(), TestCaseError> {
        let heard = self.world.heard(self.readers[index].place);
        self.readers[index].hear(heard)?;
        self.world.gone(self.readers[index].place);
        let place = self.world.connect_on(shard, if self.readers[index].is_binary { "binary" } else { "json" });
        let reader = &mut self.readers[index];
        (reader.place, reader.conflate_ms) = (place, conflate_ms);
        let mut command = json!({"id": 1, "subscribe": reader.selector, "conflate_ms": conflate_ms});
        if !reader.is_pattern() {
            match reader.stands.get(reader.selector) {
                Some(at) => command["after"] = json!(at.to_string()),
                None => reader.stands.clear(),
            }
        } else if let Some(resume_token) = &reader.resume_token {
            command["since"] = json!(resume_token);
            if is_exact {
                let map: HashMap<&String, String> = reader.stands.iter().map(|(s, at)| (s, at.to_string())).collect();
                command["after"] = json!(map);
            }
            reader.again = if is_exact { BTreeMap::new() } else { reader.stands.clone() };
        } else {
            (reader.stands, reader.begins_anywhere) = (BTreeMap::new(), false);
        }
        self.say(index, &command);
        Ok(())
    }

    fn end(mut self) -> Result<(), TestCaseError> {
        for index in 0..self.readers.len() {
            self.world.give_room(self.readers[index].place, usize::MAX / 2);
        }
        for _ in 0..12 {
            self.world.advance(100);
            self.world.turn_all();
        }
        let mut heads: BTreeMap<&str, u64> = BTreeMap::new();
        self.published.iter().for_each(|subject| *heads.entry(subject).or_default() += 1);
        for index in 0..self.readers.len() {
            let heard = self.world.heard(self.readers[index].place);
            self.readers[index].hear(heard)?;
            let reader = &self.readers[index];
            for (subject, stand) in &reader.stands {
                prop_assert_eq!(stand.sequence, heads.get(&**subject).copied().unwrap_or(0), "{}", subject);
            }
            self.world.gone(reader.place);
        }
        self.world.turn_all();
        for shard in 0..2 {
            self.rows.extend(deliveries(self.world.take_rows(shard)));
        }
        self.check_rows()
    }

    /// Every row holds exactly the messages of its range.
    fn check_rows(&self) -> Result<(), TestCaseError> {
        let mut stands: HashMap<(u64, &str), u64> = HashMap::new();
        for row in &self.rows {
            let stand = stands.entry((row.peer.connection.0, &row.selector)).or_insert(u64::MAX);
            let pattern = Pattern::parse(&row.selector);
            let of = |at: u64| {
                self.published.get(at as usize - 1).is_some_and(|name| pattern.as_ref().unwrap().matches(name))
            };
            let count = |from: u64, to: u64| (from..=to).filter(|&at| of(at)).count() as u64;
            let (from, to, whole) = match row.range {
                Range::Subject { from: Some(from), to, .. } => (from, to, to + 1 - from),
                Range::Pattern { from: Some(from), to, .. } => (from, to, count(from, to)),
                Range::Subject { to, .. } | Range::Pattern { to, .. } => {
                    *stand = to;
                    continue;
                }
            };
            let is_pattern = matches!(row.range, Range::Pattern { .. });
            let is_next = *stand == u64::MAX || *stand + 1 == from;
            // A pattern's rows pass over what it does not hold.
            let is_apart = is_pattern && *stand < from && count(*stand + 1, from - 1) == 0;
            prop_assert!(is_next || is_apart, "{stand} then {row:?}");
            *stand = to;
            prop_assert_eq!((row.count + row.conflated, row.gaps), (whole, 0), "{:?} in {:?}", row, self.rows);
        }
        Ok(())
    }
}

type Step = (u8, usize, usize, bool, bool);

/// A life of those steps, then its end.
fn live(is_pending: bool, window_bytes_max: usize, pad_max: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut life = Life::new(is_pending, window_bytes_max);
    life.pad_max = pad_max;
    for (what, which, width, one, other) in steps {
        let conflate_ms = [100, 200, 300, 500][width];
        let index = which % life.readers.len().max(1);
        match what {
            0..=2 => life.publish(which, 1 + width),
            3 if life.readers.len() < 8 => life.join(which, conflate_ms, one, usize::from(other), which % 2 == 0),
            4 if !life.readers.is_empty() => life.come_back(index, usize::from(one), other, conflate_ms)?,
            5 => {
                life.world.advance([10, 60, 110, 240][width]);
                life.world.turn_all();
            }
            6 => drop(life.world.turn_alone(usize::from(one))),
            // Slow consumers: a socket takes so many bytes, in the midst of frames, of merged ones as well.
            7 if !life.readers.is_empty() => life.world.socket(life.readers[index].place).room = 31 * which,
            8 if !life.readers.is_empty() => {
                life.world.give_room(life.readers[index].place, [1, 90, 700, 5_000][width]);
                if other {
                    life.world.turn_all();
                }
            }
            _ if !life.readers.is_empty() => {
                let heard = life.world.heard(life.readers[index].place);
                life.readers[index].hear(heard)?;
            }
            _ => {}
        }
    }
    life.end()
}

proptest! {
    #![proptest_config(seeded(192))]

    #[test]
    fn a_merged_message_holds_nothing_that_its_reader_has_and_rows_hold_exactly_their_ranges(
        is_pending in any::<bool>(),
        window_bytes_max in prop_oneof![Just(1_usize << 20), 256..4096_usize],
        pad_max in prop_oneof![Just(1_usize), Just(400), Just(6000)],
        steps in prop::collection::vec((0..10_u8, 0..12_usize, 0..4_usize, any::<bool>(), any::<bool>()), 1..60),
    ) {
        live(is_pending, window_bytes_max, pad_max, steps)?;
    }
}

#[test]
fn a_frame_that_the_window_let_go_of_is_not_in_the_row_of_who_leaves_behind_it() {
    let publish = |which, width| (0, which, width, false, false);
    let join = |which| (3, which, 0, false, false);
    let turn = (5, 0, 2, false, false);
    let (first, second) = ([join(0), join(10), (4, 0, 0, false, false)], [publish(0, 1), publish(0, 2), publish(0, 3)]);
    let third = [(7, 5, 0, false, false), publish(0, 1), publish(9, 0), join(0), publish(4, 0), turn, join(0)];
    let last = [publish(0, 0), publish(0, 0), turn, publish(0, 0), join(0), (4, 11, 0, false, false)];
    let steps = [&first[..], &second, &third, &last].concat();
    live(false, 3_846, 6_000, steps).expect("its row has the messages of its range");
}

#[test]
fn who_has_a_part_of_an_open_window_is_sent_the_rest_of_it_alone() {
    let mut world = World::new(journaling(), 1, false);
    let (publisher, first, second) = (world.connect(0), world.connect(0), world.connect(0));
    let publish = |world: &mut World, n: u32| {
        world.ask(publisher, &json!({"publish": "/a", "content": {"n": n}}).to_string());
    };
    world.ask(first, r#"{"id":1,"subscribe":"/a","conflate_ms":500}"#);
    publish(&mut world, 1);
    let heard = world.ask(second, r#"{"id":1,"subscribe":"/a","conflate_ms":500,"after":"7.1"}"#);
    assert_eq!((&heard[0]["outcome"], &heard[0]["count"], heard.len()), (&json!("recovered"), &json!(0), 1));
    world.advance(500);
    world.turn_all();
    assert_eq!(world.heard(first).len(), 1);
    assert_eq!(world.heard(second), [] as [Value; 0], "it has all of that window");
    publish(&mut world, 2);
    let third = world.connect(0);
    assert_eq!(world.ask(third, r#"{"id":1,"subscribe":"/a","conflate_ms":500}"#)[1]["at"], "7.2");
    publish(&mut world, 3);
    world.advance(500);
    world.turn_all();
    let merged = |heard: &[Value]| heard.iter().map(|m| (m["at"].clone(), m["conflated"].clone())).collect::<Vec<_>>();
    for reader in [first, second] {
        assert_eq!(merged(&world.heard(reader)), [(json!("7.3"), json!(2))]);
    }
    assert_eq!(merged(&world.heard(third)), [(json!("7.3"), Value::Null)], "what its snapshot held is not sent again");
}

#[test]
fn who_joins_a_pattern_amid_a_window_hears_at_once_that_the_join_is_complete() {
    let mut world = World::new(journaling(), 1, false);
    let (publisher, first, second) = (world.connect(0), world.connect(0), world.connect(0));
    world.ask(first, r#"{"id":1,"subscribe":"/*","conflate_ms":60000}"#);
    world.ask(publisher, r#"{"publish":"/a","content":1}"#);
    let heard = world.ask(second, r#"{"id":1,"subscribe":"/*","conflate_ms":60000}"#);
    let resume_token = heard.last().and_then(|last| last["resume_token"].as_str()).expect("the join's resume token");
    assert_eq!(
        ResumeToken::parse(resume_token).map(|resume_token| resume_token.arrival),
        Some(1),
        "it has the first in a snapshot"
    );
    world.advance(60_000);
    world.turn_all();
    let heard = world.heard(second);
    assert!(heard.iter().all(|value| value["message"].is_null()), "{heard:?}");
}

#[test]
fn what_the_log_let_go_of_within_a_window_comes_from_the_window() {
    let mut settings = journaling();
    settings.limits.log_messages_max = 3;
    let mut world = World::new(settings, 1, false);
    let (publisher, first, second) = (world.connect(0), world.connect(0), world.connect(0));
    for selector in ["/a", "/*"] {
        world.ask(first, &json!({"id": 1, "subscribe": selector, "conflate_ms": 500}).to_string());
    }
    world.ask(publisher, r#"{"publish":"/a","content":{"n":1}}"#);
    for selector in ["/a", "/*"] {
        world.ask(second, &json!({"id": 1, "subscribe": selector, "conflate_ms": 500}).to_string());
    }
    for n in 2..=9 {
        world.ask(publisher, &json!({"publish": "/a", "content": {"n": n}}).to_string());
    }
    world.advance(500);
    world.turn_all();
    let heard = world.heard(second);
    let merged: Vec<_> = heard.iter().filter(|m| m["message"].is_string()).map(|m| m["conflated"].clone()).collect();
    assert_eq!(merged, [json!(9), json!(9)], "{heard:?}");
    assert!(heard.iter().all(|value| value["gap"].is_null()), "{heard:?}");
}
