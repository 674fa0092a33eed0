//! Who comes back to a node that began with its journal, through a whole node of values: what is sent again, and what is told.

use std::collections::HashMap;
use std::sync::Arc;

use crate::http::{answer, field, get};
use crate::world::{World, open_settings};
use godwit_core::journal::KeptMessage;
use godwit_core::message::Kind;
use godwit_core::node::PastRun;
use godwit_core::position::Position;
use godwit_core::settings::PatternSettings;
use serde_json::{Value, json};

const RUN: u64 = 0xb0;

/// A node whose journal holds five messages of `/a`, of the epoch 7; it numbers in a later one, and has numbered one message.
fn restarted() -> World {
    let mut world = World::new(open_settings(), 1, false);
    let now = world.now;
    {
        let mut node = world.node.lock().unwrap();
        node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: u64::MAX, began: 1, last: 6 }]);
        for sequence in 1..=5 {
            let mut kept = KeptMessage::new(RUN, sequence, Arc::from("/a"), Position { epoch: 7, sequence });
            (kept.arrival, kept.time_ms, kept.is_retained) = (sequence + 1, now.wall_ms, true);
            kept.kind = Kind::Json;
            node.restore(kept.carry(b"{}", "", &[]), now);
        }
        assert_eq!(node.finish_restore(now).messages, 5);
    }
    let publisher = world.connect(0);
    let answer = world.ask(publisher, r#"{"id":1,"publish":"/a","content":{}}"#);
    assert_eq!(answer[0]["at"], "8.1");
    world
}

fn ask(world: &mut World, wire: &str, command: &Value) -> Vec<Value> {
    let place = world.connect_on(0, wire);
    if wire == "binary" {
        world.say_bytes(place, &crate::world::binary::subscribe(command));
    } else {
        world.say(place, &command.to_string());
    }
    world.turn(0);
    world.settle();
    world.heard(place)
}

fn pushes<'a>(heard: &'a [Value], what: &str) -> Vec<(&'a Value, &'a Value)> {
    heard.iter().filter(|v| v.get(what).is_some()).map(|v| (&v["at"], &v["after"])).collect()
}

#[test]
fn a_pattern_that_goes_over_the_end_of_a_run_has_the_right_positions_on_either_wire() {
    for wire in ["json", "binary"] {
        let mut world = restarted();
        let heard = ask(&mut world, wire, &json!({"id": 1, "subscribe": "/**", "since": format!("{RUN:x}.4.0")}));
        let ats: Vec<&Value> = pushes(&heard, "message").into_iter().map(|(at, _)| at).collect();
        assert_eq!(ats, ["7.4", "7.5", "8.1"], "{wire}: {heard:?}");
        assert_eq!(pushes(&heard, "message").last().unwrap().1, "7.5", "it says what it follows");
    }
}

/// The same, with a pattern that is kept out of the journal.
fn restarted_without(pattern: &str) -> World {
    let mut world = restarted();
    let mut settings = open_settings();
    settings.patterns =
        vec![PatternSettings { pattern: pattern.into(), journal: Some(false), ..PatternSettings::default() }];
    world.configure(&settings);
    world
}

#[test]
fn a_resume_token_from_before_a_restart_tells_of_the_part_that_no_journal_keeps() {
    for wire in ["json", "binary"] {
        let mut world = restarted_without("/b/**");
        let since = |run: u64, selector: &str| json!({"id": 1, "subscribe": selector, "since": format!("{run:x}.4.0")});
        let heard = ask(&mut world, wire, &since(RUN, "/**"));
        let gaps: Vec<_> = heard.iter().filter(|value| value.get("gap").is_some()).collect();
        let gap = gaps.first().expect("a gap");
        assert_eq!(
            (gaps.len(), &gap["gap"], &gap["reason"], &gap["missed"]),
            (1, &json!("/b/**"), &json!("epoch"), &json!(null))
        );
        let ats: Vec<&Value> = pushes(&heard, "message").into_iter().map(|(at, _)| at).collect();
        assert_eq!(ats, ["7.4", "7.5", "8.1"], "the token is good for the rest: {heard:?}");
        let heard = ask(&mut world, wire, &since(RUN, "/a/*"));
        assert!(pushes(&heard, "gap").is_empty(), "no subject is in both: {heard:?}");
        for selector in ["/b/*", "/b/**", "/b/c"] {
            let publisher = world.connect(0);
            world.ask(publisher, r#"{"publish":"/b/c","content":1}"#);
            let heard = ask(&mut world, wire, &since(RUN, selector));
            assert_eq!(heard[0]["outcome"], "resync", "{wire} {heard:?}");
            let gap = heard.iter().find(|value| value.get("gap").is_some()).expect("a gap");
            assert_eq!(
                (&gap["gap"], &gap["reason"], &gap["missed"]),
                (&json!(selector), &json!("epoch"), &json!(null))
            );
            assert!(!pushes(&heard, "message").is_empty(), "what was published since follows: {heard:?}");
        }
        let run = world.node.lock().unwrap().run();
        let heard = ask(&mut world, wire, &since(run, "/**"));
        assert!(pushes(&heard, "gap").is_empty(), "the same run has lost nothing: {heard:?}");
    }
}

#[test]
fn who_saw_more_than_the_journal_is_told_and_sent_nothing_twice() {
    for on_gap in ["snapshot", "oldest"] {
        let mut world = restarted();
        let place = json!({"id": 1, "subscribe": "/a", "after": "7.9", "on_gap": on_gap});
        let heard = ask(&mut world, "json", &place);
        assert_eq!(pushes(&heard, "gap"), [(&json!("8.0"), &json!("7.9"))], "{heard:?}");
        assert_eq!(pushes(&heard, "message").into_iter().map(|(at, _)| at).collect::<Vec<_>>(), ["8.1"], "{heard:?}");
    }
}

#[test]
fn a_resume_token_is_served_and_a_position_beyond_the_journal_gets_a_gap() {
    for on_gap in ["snapshot", "oldest"] {
        let mut world = restarted();
        let since = format!("{RUN:x}.4.0");
        let place = json!({"id": 1, "subscribe": "/**", "since": since, "after": {"/a": "7.9"}, "on_gap": on_gap});
        let heard = ask(&mut world, "json", &place);
        assert_eq!(pushes(&heard, "gap"), [(&json!("8.0"), &json!("7.9"))], "{heard:?}");
        assert_eq!(pushes(&heard, "message").into_iter().map(|(at, _)| at).collect::<Vec<_>>(), ["8.1"], "{heard:?}");
    }
}

/// A node of many runs before it, each of which gave `/a` two messages; the last ten of them nothing.
fn restarted_often(runs: u64) -> World {
    let world = World::new(open_settings(), 1, false);
    let now = world.now;
    let mut node = world.node.lock().unwrap();
    let run = |n| PastRun { run: RUN + n, epoch: 7 + n, epoch_end: 8 + n, began: 1 + 3 * n, last: 3 + 3 * n };
    node.begin_restore((0..runs + 10).map(run).collect());
    for n in 0..runs {
        for sequence in [1, 2] {
            let at = Position { epoch: 7 + n, sequence };
            let mut kept = KeptMessage::new(RUN + n, 2 * n + sequence, Arc::from("/a"), at);
            (kept.arrival, kept.time_ms, kept.is_retained) = (1 + 3 * n + sequence, now.wall_ms, true);
            kept.kind = Kind::Json;
            node.restore(kept.carry(b"{}", "", &[]), now);
        }
    }
    assert_eq!(node.finish_restore(now).messages, 2 * runs);
    drop(node);
    world
}

#[test]
fn pages_and_places_go_on_over_any_number_of_runs_that_are_kept() {
    let runs = 40;
    let mut world = restarted_often(runs);
    let all: Vec<String> = (0..runs).flat_map(|n| [format!("{}.1", 7 + n), format!("{}.2", 7 + n)]).collect();
    let place = world.accept(0);
    let (mut read, mut from) = (Vec::new(), "last=1000".to_owned());
    loop {
        let text = crate::http::ask(&mut world, place, &get(&format!("/v1/messages?subject=/a&limit=3&{from}"), None));
        let page: Vec<Value> = serde_json::from_str(&answer(&text).1).unwrap();
        let ats = page.iter().filter(|item| item.get("message").is_some());
        let before = read.len();
        read.extend(ats.map(|item| item["at"].as_str().unwrap().to_owned()));
        if read.len() == before {
            break;
        }
        from = format!("after={}", field(&text, "Godwit-Position").unwrap());
    }
    assert_eq!(read, all);
    for (index, at) in all.iter().enumerate() {
        let heard = ask(&mut world, "json", &json!({"id": 1, "subscribe": "/a", "after": at}));
        let ats: Vec<&Value> = pushes(&heard, "message").into_iter().map(|(at, _)| at).collect();
        assert_eq!(ats, all[index + 1..].iter().collect::<Vec<_>>(), "after {at}");
    }
}

/// What a client makes of what it hears: a message or a gap of an epoch that stands earlier in the order than its own is a repeat.
#[derive(Default)]
struct Listener {
    order: HashMap<String, Vec<String>>,
    stands: HashMap<String, (String, u64)>,
    got: Vec<String>,
}

impl Listener {
    fn hear(&mut self, heard: &[Value]) {
        for value in heard {
            if let Some(subject) = value["epochs"].as_str() {
                let order = value["order"].as_array().unwrap().iter().map(|epoch| epoch.as_str().unwrap().to_owned());
                self.order.insert(subject.to_owned(), order.collect());
            }
            let Some(subject) = value["message"].as_str() else { continue };
            let at = value["at"].as_str().unwrap();
            let (epoch, sequence) = at.split_once('.').unwrap();
            let sequence: u64 = sequence.parse().unwrap();
            let index = |epoch: &str| self.order.get(subject).and_then(|order| order.iter().position(|e| e == epoch));
            let is_duplicate = self.stands.get(subject).is_some_and(|(own, last)| {
                if own == epoch { sequence <= *last } else { index(epoch) < index(own) && index(epoch).is_some() }
            });
            if !is_duplicate {
                self.stands.insert(subject.to_owned(), (epoch.to_owned(), sequence));
                self.got.push(at.to_owned());
            }
        }
    }
}

#[test]
fn who_resumes_by_a_token_alone_over_a_restart_gets_nothing_twice() {
    for (wire, selector) in [("json", "/a"), ("json", "/**"), ("binary", "/a"), ("binary", "/**"), ("json", "/*")] {
        let mut world = restarted();
        let mut listener = Listener::default();
        for _ in 0..2 {
            // The connection is lost before another token comes.
            let resume = json!({"id": 1, "subscribe": selector, "since": format!("{RUN:x}.4.0")});
            listener.hear(&ask(&mut world, wire, &resume));
        }
        assert_eq!(listener.got, ["7.4", "7.5", "8.1"], "{wire} {selector}");
    }
}

#[test]
fn an_event_stream_names_the_order_of_epochs_before_what_comes_again() {
    let mut world = restarted();
    let place = world.accept(0);
    let digest = godwit_core::codec::sse::digest(&["/**"]);
    let request = format!("/v1/stream?subject=/**&last_event_id={RUN:x}.4.0.{digest}");
    let text = crate::http::ask(&mut world, place, &get(&request, None));
    let order =
        text.find("event: epochs\ndata: {\"epochs\":\"/a\",\"order\":[\"7\",\"8\"],\"pattern\":\"/**\"}\n").unwrap();
    assert!(order < text.find("\"at\":\"7.4\"").unwrap(), "{text}");
}

#[test]
fn a_token_from_more_epochs_ago_than_can_be_told_is_a_gap() {
    let mut world = restarted_often(80);
    for (n, is_gap) in [(20, true), (30, false)] {
        let since = format!("{:x}.{}.0", RUN + n, 3 * n + 2);
        let heard = ask(&mut world, "json", &json!({"id": 1, "subscribe": "/**", "since": since}));
        assert_eq!(!pushes(&heard, "gap").is_empty(), is_gap, "{n}");
        let orders: Vec<_> = heard.iter().filter_map(|value| value["order"].as_array()).collect();
        assert_eq!(orders.is_empty(), is_gap, "{n}");
        assert!(orders.iter().all(|order| order.len() <= 64), "{n}");
    }
}

#[test]
fn a_token_of_a_run_that_lost_messages_is_followed_by_the_next_run() {
    for wire in ["json", "binary"] {
        let mut world = restarted();
        let resume = json!({"id": 1, "subscribe": "/**", "since": format!("{RUN:x}.9.0")});
        let heard = ask(&mut world, wire, &resume);
        assert_eq!(pushes(&heard, "gap"), [(&Value::Null, &Value::Null)], "{heard:?}");
        assert_eq!(pushes(&heard, "message"), [(&json!("8.1"), &json!("7.5"))], "{heard:?}");
        assert!(heard.iter().all(|value| value.get("snapshot").is_none()), "{heard:?}");
        let one = ask(&mut world, wire, &json!({"id": 1, "subscribe": "/a", "since": format!("{RUN:x}.9.0")}));
        assert_eq!(pushes(&one, "gap"), [(&json!("8.0"), &Value::Null)], "{one:?}");
        assert_eq!(pushes(&one, "message").into_iter().map(|(at, _)| at).collect::<Vec<_>>(), ["8.1"], "{one:?}");
    }
}

#[test]
fn a_conflated_subscription_gets_the_newest_after_a_crash() {
    let mut world = restarted();
    let publisher = world.connect(0);
    world.ask(publisher, r#"{"id":1,"publish":"/a","content":{"n":2}}"#);
    let place = json!({"id": 1, "subscribe": "/a", "after": "7.9", "conflate_ms": 100});
    let heard = ask(&mut world, "json", &place);
    assert_eq!(pushes(&heard, "gap"), [(&json!("8.2"), &json!("7.9"))], "{heard:?}");
    assert_eq!(pushes(&heard, "message").into_iter().map(|(at, _)| at).collect::<Vec<_>>(), ["8.2"], "{heard:?}");
}

#[test]
fn a_change_of_epoch_that_lost_nothing_sends_no_gap() {
    for selector in ["/a", "/**"] {
        let mut world = restarted();
        let after = if selector == "/a" { json!("7.5") } else { json!({"/a": "7.5"}) };
        let heard = ask(&mut world, "json", &json!({"id": 1, "subscribe": selector, "after": after}));
        assert!(pushes(&heard, "gap").is_empty(), "{heard:?}");
        assert_eq!(pushes(&heard, "message"), [(&json!("8.1"), &json!("7.5"))], "{heard:?}");
    }
}

/// What an earlier copy of the journal went on to give out is not known here, though the epoch lies between two that are.
#[test]
fn a_position_of_a_run_that_a_restored_copy_does_not_have_is_a_gap() {
    for (after, is_known) in [("7.5", true), ("9.0", true), ("10.0", false), ("500.0", false), ("500.3", false)] {
        let mut settings = open_settings();
        settings.epoch = 1_000;
        settings.journal = Some(godwit_core::settings::JournalSettings::default());
        let mut world = World::new(settings, 1, false);
        let now = world.now;
        {
            let mut node = world.node.lock().unwrap();
            node.begin_restore(vec![PastRun { run: RUN, epoch: 7, epoch_end: 10, began: 1, last: 6 }]);
            for sequence in 1..=5 {
                let mut kept = KeptMessage::new(RUN, sequence, Arc::from("/a"), Position { epoch: 7, sequence });
                (kept.arrival, kept.time_ms) = (sequence + 1, now.wall_ms);
                node.restore(kept.carry(b"{}", "", &[]), now);
            }
            node.finish_restore(now);
        }
        let publisher = world.connect(0);
        world.ask(publisher, r#"{"id":1,"publish":"/a","content":{}}"#);
        let mut past = crate::world::past::Past::default();
        let place = world.connect(0);
        world.say(place, &json!({"id": 1, "subscribe": "/a", "after": after, "on_gap": "oldest"}).to_string());
        world.turn(0);
        past.serve(&mut world);
        let heard = world.heard(place);
        let gaps = pushes(&heard, "gap");
        if is_known {
            assert!(gaps.is_empty(), "{after}: {heard:?}");
        } else {
            assert_eq!(gaps, [(&json!("1000.0"), &json!(after))], "{heard:?}");
            let missed: Vec<&Value> = heard.iter().filter_map(|value| value.get("missed")).collect();
            assert_eq!(missed, [&Value::Null], "{after}");
        }
        assert_eq!(pushes(&heard, "message").last().map(|(at, _)| *at), Some(&json!("1000.1")), "{after}: {heard:?}");
    }
}

/// Three runs of which memory keeps the last messages alone: the others are read back, by a client whose socket fills up.
#[test]
fn a_socket_that_fills_up_where_an_epoch_begins_does_not_hide_what_that_follows() {
    for room in 1..60 {
        let mut settings = open_settings();
        (settings.epoch, settings.limits.log_messages_max) = (10, 2);
        settings.journal = Some(godwit_core::settings::JournalSettings::default());
        let mut world = World::new(settings, 1, false);
        let now = world.now;
        let mut past = crate::world::past::Past { page_max: 4, ..Default::default() };
        {
            let mut node = world.node.lock().unwrap();
            let run =
                |n| PastRun { run: RUN + n, epoch: 7 + n, epoch_end: 8 + n, began: 1 + 10 * n, last: 10 + 10 * n };
            node.begin_restore((0..3).map(run).collect());
            for (n, sequence) in (0..3).flat_map(|n| (1..=6).map(move |sequence| (n, sequence))) {
                let at = Position { epoch: 7 + n, sequence };
                let mut kept = KeptMessage::new(RUN + n, past.len() as u64, Arc::from("/a"), at);
                (kept.arrival, kept.time_ms, kept.kind) = (1 + 10 * n + sequence, now.wall_ms, Kind::Json);
                let kept = kept.carry(b"{}", "", &[]);
                past.rows.push(kept.clone());
                node.restore(kept, now);
            }
            node.finish_restore(now);
        }
        past.write_all();
        let place = world.connect(0);
        world.ask(place, r#"{"id":1,"subscribe":"/a","after":"7.2"}"#);
        world.socket(place).room = 0;
        let mut heard = Vec::new();
        for _ in 0..2_000 / room {
            world.turn(0);
            past.serve(&mut world);
            heard.extend(world.heard(place));
            world.give_room(place, room);
        }
        assert!(pushes(&heard, "gap").is_empty(), "{room}: {heard:?}");
        let begun: Vec<_> =
            pushes(&heard, "message").into_iter().filter(|(at, _)| at.as_str().unwrap().ends_with(".1")).collect();
        assert_eq!(begun, [(&json!("8.1"), &json!("7.6")), (&json!("9.1"), &json!("8.6"))], "{room}: {heard:?}");
    }
}
