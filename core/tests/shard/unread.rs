//! What a node did not read when it began, for it was too old: whoever stands before it gets it from the journal, and nobody is told that
//! nothing is missing who is not sent all of it.
use std::sync::Arc;

use crate::ledger::journaling;
use crate::world::past::Past;
use crate::world::{World, open_settings};
use godwit_core::journal::KeptMessage;
use godwit_core::node::PastRun;
use godwit_core::position::Position;
use godwit_core::settings::JournalSettings;
use serde_json::{Value, json};

const RUN: u64 = 0xc0;

fn at(epoch: u64, sequence: u64) -> Position {
    Position { epoch, sequence }
}

/// Three runs, of which the second had no message of `/a`; of its messages but one made a snapshot, and not the last.
fn rows() -> Vec<KeptMessage> {
    let row = |offset: u64, run: u64, at: Position, arrival: u64, is_retained: bool| {
        let mut kept = KeptMessage::new(RUN + run, offset, Arc::from("/a"), at);
        (kept.arrival, kept.is_retained) = (arrival, is_retained);
        kept.carry(b"{}", "", &[])
    };
    vec![
        row(0, 0, at(7, 1), 2, false),
        row(1, 0, at(7, 2), 3, false),
        row(2, 2, at(9, 1), 6, true),
        row(3, 2, at(9, 2), 7, false),
    ]
}

/// A fourth run, whose memory has but the snapshot, with what is known of the last message.
fn begin(newest: Option<Position>, lost: Option<(u64, u64)>) -> (World, Past) {
    let mut settings = open_settings();
    settings.journal = Some(JournalSettings::default());
    (settings.run, settings.epoch) = (RUN + 3, 10);
    let world = World::new(settings, 1, false);
    let run = |run: u64, began, last| PastRun { run: RUN + run, epoch: 7 + run, epoch_end: 8 + run, began, last };
    {
        let mut node = world.node.lock().unwrap();
        node.begin_restore(vec![run(0, 1, 3), run(1, 4, 4), run(2, 5, 7)]);
        lost.into_iter().for_each(|(run, arrival)| node.restore_missing(RUN + run, arrival));
        node.restore_part();
        node.restore_snapshot(rows()[2].clone(), newest, world.now);
        node.finish_restore(world.now);
    }
    (world, Past { rows: rows(), page_max: 7, run: RUN, ..Past::default() })
}

/// What is told, message by message and gap by gap.
fn resume(world: &mut World, past: &mut Past, subject: &str, after: &str) -> Vec<String> {
    subscribe(world, past, &json!({"id": 1, "subscribe": subject, "after": after, "on_gap": "oldest"}))
}

fn subscribe(world: &mut World, past: &mut Past, command: &Value) -> Vec<String> {
    let place = world.connect(0);
    world.say(place, &command.to_string());
    world.turn(0);
    past.serve(world);
    let tell = |value: &Value| match value.get("gap") {
        Some(_) => Some(format!("{} missed {}", value["at"].as_str()?, value["missed"])),
        None => value.get("message").and_then(|_| Some(value["at"].as_str()?.to_owned())),
    };
    world.heard(place).iter().filter_map(tell).collect()
}

#[test]
fn an_empty_place_of_any_run_is_followed_by_all_that_came_after_it() {
    for newest in [Some(at(9, 2)), None] {
        let (mut world, mut past) = begin(newest, None);
        let mut resumed = |after| resume(&mut world, &mut past, "/a", after);
        let last = ["9.1", "9.2"];
        assert_eq!(resumed("7.0"), ["7.1", "7.2", "9.1", "9.2"], "{newest:?}");
        for after in ["7.2", "8.0", "9.0"] {
            assert_eq!(resumed(after), last, "{after} {newest:?}");
        }
        assert_eq!(resumed("9.1"), last[1..], "{newest:?}");
        assert_eq!(resumed("9.2"), [""; 0], "{newest:?}");
        assert_eq!(resumed("10.0"), [""; 0], "{newest:?}");
    }
}

#[test]
fn who_is_known_to_the_journal_alone_has_missed_nothing_where_it_has_nothing() {
    let (mut world, mut past) = begin(Some(at(9, 2)), None);
    assert_eq!(resume(&mut world, &mut past, "/never", "7.0"), [""; 0]);
    past.first = 1;
    assert_eq!(resume(&mut world, &mut past, "/never", "7.0"), ["10.0 missed null"], "older rows were let go");
}

#[test]
fn where_a_run_lost_messages_nobody_is_told_that_none_is_missing() {
    let (mut world, mut past) = begin(Some(at(9, 2)), Some((2, 9)));
    let mut resumed = |after| resume(&mut world, &mut past, "/a", after);
    assert_eq!(resumed("9.2"), ["10.0 missed null"]);
    assert_eq!(resumed("9.1").last().unwrap(), "10.0 missed null");
    assert_eq!(resumed("7.0").last().unwrap(), "10.0 missed null");
    assert_eq!(resume(&mut world, &mut past, "/never", "9.0"), ["10.0 missed null"]);
    assert_eq!(resume(&mut world, &mut past, "/never", "10.0"), [""; 0]);
}

#[test]
fn the_last_messages_are_those_of_any_run() {
    for newest in [Some(at(9, 2)), None] {
        let (mut world, mut past) = begin(newest, None);
        let publisher = world.connect(0);
        let publish = |world: &mut World, subject: &str| {
            world.say(publisher, &json!({"publish": subject, "content": 1}).to_string());
            world.turn(0);
        };
        let all = ["7.1", "7.2", "9.1", "9.2", "10.1"];
        publish(&mut world, "/a");
        past.run = RUN + 3;
        for (last, from) in [(2, 3), (3, 2), (4, 1), (5, 0), (100, 0)] {
            let resumed = subscribe(&mut world, &mut past, &json!({"id": 1, "subscribe": "/a", "last": last}));
            assert_eq!(resumed, all[from..], "{last}, {newest:?}");
        }
        publish(&mut world, "/b");
        past.asked = 0;
        for asked in [1, 1] {
            let resumed = subscribe(&mut world, &mut past, &json!({"id": 1, "subscribe": "/b", "last": 5}));
            assert_eq!(
                (resumed, past.asked),
                (vec!["10.1".to_owned()], asked),
                "that there is no more is asked for once"
            );
        }
    }
}

/// A node that keeps two messages of `/a`, of eight, and has a journal that nobody serves.
fn short_of(conflate: bool) -> World {
    let mut settings = journaling();
    settings.limits.log_messages_max = if conflate { 100 } else { 2 };
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    for n in 1..=8 {
        world.ask(publisher, &json!({"publish": "/a", "content": {"n": n}}).to_string());
    }
    world
}

fn answer(world: &mut World, command: &Value) -> (Value, Value, Value) {
    let place = world.connect(0);
    let heard = world.ask(place, &command.to_string());
    let gap = heard.iter().find(|value| value.get("gap").is_some());
    let reason = gap.map_or(Value::Null, |gap| gap["reason"].clone());
    (heard[0]["outcome"].clone(), heard[0]["count"].clone(), reason)
}

#[test]
fn an_epoch_that_this_node_never_gave_is_not_looked_for_in_the_journal() {
    let (mut world, _) = begin(Some(at(9, 2)), None);
    let asked = |after: &str| json!({"id": 1, "subscribe": "/a", "after": after});
    assert_eq!(answer(&mut world, &asked("3.2")), (json!("resync"), json!(0), json!("epoch")));
}

#[test]
fn a_reply_counts_only_what_will_come() {
    let after = |at: &str| json!({"id": 1, "subscribe": "/a", "after": at});
    let mut world = short_of(false);
    // Only the journal can tell how many it holds; what is in memory is counted.
    assert_eq!(answer(&mut world, &after("7.2")), (json!("recovered"), Value::Null, Value::Null));
    assert_eq!(answer(&mut world, &after("7.7")), (json!("recovered"), json!(1), Value::Null));
    world.purge("/a");
    assert_eq!(answer(&mut world, &after("7.2")), (json!("resync"), json!(0), json!("overrun")));
    // Messages that are merged are not counted one by one.
    let mut world = short_of(true);
    let conflated = json!({"id": 1, "subscribe": "/a", "after": "7.2", "conflate_ms": 100});
    assert_eq!(answer(&mut world, &conflated), (json!("recovered"), Value::Null, Value::Null));
}
