//! Who comes back to a node that began with its journal, through a whole node of values: what is sent again, and what is told.

use std::sync::Arc;

use crate::world::{World, open_settings};
use godwit_core::journal::KeptMessage;
use godwit_core::message::Kind;
use godwit_core::node::Reign;
use godwit_core::position::Position;
use serde_json::{Value, json};

const RUN: u64 = 0xb0;

/// A node whose journal holds five messages of `/a`, of the epoch 7; it numbers in a later one, and has numbered one message.
fn restarted() -> World {
    let mut world = World::new(open_settings(), 1, false);
    let now = world.now;
    {
        let mut node = world.node.lock().unwrap();
        node.begin_restore(vec![Reign { run: RUN, epoch: 7, epoch_end: u64::MAX, began: 1, last: 6 }]);
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

fn told<'a>(heard: &'a [Value], what: &str) -> Vec<(&'a Value, &'a Value)> {
    heard.iter().filter(|v| v.get(what).is_some()).map(|v| (&v["at"], &v["after"])).collect()
}

#[test]
fn a_pattern_that_goes_over_the_end_of_a_reign_has_the_right_positions_on_either_wire() {
    for wire in ["json", "binary"] {
        let mut world = restarted();
        let heard = ask(&mut world, wire, &json!({"id": 1, "subscribe": "/**", "since": format!("{RUN:x}.4.0")}));
        let ats: Vec<&Value> = told(&heard, "message").into_iter().map(|(at, _)| at).collect();
        assert_eq!(ats, ["7.4", "7.5", "8.1"], "{wire}: {heard:?}");
        assert_eq!(told(&heard, "message").last().unwrap().1, "7.5", "it says what it follows");
    }
}

#[test]
fn who_saw_more_than_the_journal_is_told_and_sent_nothing_twice() {
    for on_gap in ["snapshot", "oldest"] {
        let mut world = restarted();
        let place = json!({"id": 1, "subscribe": "/a", "after": "7.9", "on_gap": on_gap});
        let heard = ask(&mut world, "json", &place);
        let gap = if on_gap == "oldest" { "8.0" } else { "8.1" };
        assert_eq!(told(&heard, "gap"), [(&json!(gap), &json!("7.9"))], "{heard:?}");
        assert_eq!(told(&heard, "message").into_iter().map(|(at, _)| at).collect::<Vec<_>>(), ["8.1"], "{heard:?}");
    }
}

#[test]
fn beside_a_mark_that_is_served_a_place_beyond_the_journal_is_told() {
    for on_gap in ["snapshot", "oldest"] {
        let mut world = restarted();
        let since = format!("{RUN:x}.4.0");
        let place = json!({"id": 1, "subscribe": "/**", "since": since, "after": {"/a": "7.9"}, "on_gap": on_gap});
        let heard = ask(&mut world, "json", &place);
        let gap = if on_gap == "oldest" { "8.0" } else { "8.1" };
        assert_eq!(told(&heard, "gap"), [(&json!(gap), &json!("7.9"))], "{heard:?}");
        assert_eq!(told(&heard, "message").into_iter().map(|(at, _)| at).collect::<Vec<_>>(), ["8.1"], "{heard:?}");
    }
}
