//! What is written down of deliveries adds up: for each subscription of a subject its rows follow one another directly, and what
//! was handed over, merged or told missing is the whole of each range.

mod access;
mod acks;
mod shared;
mod subscriptions;

use crate::mqtt::{come, connect, listeners, packet, text};
use crate::world::seeds::seeded;
use crate::world::{Place, World, open_settings};
use godwit_core::journal::{AccessKind, DeliveryRow, LatencyRow, Range, Rows};
use godwit_core::settings::{JournalSettings, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashMap;

pub(crate) fn journaling() -> Settings {
    let mut settings = open_settings();
    settings.journal = Some(JournalSettings { flush_interval_ms: 1_000, ..JournalSettings::default() });
    settings
}

fn say(world: &mut World, place: Place, wire: &str, command: &Value) {
    if wire == "json" {
        world.say(place, &command.to_string());
    } else {
        world.say_bytes(place, &crate::world::binary::subscribe(command));
    }
    world.turn(0);
}

fn subscribe(selector: &str, on_gap: &str, is_conflated: bool) -> Value {
    let mut command = json!({"id": 1, "subscribe": selector, "on_gap": on_gap});
    if is_conflated {
        command["conflate_ms"] = json!(300);
    }
    command
}

fn latencies(rows: Vec<Rows>) -> Vec<LatencyRow> {
    rows.into_iter().flat_map(|rows| if let Rows::Latency(rows) = rows { rows } else { Vec::new() }).collect()
}

pub(crate) fn deliveries(rows: Vec<Rows>) -> Vec<DeliveryRow> {
    let found = rows.into_iter().filter_map(|rows| if let Rows::Deliveries(rows) = rows { Some(rows) } else { None });
    found.flatten().collect()
}

/// Rows of one subscription, checked one after the other. A merged message of which a socket took only some may come again after a gap.
fn check_chain(rows: &[DeliveryRow], is_merged: bool) -> Result<u64, TestCaseError> {
    let mut stand = None;
    for row in rows {
        let Range::Subject { epoch, from, to } = row.range else { continue };
        prop_assert_eq!(epoch, 7);
        let from = from.expect("a range that was sent begins somewhere");
        prop_assert!(stand.is_none_or(|stand| stand + 1 == from), "{stand:?} then {from} in {rows:?}");
        if let Some(missed) = row.gap_count {
            let (accounted, whole) = (row.count + row.conflated + missed, to + 1 - from);
            prop_assert!(accounted == whole || (is_merged && accounted > whole), "{row:?}");
        }
        prop_assert!(row.count > 0 || row.gaps > 0);
        stand = Some(to);
    }
    Ok(stand.unwrap_or(0))
}

/// The same of a pattern that every message matches: an arrival is a message. What is merged may hold what came before the range.
fn check_pattern(rows: &[DeliveryRow], is_merged: bool) -> Result<(), TestCaseError> {
    let (mut stand, mut messages, mut arrivals) = (None, 0, 0);
    for row in rows {
        let Range::Pattern { from, to, .. } = row.range else { continue };
        let from = from.expect("a range that was sent begins somewhere");
        prop_assert!(stand.is_none_or(|stand| stand + 1 == from || row.gaps > 0), "{stand:?} then {from} in {rows:?}");
        let (given, whole) = (row.count + row.conflated, to + 1 - from);
        prop_assert!(is_merged || given <= whole, "{row:?} in {rows:?}");
        let missed = if row.gaps == 0 { Some(0) } else { row.gap_count };
        prop_assert!(missed.is_none_or(|missed| given + missed >= whole), "{row:?} in {rows:?}");
        (messages, arrivals) = (messages + row.count, arrivals + whole);
        stand = Some(to);
    }
    // Behind a gap of unknown size it begins anew, and what was merged and half sent lies before it.
    let is_known = !is_merged || rows.iter().all(|row| row.gap_count.is_some());
    prop_assert!(messages <= arrivals || !is_known, "{rows:?}");
    Ok(())
}

/// Each reader's rows; how many messages all were handed.
fn check_readers(rows: Vec<DeliveryRow>, is_whole: bool) -> Result<u64, TestCaseError> {
    let mut by_reader: HashMap<(u64, String), Vec<DeliveryRow>> = HashMap::new();
    for row in rows {
        by_reader.entry((row.peer.connection.0, row.selector.to_string())).or_default().push(row);
    }
    let mut handed = 0;
    for ((_, selector), rows) in &by_reader {
        handed += rows.iter().map(|row| row.count).sum::<u64>();
        if selector == "/*" {
            check_pattern(rows, !is_whole)?;
        } else {
            check_chain(rows, !is_whole)?;
        }
    }
    Ok(handed)
}

proptest! {
    #![proptest_config(seeded(64))]

    #[test]
    fn ranges_follow_one_another_and_hold_what_was_handed_over_or_told_missing(
        is_pending in any::<bool>(),
        readers in prop::collection::vec((prop::sample::select(vec!["/a", "/b", "/*"]), any::<bool>(), any::<bool>(), any::<bool>()), 1..6),
        steps in prop::collection::vec((0..5_u8, 0..6_usize, 0..900_usize), 1..60),
    ) {
        let mut settings = journaling();
        settings.limits.log_messages_max = 12;
        settings.limits.stream_window_bytes_max = 4096;
        let mut world = World::new(settings, 1, is_pending);
        let publisher = world.connect(0);
        let mut places = Vec::new();
        for (selector, is_binary, is_oldest, is_conflated) in &readers {
            let wire = if *is_binary { "binary" } else { "json" };
            let place = world.connect_on(0, wire);
            let on_gap = if *is_oldest { "oldest" } else { "snapshot" };
            say(&mut world, place, wire, &subscribe(selector, on_gap, *is_conflated));
            places.push(place);
        }
        for (what, which, size) in steps {
            match (what, places.get(which)) {
                (0 | 1, _) => {
                    let subject = if which % 2 == 0 { "/a" } else { "/b" };
                    world.say(publisher, &json!({"publish": subject, "content": "x".repeat(size)}).to_string());
                }
                (2, Some(place)) => world.socket(*place).room = size,
                (4, Some(_)) => world.purge(if which % 2 == 0 { "/a" } else { "/b" }),
                (_, Some(place)) => world.give_room(*place, size * 4),
                _ => world.advance(400),
            }
            world.turn(0);
        }
        for place in &places {
            world.give_room(*place, usize::MAX / 2);
        }
        world.turn(0);
        world.settle();
        let heard: Vec<usize> = places
            .iter()
            .map(|place| {
                let heard = world.heard(*place);
                heard.iter().filter(|value| !value["message"].is_null() && value["snapshot"].is_null()).count()
            })
            .collect();
        places.iter().for_each(|place| world.gone(*place));
        world.turn(0);
        let is_whole = readers.iter().all(|(.., is_conflated)| !is_conflated);
        let handed = check_readers(deliveries(world.take_rows(0)), is_whole)?;
        let heard = heard.iter().sum::<usize>() as u64;
        // Merged messages of which a socket took only some come again.
        prop_assert!(handed == heard || (handed < heard && !is_whole), "{handed} of {heard}");
    }
}

#[test]
fn access_is_written_down_from_connect_to_close_and_a_resume_confirms_its_place() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.connect(0);
    world.ask(place, r#"{"id":1,"connect":{"client":"reader/1"}}"#);
    world.ask(place, r#"{"publish":"/a","content":1}"#);
    world.ask(place, r#"{"id":2,"subscribe":"/a","after":"7.1"}"#);
    world.ask(place, r#"{"id":3,"unsubscribe":"/a"}"#);
    world.gone(place);
    let rows = world.take_rows(0);
    let access: Vec<_> = rows
        .iter()
        .filter_map(|rows| if let Rows::Access(rows) = rows { Some(rows) } else { None })
        .flatten()
        .collect();
    let kinds: Vec<_> = access.iter().map(|row| row.kind).collect();
    assert_eq!(
        kinds,
        [AccessKind::Connected, AccessKind::Subscribed, AccessKind::Unsubscribed, AccessKind::Disconnected]
    );
    assert_eq!((access[1].at.as_deref(), access[1].selector.as_deref()), (Some("7.1"), Some("/a")));
    assert_eq!(&*access[1].peer.client, "reader/1");
    let confirmed = deliveries(rows);
    assert!(matches!(
        confirmed[..],
        [DeliveryRow { is_confirmed: true, range: Range::Subject { epoch: 7, from: None, to: 1 }, .. }]
    ));
}

#[test]
fn a_delivery_is_timed_by_the_clock_of_its_turn_not_by_that_of_an_earlier_one() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.connect(0);
    world.ask(place, r#"{"id":1,"connect":{"client":"reader/1"}}"#);
    world.ask(place, r#"{"id":2,"subscribe":"/a"}"#);
    for _ in 0..5 {
        world.advance(700);
        world.ask(place, r#"{"publish":"/a","content":1}"#);
    }
    world.advance(2_000);
    world.turn(0);
    let rows = latencies(world.take_rows(0));
    let at_once: u64 = rows.iter().map(|row| row.buckets[0]).sum();
    let timed: u64 = rows.iter().flat_map(|row| row.buckets.iter()).sum();
    assert_eq!((at_once, timed), (5, 5));
}

#[test]
fn what_was_timed_of_a_selector_stays_its_own_when_nobody_listens_to_it_any_more() {
    let mut settings = journaling();
    settings.journal.as_mut().unwrap().flush_interval_ms = 600_000;
    let mut world = World::new(settings, 1, false);
    let place = world.connect(0);
    for (subject, count) in [("/a", 2), ("/b", 3)] {
        world.ask(place, &json!({"id": 1, "subscribe": subject}).to_string());
        for content in 0..count {
            world.ask(place, &json!({"publish": subject, "content": content}).to_string());
        }
        world.ask(place, &json!({"id": 2, "unsubscribe": subject}).to_string());
    }
    let rows = latencies(world.take_rows(0));
    let timed: Vec<(&str, u64)> = rows.iter().map(|row| (&*row.selector, row.buckets.iter().sum())).collect();
    assert_eq!(timed, [("/a", 2), ("/b", 3)]);
}

#[test]
fn a_row_reaches_as_far_as_its_reader_was_sent_though_the_window_is_gone() {
    let mut settings = journaling();
    settings.journal.as_mut().unwrap().flush_interval_ms = 600_000;
    let mut world = World::new(settings, 1, false);
    let readers = [world.connect(0), world.connect(0)];
    for reader in readers {
        world.ask(reader, r#"{"id":2,"subscribe":"/a"}"#);
    }
    for number in 1..=3 {
        world.ask(readers[0], &json!({"publish": "/a", "content": number}).to_string());
    }
    for _ in 0..240 {
        world.advance(500);
        world.turn(0);
    }
    readers.into_iter().for_each(|reader| world.gone(reader));
    let rows = deliveries(world.take_rows(0));
    let spans: Vec<_> = rows.iter().map(|row| (&row.range, row.count)).collect();
    assert_eq!(spans, [(&Range::Subject { epoch: 7, from: Some(1), to: 3 }, 3); 2]);
}

#[test]
fn what_an_mqtt_client_is_not_to_have_is_passed_over_in_its_rows() {
    let mut settings = journaling();
    settings.listeners = listeners();
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    let client = come(&mut world, 0, &connect("itself", true));
    let say = |world: &mut World, bytes: &[u8]| {
        world.bytes(client, bytes);
        world.turn(0);
        world.settle();
    };
    world.turn(0);
    // No Local (4), at QoS 0 and 1.
    for (number, filter, options) in [(1, "a/x", 4), (2, "a/+", 5), (3, "b", 5)] {
        let body = [&[0, number, 0][..], &text(filter), &[options]].concat();
        say(&mut world, &packet(0x82, &body));
    }
    for number in 0..9 {
        let topic = ["a/x", "b"][number % 2];
        say(&mut world, &packet(0x30, &[text(topic).as_slice(), &[0], b"own"].concat()));
        if number % 3 == 0 {
            world.ask(publisher, &json!({"publish": format!("/{topic}"), "content": number}).to_string());
        }
    }
    world.gone(client);
    let rows = deliveries(world.take_rows(0));
    let (mut given, mut passed) = (0, 0);
    for row in &rows {
        if let Range::Subject { from: Some(from), to, .. } = row.range {
            assert_eq!(row.count + row.conflated, to + 1 - from, "{row:?}");
        }
        (given, passed) = (given + row.count, passed + row.conflated);
    }
    assert!(given >= 3 && passed >= 9, "{rows:?}");
}

#[test]
fn nothing_is_written_down_without_a_journal() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.connect(0);
    world.ask(place, r#"{"id":2,"subscribe":"/a"}"#);
    world.ask(place, r#"{"publish":"/a","content":1}"#);
    world.gone(place);
    assert!(world.take_rows(0).is_empty());
}
