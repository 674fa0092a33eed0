//! Standard messages: of subjects that keep nothing they reach who listens, under their own name, and nobody else; no row counts them.

use crate::ledger::journaling;
use crate::world::{World, open_settings};
use godwit_core::journal::{Range, Rows};
use serde_json::{Value, json};

#[test]
fn standard_messages_of_unkept_subjects_reach_their_own_patterns_only() {
    for wire in ["json", "binary"] {
        let mut world = World::new(open_settings(), 1, false);
        let publisher = world.connect(0);
        let reader = world.connect_on(0, wire);
        let other = world.connect_on(0, wire);
        let ask = |world: &mut World, place, command: Value| {
            if wire == "json" {
                world.say(place, &command.to_string());
            } else {
                world.say_bytes(place, &crate::world::binary::subscribe(&command));
            }
            world.turn(0);
            world.settle();
            world.heard(place);
        };
        for pattern in ["/a/*", "/b/*"] {
            ask(&mut world, reader, json!({"id": 1, "subscribe": pattern}));
        }
        ask(&mut world, other, json!({"id": 1, "subscribe": "/c/*"}));
        for subject in ["/a/1", "/b/1", "/a/2", "/c/1", "/a/1", "/d/1"] {
            let publish = json!({"publish": subject, "content": subject, "guaranteed": false});
            world.say(publisher, &publish.to_string());
        }
        world.turn(0);
        world.settle();
        let heard = |world: &mut World, place| -> Vec<String> {
            let messages = world.heard(place).into_iter().filter(|push| !push["message"].is_null());
            messages
                .map(|push| {
                    assert_eq!(push["message"], push["content"], "{wire}: {push}");
                    push["message"].as_str().unwrap().to_owned()
                })
                .collect()
        };
        let mut own = heard(&mut world, reader);
        own.sort_unstable();
        assert_eq!(own, ["/a/1", "/a/1", "/a/2", "/b/1"], "{wire}");
        assert_eq!(heard(&mut world, other), ["/c/1"], "{wire}");
    }
}

#[test]
fn a_shard_that_fell_off_the_feed_says_what_standard_messages_it_lost() {
    let mut settings = open_settings();
    settings.limits.feed_entries_max = 10;
    let mut world = World::new(settings, 2, false);
    let (publisher, reader) = (world.connect(0), world.connect(1));
    world.ask(reader, r#"{"id":1,"subscribe":"/a/*","snapshot":false}"#);
    world.ask(reader, r#"{"id":2,"subscribe":"/b"}"#);
    let publish =
        |subject: &str, n: usize| json!({"publish": subject, "content": n, "guaranteed": n.is_multiple_of(2)});
    let all: Vec<Value> = (0..20).map(|n| publish(if n < 14 { "/a/x" } else { "/b" }, n)).collect();
    world.say(publisher, &json!(all).to_string());
    world.turn_alone(0);
    world.turn(1);
    world.settle();
    let heard = world.heard(reader);
    let kept: Vec<u64> = heard.iter().filter_map(|push| push["content"].as_u64()).collect();
    let dropped: Vec<(&str, u64)> =
        heard.iter().filter_map(|push| Some((push["dropped"].as_str()?, push["count"].as_u64()?))).collect();
    assert_eq!(kept.iter().filter(|n| **n < 14).collect::<Vec<_>>(), [&0, &2, &4, &6, &8, &10, &12]);
    assert_eq!(kept.iter().filter(|n| **n >= 14).collect::<Vec<_>>(), [&14, &16, &18]);
    let count_of =
        |name: &str| dropped.iter().filter(|(selector, _)| *selector == name).map(|(_, count)| count).sum::<u64>();
    assert_eq!((count_of("/a/*"), count_of("/b")), (7, 3), "{dropped:?}");
}

#[test]
fn standard_messages_are_no_part_of_a_range() {
    let mut world = World::new(journaling(), 1, false);
    let publisher = world.connect(0);
    for commands in [&["/a"][..], &["/a"], &["/*"], &["/*"], &["/b", "/*"]] {
        let place = world.connect(0);
        for (selector, conflate_ms) in commands.iter().flat_map(|selector| [(selector, 0), (selector, 200)]) {
            let command = json!({"id": 1, "subscribe": selector, "conflate_ms": conflate_ms});
            world.ask(place, &command.to_string());
        }
    }
    let alone = world.connect(0);
    world.ask(alone, r#"{"id":1,"subscribe":"/**"}"#);
    for n in 0..40_u64 {
        let subject = ["/a", "/b"][n as usize % 2];
        let command = json!({"publish": subject, "content": n, "guaranteed": n % 3 == 0});
        world.ask(publisher, &command.to_string());
        world.advance(90);
        world.turn_all();
    }
    for _ in 0..12 {
        world.advance(500);
        world.turn_all();
    }
    world.gone(alone);
    let rows = world.take_rows(0);
    let guaranteed = |from: u64, to: u64| (from..=to).filter(|arrival| (arrival - 1) % 3 == 0).count() as u64;
    let rows: Vec<_> = rows
        .into_iter()
        .filter_map(|rows| if let Rows::Deliveries(rows) = rows { Some(rows) } else { None })
        .flatten()
        .collect();
    assert!(rows.len() > 10);
    for row in rows {
        let whole = match row.range {
            Range::Subject { from: Some(from), to, .. } => to + 1 - from,
            Range::Pattern { from: Some(from), to, .. } => guaranteed(from, to.min(40)),
            _ => continue,
        };
        assert_eq!(row.count + row.conflated, whole, "{row:?}");
    }
}

#[test]
fn what_a_turn_has_noted_comes_first_where_the_shard_falls_off_the_feed_in_it() {
    for is_guaranteed in [true, false] {
        let mut settings = open_settings();
        settings.limits.feed_entries_max = 10;
        let mut world = World::new(settings, 2, false);
        let (publisher, reader, other) = (world.connect(0), world.connect(1), world.connect(1));
        world.ask(reader, r#"{"id":1,"subscribe":"/a"}"#);
        let publish = |n: usize| json!({"publish": "/a", "content": n, "guaranteed": is_guaranteed});
        for (numbers, selector) in [(0..3, "/x"), (3..23, "/y")] {
            let some: Vec<Value> = numbers.map(publish).collect();
            world.say(publisher, &json!(some).to_string());
            world.turn_alone(0);
            // It looks at the feed in the midst of its turn.
            world.say(other, &json!({"id": 1, "subscribe": selector}).to_string());
        }
        world.turn(1);
        world.settle();
        let heard = world.heard(reader);
        let got: Vec<u64> = heard.iter().filter_map(|push| push["content"].as_u64()).collect();
        let dropped =
            heard.iter().filter(|push| push.get("dropped").is_some()).filter_map(|push| push["count"].as_u64());
        let expected: Vec<u64> = if is_guaranteed { (0..23).collect() } else { Vec::new() };
        assert_eq!((dropped.sum::<u64>(), got), (23 - expected.len() as u64, expected), "guaranteed {is_guaranteed}");
    }
}
