//! Reading back: whoever names a place that memory has let go of gets everything after it from the journal, in order and once, and goes on
//! from memory; what the journal does not hold either is a gap of exactly so many.
use crate::world;
use crate::world::past::Past;
use crate::world::{Place, World, open_settings};
use godwit_core::settings::{JournalSettings, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

fn remembering(messages: usize) -> Settings {
    let mut settings = open_settings();
    settings.journal = Some(JournalSettings::default());
    settings.limits.log_messages_max = messages;
    settings.limits.journal_reads_max = 2;
    settings
}

fn publish(world: &mut World, place: Place, subject: &str, content: &Value) {
    world.say(place, &json!({"publish": subject, "content": content}).to_string());
    world.turn(place.0);
}

/// A node whose logs keep so few, after so many messages of `/a`.
fn aged(kept: usize, messages: u64) -> (World, Past, Place) {
    let mut world = World::new(remembering(kept), 1, false);
    let publisher = world.connect(0);
    for number in 1..=messages {
        publish(&mut world, publisher, "/a", &json!(number));
    }
    let mut past = Past { page_max: 7, ..Past::default() };
    past.serve(&mut world);
    (world, past, publisher)
}

fn subscribe(world: &mut World, past: &mut Past, wire: &str, command: &Value) -> (Place, Vec<Value>) {
    let place = world.connect_on(0, wire);
    if wire == "binary" {
        world.say_bytes(place, &world::binary::subscribe(command));
    } else {
        world.say(place, &command.to_string());
    }
    world.turn(0);
    past.serve(world);
    world.settle();
    let heard = world.heard(place);
    (place, heard)
}

fn ats(heard: &[Value]) -> Vec<String> {
    let messages = heard.iter().filter(|value| value.get("message").is_some());
    messages.map(|value| value["at"].as_str().unwrap().to_owned()).collect()
}

fn gaps(heard: &[Value]) -> Vec<(String, String, Value)> {
    let gaps = heard.iter().filter(|value| value.get("gap").is_some());
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    gaps.map(|gap| (text(&gap["after"]), text(&gap["at"]), gap["missed"].clone())).collect()
}

fn positions(range: std::ops::RangeInclusive<u64>) -> Vec<String> {
    range.map(|sequence| format!("7.{sequence}")).collect()
}

#[test]
fn who_resumes_from_before_memory_gets_everything_and_then_what_comes_live() {
    for wire in ["json", "binary"] {
        let (mut world, mut past, publisher) = aged(5, 40);
        let (place, heard) =
            subscribe(&mut world, &mut past, wire, &json!({"id": 1, "subscribe": "/a", "after": "7.3"}));
        let answer = heard.iter().find(|value| value["ok"] == "subscribed").unwrap();
        assert_eq!(
            (&answer["outcome"], &answer["count"], &answer["at"]),
            (&json!("recovered"), &Value::Null, &json!("7.40"))
        );
        assert_eq!((ats(&heard), gaps(&heard).len()), (positions(4..=40), 0), "{wire}");
        publish(&mut world, publisher, "/a", &json!("live"));
        assert_eq!(ats(&world.heard(place)), ["7.41"], "{wire}");
        let asked = past.asked;
        past.serve(&mut world);
        assert_eq!(past.asked, asked, "at the head nothing is read back");
    }
}

#[test]
fn what_comes_while_pages_are_read_is_lost_nowhere_even_if_memory_moves_past_it() {
    let (mut world, mut past, publisher) = aged(5, 20);
    let place = world.connect(0);
    world.ask(place, r#"{"id":1,"subscribe":"/a","after":"7.0"}"#);
    let mut heard = Vec::new();
    for number in 21..=80 {
        publish(&mut world, publisher, "/a", &json!(number));
        past.note(&world);
        past.write_all();
        if number % 3 == 0 {
            for ask in world.take_asks() {
                let page = past.answer(&ask);
                world.order(0, godwit_core::report::Order::Page(Box::new(page)));
            }
            world.turn(0);
        }
        heard.extend(world.heard(place));
    }
    past.serve(&mut world);
    heard.extend(world.heard(place));
    assert_eq!((ats(&heard), gaps(&heard).len()), (positions(1..=80), 0));
}

#[test]
fn a_reader_whose_socket_is_full_gets_each_message_once() {
    for is_pending in [false, true] {
        let mut world = World::new(remembering(3), 1, is_pending);
        let (publisher, place) = (world.connect(0), world.connect(0));
        for number in 1..=30 {
            publish(&mut world, publisher, "/a", &json!(number));
        }
        let mut past = Past { page_max: 7, ..Past::default() };
        past.serve(&mut world);
        world.socket(place).room = 100;
        world.say(place, r#"{"id":1,"subscribe":"/a","after":"7.0"}"#);
        let mut heard = Vec::new();
        for _ in 0..200 {
            world.turn(0);
            past.serve(&mut world);
            heard.extend(world.heard(place));
            world.give_room(place, 37);
        }
        assert_eq!((ats(&heard), gaps(&heard).len()), (positions(1..=30), 0));
    }
}

#[test]
fn what_the_journal_let_go_of_is_a_gap_of_exactly_so_many() {
    for (on_gap, gap, rest) in
        [("oldest", ("7.3", "7.10", 7), positions(11..=40)), ("snapshot", ("7.3", "7.40", 37), positions(40..=40))]
    {
        let (mut world, mut past, _) = aged(5, 40);
        past.first = 10;
        let command = json!({"id": 1, "subscribe": "/a", "after": "7.3", "on_gap": on_gap});
        let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
        let (after, at, missed) = gap;
        assert_eq!(gaps(&heard), [(after.to_owned(), at.to_owned(), json!(missed))], "{heard:?}");
        assert_eq!(ats(&heard), rest, "{on_gap}");
    }
}

#[test]
fn a_row_that_is_damaged_is_told_and_never_silent() {
    let (mut world, mut past, _) = aged(5, 40);
    past.damaged = vec![19];
    let command = json!({"id": 1, "subscribe": "/a", "after": "7.0", "on_gap": "oldest"});
    let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
    assert_eq!(gaps(&heard), [("7.19".to_owned(), "7.20".to_owned(), json!(1))]);
    assert_eq!(ats(&heard), [positions(1..=19), positions(21..=40)].concat());
}

#[test]
fn retention_that_overtakes_the_reader_gives_a_gap() {
    let (mut world, mut past, _) = aged(5, 40);
    let place = world.connect(0);
    world.ask(place, r#"{"id":1,"subscribe":"/a","after":"7.0","on_gap":"oldest"}"#);
    for ask in world.take_asks() {
        let page = past.answer(&ask);
        world.order(0, godwit_core::report::Order::Page(Box::new(page)));
    }
    world.turn(0);
    past.first = 30;
    past.serve(&mut world);
    let heard = world.heard(place);
    assert_eq!(gaps(&heard), [("7.7".to_owned(), "7.30".to_owned(), json!(23))]);
    assert_eq!(ats(&heard), [positions(1..=7), positions(31..=40)].concat());
}

#[test]
fn without_a_readable_journal_memory_decides() {
    let (mut world, mut past, _) = aged(5, 40);
    past.has_failed = true;
    let command = json!({"id": 1, "subscribe": "/a", "after": "7.3", "on_gap": "oldest"});
    let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
    assert_eq!(gaps(&heard), [("7.3".to_owned(), "7.35".to_owned(), json!(32))]);
    assert_eq!(ats(&heard), positions(36..=40));
}

#[test]
fn history_reaches_as_far_back_as_the_journal() {
    let (mut world, mut past, _) = aged(5, 40);
    let command = json!({"id": 1, "subscribe": "/a", "last": 25});
    for (first, has_failed, oldest) in [(0, false, 16), (20, false, 21), (40, false, 36), (0, true, 36)] {
        (past.first, past.has_failed) = (first, has_failed);
        let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
        assert_eq!(ats(&heard), positions(oldest..=40));
        assert_eq!(gaps(&heard).len(), 0, "what is gone is not told: it was not asked for");
    }
    while world.node.lock().unwrap().purge("/a", None).unwrap().has_more {}
    let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
    assert_eq!((ats(&heard).len(), gaps(&heard).len()), (0, 0));
}

#[test]
fn what_an_operator_took_back_is_read_back_for_nobody() {
    let (mut world, mut past, publisher) = aged(5, 20);
    while world.node.lock().unwrap().purge("/a", None).unwrap().has_more {}
    publish(&mut world, publisher, "/a", &json!("new"));
    past.serve(&mut world);
    let command = json!({"id": 1, "subscribe": "/a", "after": "7.3", "on_gap": "oldest"});
    let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
    assert_eq!(gaps(&heard), [("7.3".to_owned(), "7.20".to_owned(), json!(17))]);
    assert_eq!(ats(&heard), ["7.21"]);
}

#[test]
fn what_was_taken_back_of_a_pattern_is_told_by_subject() {
    let (mut world, mut past, publisher) = aged(5, 20);
    while world.node.lock().unwrap().purge("/a", None).unwrap().has_more {}
    publish(&mut world, publisher, "/b", &json!("other"));
    let (_, heard) = subscribe(&mut world, &mut past, "json", &json!({"id": 1, "subscribe": "/*", "since": "a1.3.0"}));
    assert!(gaps(&heard).iter().all(|(_, at, missed)| at <= &"7.20".to_owned() && missed.is_u64()), "{heard:?}");
    assert_eq!(gaps(&heard).iter().map(|(_, _, missed)| missed.as_u64().unwrap()).sum::<u64>(), 17, "{heard:?}");
    assert_eq!(ats(&heard), ["7.1"], "that of /b");
}

#[test]
fn a_conflated_subscription_needs_only_the_last() {
    let (mut world, mut past, _) = aged(5, 40);
    let command = json!({"id": 1, "subscribe": "/a", "after": "7.3", "conflate_ms": 100});
    let (_, heard) = subscribe(&mut world, &mut past, "json", &command);
    assert_eq!((past.asked, gaps(&heard).len()), (0, 1));
}

#[test]
fn a_resume_token_from_before_memory_is_served_for_a_subject_and_a_pattern() {
    let each = [("json", "/a", 3), ("json", "/*", 3), ("binary", "/*", 3), ("json", "/*", 10), ("json", "/*", 38)];
    for (wire, selector, known) in each {
        let (mut world, mut past, publisher) = aged(5, 20);
        publish(&mut world, publisher, "/b", &json!("other"));
        for number in 21..=40 {
            publish(&mut world, publisher, "/a", &json!(number));
        }
        let mut command = json!({"id": 1, "subscribe": selector, "since": "a1.3.0"});
        if known > 3 {
            command["after"] = json!({"/a": format!("7.{known}")}); // further than the resume token
        }
        let (_, heard) = subscribe(&mut world, &mut past, wire, &command);
        let of_a: Vec<Value> = heard.iter().filter(|value| value["message"] == "/a").cloned().collect();
        assert_eq!((ats(&of_a), gaps(&heard).len()), (positions(known + 1..=40), 0), "{wire} {selector}: {heard:?}");
        let of_b = heard.iter().filter(|value| value["message"] == "/b").count();
        assert_eq!(of_b, usize::from(selector == "/*"));
    }
}

#[test]
fn more_readers_than_there_is_room_for_wait_their_turn() {
    let (mut world, mut past, _) = aged(5, 40);
    let places: Vec<Place> = (0..9).map(|_| world.connect(0)).collect();
    for place in &places {
        world.say(*place, r#"{"id":1,"subscribe":"/a","after":"7.0"}"#);
    }
    world.turn(0);
    world.settle();
    assert_eq!(past.serve_once(&mut world), 2, "journal_reads_max");
    past.serve(&mut world);
    for place in places {
        assert_eq!(ats(&world.heard(place)), positions(1..=40));
    }
}

/// A client that comes and goes, and what it was told.
#[derive(Debug, Default)]
struct Reader {
    place: Option<Place>,
    stand: u64,
    /// It has been at the head since it came: what it misses then is told, not read back.
    was_live: bool,
    has_truncated: bool,
}

impl Reader {
    fn hear(&mut self, world: &mut World, head: u64) -> Result<(), TestCaseError> {
        let Some(place) = self.place else { return Ok(()) };
        for value in world.heard(place) {
            let sequence = |field: &str| {
                value[field]
                    .as_str()
                    .and_then(|at| at.split_once('.'))
                    .and_then(|(_, sequence)| sequence.parse::<u64>().ok())
            };
            if value.get("gap").is_some() {
                let at = sequence("at").unwrap();
                prop_assert!(self.was_live || self.has_truncated, "{value} for {self:?}");
                prop_assert_eq!(value["missed"].as_u64(), Some(at - self.stand), "{}", value);
                prop_assert_eq!(sequence("after"), Some(self.stand));
                self.stand = at;
            } else if value.get("message").is_some() && value.get("snapshot").is_none() {
                let at = sequence("at").unwrap();
                prop_assert_eq!(at, self.stand + 1, "{} for {:?}", value, self);
                prop_assert_eq!(&value["content"], &json!(at), "what it was");
                self.stand = at;
            }
            // Of the last message the socket may have taken a part.
            self.was_live |= self.stand + 1 >= head;
        }
        Ok(())
    }
}

/// A node, its journal, and readers that come and go.
struct Scene {
    world: World,
    past: Past,
    publisher: Place,
    readers: Vec<Reader>,
    head: u64,
}

impl Scene {
    fn new(kept: usize, page_max: usize, is_pending: bool) -> Self {
        let mut world = World::new(remembering(kept), 1, is_pending);
        let publisher = world.connect(0);
        let past = Past { page_max, ..Past::default() };
        Self { world, past, publisher, readers: (0..4).map(|_| Reader::default()).collect(), head: 0 }
    }

    fn hear(&mut self) -> Result<(), TestCaseError> {
        self.readers.iter_mut().try_for_each(|reader| reader.hear(&mut self.world, self.head))
    }

    fn publish_some(&mut self, count: usize) -> Result<(), TestCaseError> {
        for _ in 0..count {
            self.head += 1;
            publish(&mut self.world, self.publisher, "/a", &json!(self.head));
            self.hear()?;
        }
        Ok(())
    }

    fn come(&mut self, which: usize, room: usize) {
        let place = self.world.connect(0);
        self.world.socket(place).room = room;
        let reader = &mut self.readers[which];
        let after = format!("7.{}", reader.stand);
        let command = json!({"id": 1, "subscribe": "/a", "after": after, "on_gap": "oldest"});
        self.world.say(place, &command.to_string());
        *reader = Reader { place: Some(place), was_live: reader.stand + 1 >= self.head, ..*reader };
    }

    fn leave(&mut self, which: usize, place: Place) -> Result<(), TestCaseError> {
        self.world.gone(place);
        let reader = &mut self.readers[which];
        reader.hear(&mut self.world, self.head)?;
        *reader = Reader { stand: reader.stand, has_truncated: reader.has_truncated, ..Reader::default() };
        Ok(())
    }

    fn step(&mut self, (what, which, size): (u8, usize, usize)) -> Result<(), TestCaseError> {
        match (what, self.readers[which].place) {
            (0..=2, _) => self.publish_some(1 + size % 4)?,
            (3, None) => self.come(which, size * 2),
            (3, Some(place)) => self.leave(which, place)?,
            (4, Some(place)) => self.world.give_room(place, size),
            (5, _) => self.past.serve(&mut self.world),
            (6, _) => {
                self.past.note(&self.world);
                self.past.write_all();
                self.past.serve_once(&mut self.world);
            }
            (7, _) if size % 5 == 0 => {
                self.past.first = self.past.first.max(self.past.len().saturating_sub(size));
                self.readers.iter_mut().for_each(|reader| reader.has_truncated = true);
            }
            _ => {}
        }
        self.world.turn(0);
        self.hear()
    }
}

proptest! {
    #![proptest_config(crate::world::seeds::seeded(96))]

    #[test]
    fn whoever_comes_back_gets_each_message_once_or_a_gap_that_counts_it(
        is_pending in any::<bool>(),
        kept in 1..8_usize,
        page_max in 1..9_usize,
        steps in prop::collection::vec((0..8_u8, 0..4_usize, 0..400_usize), 1..120),
    ) {
        let mut scene = Scene::new(kept, page_max, is_pending);
        for step in steps {
            scene.step(step)?;
        }
        for place in scene.readers.iter().filter_map(|reader| reader.place) {
            scene.world.give_room(place, usize::MAX / 2);
        }
        scene.world.turn(0);
        scene.past.serve(&mut scene.world);
        scene.hear()?;
        for reader in &scene.readers {
            prop_assert!(reader.place.is_none() || reader.stand == scene.head, "{:?} of {}", reader, scene.head);
        }
    }
}
