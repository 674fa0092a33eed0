//! HTTP against a node of values: requests in any pieces, streams that are cut anywhere and resumed by their last id, answers that
//! wait. What a client got must be what was published, told once or told as a gap.

use std::collections::HashMap;

use crate::world::client::Random;
use crate::world::events::{Event, Events};
use crate::world::seeds::seeded;
use crate::world::{Place, World, open_settings};
use godwit_core::position::Position;
use proptest::prelude::*;
use serde_json::Value;

/// What a socket took since the last look, as text.
fn taken(world: &mut World, place: Place) -> String {
    String::from_utf8(std::mem::take(&mut world.socket(place).taken)).expect("UTF-8")
}

pub(crate) fn ask(world: &mut World, place: Place, request: &str) -> String {
    world.bytes(place, request.as_bytes());
    world.turn_all();
    taken(world, place)
}

fn post(subject: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/messages?subject={subject} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn get(target: &str, id: Option<&str>) -> String {
    let field = id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n{field}\r\n")
}

/// Status and body of one answer.
pub(crate) fn answer(text: &str) -> (u16, String) {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    (head[9..12].parse().expect("a status"), body.to_owned())
}

pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// What the client of a stream has been sent of each subject.
#[derive(Default)]
struct Ledger {
    stands: HashMap<String, u64>,
}

impl Ledger {
    /// Positions follow one another; what was sent before may come again, nothing may be left out.
    fn take(&mut self, events: &mut Events, has_repeats: bool) {
        for Event { kind, data: value, .. } in events.found.drain(..) {
            assert_ne!(kind, "gap", "nothing was lost: {value}");
            if kind == "subscribed"
                && let (Some(at), Some(0)) = (value["at"].as_str(), value["count"].as_u64())
            {
                let at = Position::parse(at).expect("a position").sequence;
                let stand = self.stands.entry(value["subject"].as_str().expect("a subject").to_owned()).or_insert(at);
                assert_eq!(*stand, at, "{value}");
            }
            if kind != "message" {
                continue;
            }
            let at = Position::parse(value["at"].as_str().expect("a position")).expect("a position").sequence;
            let subject = value["message"].as_str().expect("a subject").to_owned();
            let stand = self.stands.entry(subject).or_default();
            if value["snapshot"] == true {
                *stand = at;
                continue;
            }
            assert!(at == *stand + 1 || has_repeats && at <= *stand, "{at} after {stand}: {value}");
            *stand = (*stand).max(at);
        }
    }
}

proptest! {
    #![proptest_config(seeded(200))]

    /// Whatever was cut wherever, a stream that is resumed by its last id leaves nothing out.
    #[test]
    fn a_stream_resumed_by_its_last_id_loses_nothing(seed in 1u64..u64::MAX, which in 0usize..4, is_pending in any::<bool>()) {
        let target = [
            "/v1/stream?subject=/a",
            "/v1/stream?subject=/a&subject=/b&subject=/c/d",
            "/v1/stream?subject=/**",
            "/v1/stream?subject=/c/*&subject=/a",
        ][which];
        let mut random = Random(seed);
        let mut world = World::new(open_settings(), 2, is_pending);
        let publisher = world.connect(0);
        let company: Vec<Place> = (0..random.below(3)).map(|_| world.accept(1)).collect();
        for &place in &company {
            ask(&mut world, place, &get(target, None));
        }
        let mut published: HashMap<&str, u64> = HashMap::new();
        let (mut events, mut ledger) = (Events::default(), Ledger::default());
        let mut place = world.accept(1);
        ask(&mut world, place, &get(target, None)).clone_into(&mut events.text);
        for step in 0..60 {
            match random.below(10) {
                0 => {
                    world.gone(place);
                    events.text.clear();
                    place = world.accept(1);
                    world.bytes(place, get(target, events.last_id.as_deref()).as_bytes());
                }
                1 => world.socket(place).room = random.below(400) as usize,
                2 | 3 => world.give_room(place, random.below(3000) as usize),
                _ => {
                    for _ in 0..random.below(6) {
                        let subject = ["/a", "/b", "/c/d"][random.below(3) as usize];
                        let blanks = " ".repeat(random.below(200) as usize);
                        world.say(publisher, &format!("{{\"publish\":\"{subject}\",\"content\":[{step},\n\"{blanks}\"]}}"));
                        *published.entry(subject).or_default() += 1;
                    }
                }
            }
            world.turn_all();
            let text = taken(&mut world, place);
            events.read(&text);
            ledger.take(&mut events, which > 0);
            for &place in &company {
                taken(&mut world, place);
            }
        }
        world.give_room(place, usize::MAX / 4);
        for _ in 0..8 {
            world.advance(250);
            world.turn_all();
        }
        let text = taken(&mut world, place);
        events.read(&text);
        ledger.take(&mut events, which > 0);
        for (subject, count) in published {
            let is_heard = match which { 0 => subject == "/a", 3 => subject != "/b", _ => true };
            prop_assert!(!is_heard || ledger.stands.get(subject) == Some(&count), "{subject} {count} {:?}", ledger.stands);
        }
    }

    /// Polls that go on where the last one stood leave nothing out and repeat nothing of one subject.
    #[test]
    fn polls_leave_nothing_out(seed in 1u64..u64::MAX, is_many in any::<bool>()) {
        let mut random = Random(seed);
        let mut world = World::new(open_settings(), 2, seed % 2 == 0);
        let publisher = world.connect(0);
        let place = world.accept(1);
        let target = if is_many { "/v1/messages?subject=/a/*&subject=/b" } else { "/v1/messages?subject=/b" };
        let (mut at, mut ledger, mut sent, mut waiting) = (None::<String>, Ledger::default(), 0u64, false);
        for _ in 0..40 {
            for _ in 0..random.below(4) {
                world.say(publisher, "{\"publish\":\"/b\",\"content\":1}");
                world.say(publisher, "{\"publish\":\"/a/c\",\"content\":2}");
                sent += 1;
            }
            world.turn_all();
            if !waiting {
                let limit = 1 + random.below(5);
                let place_of = match &at {
                    None => "&last=1000".to_owned(),
                    Some(at) if is_many => format!("&last_event_id={at}"),
                    Some(at) => format!("&after={at}"),
                };
                let limit = if at.is_none() { 1000 } else { limit };
                world.bytes(place, get(&format!("{target}{place_of}&limit={limit}&wait=1"), None).as_bytes());
                waiting = true;
            }
            world.turn_all();
            if random.below(3) == 0 {
                world.advance(1500);
                world.turn_all();
            }
            let text = taken(&mut world, place);
            if text.is_empty() {
                continue;
            }
            waiting = false;
            let (status, body) = answer(&text);
            prop_assert_eq!(status, 200, "{}", body);
            at = field(&text, "Godwit-Position").map(str::to_owned);
            prop_assert!(at.is_some(), "{text}");
            let found: Vec<Value> = serde_json::from_str(&body).expect("JSON");
            let as_event = |data| Event { kind: "message".to_owned(), id: None, data };
            let mut events = Events { found: found.into_iter().map(as_event).collect(), ..Events::default() };
            prop_assert!(events.found.iter().all(|event| event.data.get("gap").is_none()), "{body}");
            ledger.take(&mut events, is_many);
        }
        prop_assert!(ledger.stands.get("/b").copied().unwrap_or(0) <= sent);
    }
}

proptest! {
    /// Polls of one who comes back after the log has moved on: each is one answer, and says of what is left out how much it was.
    #[test]
    fn polls_say_what_the_log_has_let_go(seed in 1u64..u64::MAX, is_many in any::<bool>()) {
        let mut random = Random(seed);
        let mut settings = open_settings();
        settings.limits.log_messages_max = 1 + random.below(6) as usize;
        let mut world = World::new(settings, 2, seed % 2 == 0);
        let publisher = world.connect(0);
        let place = world.accept(1);
        let target = format!("/v1/messages?subject={}&snapshot=true", if is_many { "/a/*" } else { "/a/0" });
        let text = ask(&mut world, place, &get(&target, None));
        let mut at = field(&text, "Godwit-Position").expect("a place").to_owned();
        let (mut sent, mut stands) = (HashMap::<String, u64>::new(), HashMap::<String, u64>::new());
        for last in 0..6 {
            for _ in 0..random.below(120) * u64::from(last < 5) {
                let subject = format!("/a/{}", random.below(3));
                let content = "x".repeat(random.below(3000) as usize);
                world.say(publisher, &format!("{{\"publish\":\"{subject}\",\"content\":\"{content}\"}}"));
                *sent.entry(subject).or_default() += 1;
            }
            world.turn_all();
            for _ in 0..12 {
                let place_of = if is_many { "since" } else { "after" };
                let limit = 1 + random.below(5);
                let text = ask(&mut world, place, &get(&format!("{target}&{place_of}={at}&limit={limit}"), None));
                prop_assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
                let length = field(&text, "Content-Length").and_then(|length| length.parse().ok());
                let (_, body) = answer(&text);
                prop_assert_eq!(Some(body.len()), length, "{}", text);
                at = field(&text, "Godwit-Position").expect("a place").to_owned();
                for push in serde_json::from_str::<Vec<Value>>(&body).expect("JSON") {
                    let number = |name: &str| Some(Position::parse(push[name].as_str()?).expect("a position").sequence);
                    let subject = push["message"].as_str().or(push["gap"].as_str()).expect("a subject").to_owned();
                    let stand = stands.entry(subject).or_default();
                    let reached = number("at").expect("a position");
                    if is_many && reached <= *stand {
                        continue; // of several subjects some may come again
                    }
                    if push.get("gap").is_some() {
                        let from = number("after").unwrap_or(0);
                        prop_assert!(from == *stand || is_many && from < *stand, "{push} after {stand}");
                        prop_assert_eq!(push["missed"].as_u64(), Some(reached - from), "{}", push);
                    } else {
                        let is_due = reached == *stand + u64::from(push["snapshot"] != true);
                        prop_assert!(is_due, "{push} after {stand}");
                    }
                    *stand = reached;
                }
            }
        }
        sent.retain(|subject, _| is_many || subject == "/a/0");
        prop_assert_eq!(stands, sent);
    }
}

#[test]
fn a_post_is_numbered_and_answered_with_its_position() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.accept(0);
    assert_eq!(answer(&ask(&mut world, place, &post("/a", "{\"x\":1}"))), (201, "{\"at\":\"7.1\"}".into()));
    let text = ask(&mut world, place, &get("/v1/snapshot?subject=/a", None));
    assert_eq!(answer(&text), (200, "{\"x\":1}".into()));
    assert_eq!(field(&text, "Godwit-Position"), Some("7.1"));
    let array = r#"[{"id":1,"publish":"/a","text":"t"},{"publish":"nowhere","text":""},{"ping":true},{"publish":"/b","bytes":"AA=="}]"#;
    let request = post("/a", array).replace("?subject=/a", "");
    let (status, body) = answer(&ask(&mut world, place, &request));
    let rows: Vec<Value> = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &rows[0]), (200, &serde_json::json!({"id": 1, "ok": "published", "at": "7.2"})));
    assert_eq!((&rows[1]["error"], &rows[2]["error"], &rows[3]["at"]), (&4101.into(), &4103.into(), &"7.1".into()));
    let keyed = request.replacen("\r\n", "\r\nIdempotency-Key: 0123456789abcdef\r\n", 1);
    let (status, body) = answer(&ask(&mut world, place, &keyed));
    assert!(status == 400 && body.contains("4116"), "a key is one message's: {body}");
}

#[test]
fn nothing_is_answered_before_the_request_before_it() {
    let mut world = World::new(open_settings(), 1, true);
    let place = world.accept(0);
    let pipelined =
        [post("/a", "1"), get("/nothing", None), get("/v1/messages?subject=/b&wait=1", None), post("/a", "2")].concat();
    let text = ask(&mut world, place, &pipelined);
    assert_eq!(text.matches("HTTP/1.1 ").count(), 2, "{text}");
    world.advance(1100);
    world.turn_all();
    let rest = taken(&mut world, place);
    assert!(rest.starts_with("HTTP/1.1 200 ") && rest.contains("\r\n\r\n[]HTTP/1.1 201 "), "{rest}");
    assert!(!world.socket(place).is_paused, "it is read again");
}

/// However many requests come at once and in whatever pieces, and however slowly the answers are taken: each is answered, in order.
#[test]
fn pipelined_requests_in_pieces_are_answered_in_their_order() {
    for (seed, is_pending) in (1..60).zip([true, false].into_iter().cycle()) {
        let mut random = Random(seed * 7919);
        let mut world = World::new(open_settings(), 1, is_pending);
        let place = world.accept(0);
        let mut all = String::new();
        for number in 0..400 {
            match random.below(4) {
                0 => all.push_str(&get(&format!("/nothing/{number}"), None)),
                1 => all.push_str(&get("/v1/snapshot?subject=/a", None)),
                2 => all.push_str(&get("/v1/messages?subject=/a&limit=1", None)),
                _ => all.push_str(&post("/a", &format!("{{\"number\":{number}}}"))),
            }
        }
        all = format!("{}{all}{}", post("/a", "0"), get("/", None).replace("Host", "Connection: close\r\nHost"));
        world.socket(place).room = 0;
        let (mut rest, mut answers) = (all.as_bytes(), String::new());
        for _ in 0..100_000 {
            if !rest.is_empty() && !world.socket(place).is_paused {
                let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(5000) as usize));
                world.bytes(place, piece);
                rest = behind;
            }
            world.give_room(place, random.below(9000) as usize);
            world.turn_all();
            answers.push_str(&taken(&mut world, place));
            if answers.contains("Connection: close") {
                break;
            }
        }
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 402, "{seed}");
        assert!(!answers.contains("HTTP/1.1 400"), "{seed}");
        let numbers: Vec<u64> = answers
            .match_indices("{\"at\":\"7.")
            .map(|(at, _)| answers[at + 9..].split('"').next().expect("a number").parse().expect("a number"))
            .collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{seed} {numbers:?}");
    }
}

#[test]
fn an_id_that_is_none_of_ours_is_a_gap_and_nothing_else() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.accept(0);
    ask(&mut world, place, &post("/a", "1"));
    for id in ["garbage", "9.9", "7.99", "\u{e9}", &"9".repeat(1000), "1.2.3.4", "a1.99.1.86f7e437", "ff.1.1.x1234"] {
        for target in ["/v1/stream?subject=/a", "/v1/stream?subject=/a&subject=/b", "/v1/stream?subject=/**"] {
            let place = world.accept(0);
            let text = ask(&mut world, place, &get(target, Some(id)));
            assert!(text.starts_with("HTTP/1.1 200 "), "{id} {target} {text}");
            let is_of_another = matches!(id, "1.2.3.4" | "a1.99.1.86f7e437");
            assert!(text.contains("event: gap\n") || is_of_another, "{id} {target} {text}");
            assert!(text.contains("\"message\":\"/a\""), "{id} {target} {text}");
            world.gone(place);
        }
    }
}

#[test]
fn a_stream_that_is_changed_keeps_the_place_of_what_it_keeps() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.accept(0);
    let mut events = Events::default();
    let place = world.accept(0);
    events.read(&ask(&mut world, place, &get("/v1/stream?subject=/a&subject=/b", None)));
    ask(&mut world, publisher, &post("/a", "1"));
    events.read(&taken(&mut world, place));
    world.gone(place);
    ask(&mut world, publisher, &post("/a", "2"));
    ask(&mut world, publisher, &post("/c", "3"));
    let place = world.accept(0);
    let id = events.last_id.clone().expect("an id");
    let text = ask(&mut world, place, &get(&format!("/v1/stream?subject=/a&subject=/c&last_event_id={id}"), None));
    assert!(text.contains("\"outcome\":\"recovered\",\"count\":1") && text.contains("\"at\":\"7.2\""), "{text}");
    assert!(text.contains("\"outcome\":\"snapshot\",\"count\":1") && !text.contains("gap"), "{text}");
}

#[test]
fn a_slow_body_and_a_silent_connection_end() {
    let mut world = World::new(open_settings(), 1, false);
    let (slow, silent) = (world.accept(0), world.accept(0));
    world.bytes(slow, &post("/a", "12345").as_bytes()[..100]);
    world.turn_all();
    for _ in 0..100 {
        world.advance(250);
        world.turn_all();
    }
    assert!(taken(&mut world, slow).starts_with("HTTP/1.1 408 "));
    assert!(world.socket(slow).is_closed && world.socket(silent).is_closed);
}
