//! Whatever happens while requests wait for messages, what a socket takes is one whole answer after the other.

mod large;

use crate::http::{field, get};
use crate::world::client::Random;
use crate::world::past::Past;
use crate::world::seeds::seeded;
use crate::world::{Place, World, open_settings};
use godwit_core::settings::JournalSettings;
use proptest::prelude::*;
use serde_json::Value;

/// The answers that a socket took since the last look; what is left must be the beginning of another.
struct Reader {
    place: Place,
    bytes: Vec<u8>,
}

impl Reader {
    /// Status, place and body of the next answer, if it is whole.
    fn next(&mut self, world: &mut World) -> Option<(u16, Option<String>, String)> {
        self.bytes.append(&mut world.socket(self.place).taken);
        let text = std::str::from_utf8(&self.bytes).expect("UTF-8").to_owned();
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "this is no answer: {text}");
        let (head, rest) = text.split_once("\r\n\r\n")?;
        let head = format!("{head}\r\n");
        let length: usize = field(&head, "Content-Length").expect("a length").parse().expect("a number");
        let body = rest.get(..length)?.to_owned();
        self.bytes.drain(..head.len() + 2 + length);
        Some((head[9..12].parse().expect("a status"), field(&head, "Godwit-Position").map(str::to_owned), body))
    }
}

/// A request in any of the ways to ask; `place` is what an answer before it said.
fn request(random: &mut Random, place: Option<&str>) -> String {
    let selectors =
        ["subject=/a/0", "subject=/a/*", "subject=/a/0&subject=/a/1", "subject=/**&subject=/a/2", "subject=/none"];
    let selector = selectors[random.below(selectors.len() as u64) as usize];
    let from = match (random.below(6), place) {
        (0, _) => "&snapshot=true".to_owned(),
        (1, _) => "&last=3&snapshot=true".to_owned(),
        (2, _) => format!("&after=7.{}&snapshot=true", random.below(40)),
        (3, _) => "&since=a1.1.1795250000000".to_owned(),
        (_, Some(place)) => format!("&last_event_id={place}&snapshot=true"),
        (_, None) => String::new(),
    };
    get(&format!("/v1/messages?{selector}{from}&limit={}&wait={}", 1 + random.below(6), random.below(3)), None)
}

proptest! {
    #![proptest_config(seeded(64))]

    /// Messages come, logs let go, subjects are purged, sockets take little at a time, and requests ask from anywhere.
    #[test]
    fn what_a_socket_takes_is_one_whole_answer_after_the_other(seed in 1u64..u64::MAX, is_pending in any::<bool>()) {
        let mut random = Random(seed);
        let mut settings = open_settings();
        settings.limits.log_messages_max = 1 + random.below(8) as usize;
        let mut world = World::new(settings, 2, is_pending);
        let publisher = world.connect(0);
        let mut readers: Vec<Reader> = (0..3).map(|n| Reader { place: world.accept(n % 2), bytes: Vec::new() }).collect();
        let (mut asked, mut places) = ([0; 3], [None, None, None]);
        for _ in 0..60 {
            for _ in 0..random.below(30) {
                let content = "x".repeat(random.below(2_000) as usize);
                let publish = format!("{{\"publish\":\"/a/{}\",\"content\":\"{content}\"}}", random.below(4));
                world.say(publisher, &publish);
            }
            world.turn(0);
            match random.below(8) {
                0 => drop(world.node.lock().expect("unpoisoned").purge(&format!("/a/{}", random.below(4)), None)),
                1 => world.advance(random.below(1_500)),
                _ => {}
            }
            for (number, reader) in readers.iter_mut().enumerate() {
                if asked[number] < 2 && random.below(2) == 0 {
                    let text = request(&mut random, places[number].as_deref());
                    world.bytes(reader.place, text.as_bytes());
                    asked[number] += 1;
                }
            }
            world.turn_all();
            for (number, reader) in readers.iter_mut().enumerate() {
                while let Some((status, place, body)) = reader.next(&mut world) {
                    prop_assert!(status == 200 || status == 400, "{body}");
                    let found: Result<Vec<Value>, _> = serde_json::from_str(&body);
                    prop_assert!(status == 400 || found.is_ok(), "{body}");
                    asked[number] -= 1;
                    places[number] = place.or(places[number].take());
                }
            }
        }
        for _ in 0..4 {
            world.advance(2_500);
            world.turn_all();
        }
        for (number, reader) in readers.iter_mut().enumerate() {
            while reader.next(&mut world).is_some() {
                asked[number] -= 1;
            }
        }
        prop_assert_eq!(asked, [0; 3], "each was answered");
    }
}

#[test]
fn standard_messages_count_against_the_limit_of_an_answer() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    let mut reader = Reader { place: world.accept(0), bytes: Vec::new() };
    world.bytes(reader.place, get("/v1/messages?subject=/a&limit=2&wait=30", None).as_bytes());
    world.turn(0);
    let publish = r#"{"publish":"/a","guaranteed":false,"content":1}"#;
    world.say(publisher, &format!("[{}]", [publish; 5].join(",")));
    world.turn(0);
    world.turn_all();
    let (status, _, body) = reader.next(&mut world).expect("an answer");
    let items: Vec<Value> = serde_json::from_str(&body).expect("JSON");
    let messages = items.iter().filter(|item| item.get("message").is_some()).count();
    let dropped: u64 = items.iter().filter_map(|item| item["count"].as_u64()).sum();
    assert_eq!((status, messages, dropped), (200, 2, 3), "{body}");
}

#[test]
fn interest_ends_with_a_long_poll_and_a_plain_read_is_none() {
    let mut world = World::new(open_settings(), 1, false);
    let (watcher, reader) = (world.connect(0), world.accept(0));
    world.ask(watcher, r#"{"id":1,"watch":"/**"}"#);
    let interest = |world: &mut World| -> Vec<(String, bool)> {
        let heard = world.heard(watcher).into_iter();
        let of = |one: Value| Some((one["interest"].as_str()?.to_owned(), one["subscribers"].as_bool()?));
        heard.filter_map(of).collect()
    };
    for subject in ["/a", "/b/*"] {
        world.bytes(reader, get(&format!("/v1/messages?subject={subject}"), None).as_bytes());
        for _ in 0..20 {
            world.turn_all();
            world.advance(250);
        }
        assert_eq!(interest(&mut world), [], "who reads what there is waits for nothing");
        world.bytes(reader, get(&format!("/v1/messages?subject={subject}&wait=1"), None).as_bytes());
        world.turn_all();
        assert_eq!(interest(&mut world), [(subject.to_owned(), true)]);
        world.advance(1_000);
        world.turn_all();
        // `interest_debounce_ms` later, and a sweep.
        for _ in 0..9 {
            world.advance(250);
            world.turn_all();
        }
        assert_eq!(interest(&mut world), [(subject.to_owned(), false)]);
    }
}

#[test]
fn a_plus_in_a_query_is_a_blank_and_the_404_says_so() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.accept(0);
    for (target, is_hinted, verb) in [
        ("/v1/snapshot?subject=/a+b", true, "GET"),
        ("/v1/snapshot?subject=/a%20b", false, "GET"),
        ("/v1/snapshot?subject=/a+b", true, "DELETE"),
        ("/v1/snapshot?subject=/a%20b", false, "DELETE"),
    ] {
        world.bytes(place, get(target, None).replacen("GET", verb, 1).as_bytes());
        world.turn_all();
        let text = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).expect("UTF-8");
        assert!(text.starts_with("HTTP/1.1 404 ") && text.contains("%2B") == is_hinted, "{text}");
    }
}

#[test]
fn what_polyfills_of_event_sources_add_is_taken() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    world.ask(publisher, r#"[{"id":1,"publish":"/a","content":1},{"id":2,"publish":"/a","content":2}]"#);
    let place = world.accept(0);
    world.bytes(place, get("/v1/stream?subject=/a&_=1795250000000&lastEventId=7.1", None).as_bytes());
    world.turn_all();
    let text = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).expect("UTF-8");
    assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("id: 7.2") && !text.contains("id: 7.1\n"), "{text}");
    let asks = "OPTIONS /v1/stream?subject=/a HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nAccess-Control-Request-Method: GET\r\n\r\n";
    let place = world.accept(0);
    world.bytes(place, asks.as_bytes());
    world.turn_all();
    let text = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).expect("UTF-8");
    let allowed = text.lines().find(|line| line.starts_with("Access-Control-Allow-Headers")).expect("the field");
    assert!(allowed.contains("Cache-Control"), "{allowed}");
}

/// Answers one after the other, each from the place of the last, until one is empty; returns what they held.
fn read_all(world: &mut World, asked: &str, place: String) -> Vec<Value> {
    read_with(world, asked, place, |_| {})
}

/// The same with random other events at each turn. An answer with content never ends at the position where it began.
fn read_with(world: &mut World, asked: &str, mut place: String, mut turn: impl FnMut(&mut World)) -> Vec<Value> {
    let parameter =
        if asked.matches("subject=").count() == 1 && !asked.contains('*') { "after" } else { "last_event_id" };
    let mut reader = Reader { place: world.accept(0), bytes: Vec::new() };
    let mut all = Vec::new();
    for _ in 0..1_000 {
        world.bytes(reader.place, get(&format!("/v1/messages?{asked}&{parameter}={place}"), None).as_bytes());
        let mut answer = None;
        for _ in 0..1_000 {
            world.turn(0);
            turn(world);
            answer = reader.next(world);
            if answer.is_some() {
                break;
            }
        }
        let (status, next, body) = answer.expect("an answer");
        assert_eq!(status, 200, "{body}");
        let items: Vec<Value> = serde_json::from_str(&body).expect("JSON");
        if items.is_empty() {
            return all;
        }
        all.extend(items);
        let next = next.expect("a place");
        assert_ne!(next, place, "an answer that would be given again: {body}");
        place = next;
    }
    panic!("no end after 1,000 answers, the last from {place}");
}

/// Where requests of these selectors begin while there is nothing.
fn first_place(world: &mut World, asked: &str) -> String {
    let mut reader = Reader { place: world.accept(0), bytes: Vec::new() };
    world.bytes(reader.place, get(&format!("/v1/messages?{asked}"), None).as_bytes());
    world.turn_all();
    reader.next(world).expect("an answer").1.expect("a place")
}

proptest! {
    #![proptest_config(seeded(64))]

    /// With any limit and order of messages, each answer continues after the previous one, and together they contain every message.
    #[test]
    fn answers_of_several_subscriptions_come_to_an_end_with_everything(seed in 1u64..u64::MAX, limit in 1usize..9) {
        let mut random = Random(seed);
        let selectors = ["subject=/a/0&subject=/a/1", "subject=/a/*&subject=/a/1", "subject=/a/0&subject=/a/1&subject=/a/2"];
        let asked = format!("{}&limit={limit}", selectors[random.below(3) as usize]);
        let mut world = World::new(open_settings(), 1, false);
        let place = first_place(&mut world, &asked);
        let publisher = world.connect(0);
        let mut counts = [0u64; 3];
        for _ in 0..1 + random.below(5) {
            let subject = random.below(3) as usize;
            for _ in 0..1 + random.below(30) {
                let subject = if random.below(4) == 0 { random.below(3) as usize } else { subject };
                counts[subject] += 1;
                world.say(publisher, &format!("{{\"publish\":\"/a/{subject}\",\"content\":{}}}", counts[subject]));
                world.turn(0);
            }
        }
        let all = read_all(&mut world, &asked, place);
        for (number, &count) in counts.iter().enumerate() {
            let subject = format!("/a/{number}");
            if asked.contains(&subject) || asked.contains('*') {
                let of = all.iter().filter(|one| one["message"] == *subject);
                let mut got: Vec<u64> = of.filter_map(|one| one["content"].as_u64()).collect();
                got.sort_unstable();
                got.dedup();
                prop_assert_eq!(got, (1..=count).collect::<Vec<_>>());
            }
        }
        let total: u64 = counts.iter().sum();
        prop_assert!(all.len() as u64 <= total * 3, "{} elements for {} messages", all.len(), total);
    }
}

proptest! {
    #![proptest_config(seeded(64))]

    /// The same after the messages were evicted from memory: they are read from pages of the journal.
    #[test]
    fn answers_that_are_read_back_come_to_an_end_with_everything(
        seed in 1u64..u64::MAX, limit in 1usize..9, page_max in 1usize..9,
    ) {
        let mut random = Random(seed);
        let selectors = ["subject=/a/0", "subject=/a/*", "subject=/a/0&subject=/a/1", "subject=/a/*&subject=/a/1"];
        let asked = format!("{}&limit={limit}&wait={}", selectors[random.below(4) as usize], random.below(2));
        let mut settings = open_settings();
        settings.journal = Some(JournalSettings::default());
        settings.limits.log_messages_max = 1 + random.below(3) as usize;
        let mut world = World::new(settings, 1, false);
        let place = first_place(&mut world, asked.split("&limit").next().expect("a selector"));
        let publisher = world.connect(0);
        let mut counts = [0u64; 3];
        for _ in 0..1 + random.below(60) {
            let subject = random.below(3) as usize;
            counts[subject] += 1;
            world.say(publisher, &format!("{{\"publish\":\"/a/{subject}\",\"content\":{}}}", counts[subject]));
            world.turn(0);
        }
        let mut past = Past { page_max, ..Past::default() };
        past.serve(&mut world);
        let all = read_with(&mut world, &asked, place, |world| {
            past.serve(world);
            world.advance(100);
        });
        for (number, &count) in counts.iter().enumerate() {
            let subject = format!("/a/{number}");
            if asked.contains(&subject) || asked.contains('*') {
                let of = all.iter().filter(|one| one["message"] == *subject);
                let mut got: Vec<u64> = of.filter_map(|one| one["content"].as_u64()).collect();
                got.sort_unstable();
                got.dedup();
                prop_assert_eq!(got, (1..=count).collect::<Vec<_>>(), "{} {}", subject, asked);
            }
        }
        prop_assert!(all.iter().all(|one| one.get("gap").is_none()), "{:?}", all);
    }
}
