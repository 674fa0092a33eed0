//! What clients whose session is on the disk hear while the disk is slow, refuses, or has lost something.
use godwit_core::node::Progress;
use godwit_core::settings::{JournalSettings, PatternSettings, Settings};

use super::{come, connect, listeners, packet, subscribe, text};
use crate::world::{Place, World, open_settings};

/// A node that promises the disk below `/a`, and writes neither rows nor notes before the test says so.
fn world() -> World {
    world_with(|_| ())
}

fn world_with(change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = open_settings();
    (settings.listeners, settings.journal) = (listeners(), Some(JournalSettings::default()));
    let disk = PatternSettings { pattern: "/a/**".into(), mqtt_ack: Some("disk".into()), ..PatternSettings::default() };
    settings.patterns = vec![disk];
    change(&mut settings);
    let mut world = World::new(settings, 1, false);
    world.holds_notes = true;
    world
}

/// The first bytes of the packets that a client has heard since the last call; all are short.
fn kinds(world: &mut World, place: Place) -> Vec<u8> {
    (0..4).for_each(|_| world.turn(0));
    let taken = std::mem::take(&mut world.socket(place).taken);
    let (mut at, mut kinds) = (0, Vec::new());
    while let Some(&[first, length]) = taken.get(at..at + 2) {
        kinds.push(first & 0xf0);
        at += 2 + usize::from(length);
    }
    kinds
}

fn write_notes(world: &mut World, is_taken: bool) {
    let mut node = world.node.lock().unwrap();
    let _ = node.take_notes();
    let _ = if is_taken { node.notes_synced() } else { node.notes_refused() };
}

/// A publish of QoS 2 in MQTT 5.0.
fn publish(packet_id: u8, is_again: bool) -> Vec<u8> {
    let first = if is_again { 0x3c } else { 0x34 };
    packet(first, &[text("a/x"), vec![0, packet_id, 0], b"x".to_vec()].concat())
}

fn progress(world: &mut World, progress: Progress) {
    let _ = world.node.lock().unwrap().journaled(progress);
}

#[test]
fn a_subscription_waits_for_the_disk_only_where_that_is_promised_and_works() {
    let mut world = world();
    let place = come(&mut world, 0, &connect("s", true));
    assert_eq!(kinds(&mut world, place), [0x20]);
    // MQTT 5.0: an empty list of properties before the filters.
    let five = |filter: &str| packet(0x82, &[&[0, 1, 0], &subscribe(&[(filter, 2)])[4..]].concat());
    let five_out = |filter: &str| packet(0xa2, &[&[0, 2, 0], text(filter).as_slice()].concat());
    world.bytes(place, &five("b"));
    assert_eq!(kinds(&mut world, place), [0x90], "nobody promised the disk");
    world.bytes(place, &five_out("b"));
    assert_eq!(kinds(&mut world, place), [0xb0]);
    world.bytes(place, &five("#"));
    assert_eq!(kinds(&mut world, place), [0_u8; 0]);
    write_notes(&mut world, true);
    assert_eq!(kinds(&mut world, place), [0x90]);
    for (asks, answer) in [(five_out("#"), 0xb0), (five("a/x"), 0x90)] {
        world.bytes(place, &asks);
        write_notes(&mut world, false);
        assert_eq!(kinds(&mut world, place), [answer], "the disk refuses");
    }
}

#[test]
fn what_a_kill_would_make_untrue_waits_for_as_long_as_the_disk_refuses() {
    let mut world = world();
    let place = come(&mut world, 0, &connect("s", true));
    assert_eq!(kinds(&mut world, place), [0x20]);
    world.bytes(place, &packet(0x62, &[0, 9]));
    write_notes(&mut world, false);
    assert_eq!(kinds(&mut world, place), [0_u8; 0], "an earlier connection may have released it");
    write_notes(&mut world, false);
    assert_eq!(kinds(&mut world, place), [0_u8; 0]);
    write_notes(&mut world, true);
    assert_eq!(kinds(&mut world, place), [0x70]);
}

/// The client's session, over another connection; what the one before had heard is of no interest.
fn return_as(world: &mut World, place: Option<Place>) -> Place {
    if let Some(place) = place {
        world.gone(place);
    }
    let place = come(world, 0, &connect("p", true));
    world.turn(0);
    write_notes(world, true);
    assert_eq!(kinds(world, place), [0x20]);
    place
}

#[test]
fn a_repeat_of_a_publish_whose_row_was_lost_is_refused_like_the_first() {
    for (lost, is_failing) in [(1, false), (0, true)] {
        let mut world = world();
        let place = return_as(&mut world, None);
        world.bytes(place, &publish(7, false));
        assert_eq!(kinds(&mut world, place), [0_u8; 0]);
        write_notes(&mut world, true);
        let place = return_as(&mut world, Some(place));
        progress(&mut world, Progress { synced: lost, lost, is_failing, ..Progress::default() });
        world.bytes(place, &publish(7, true));
        (0..4).for_each(|_| world.turn(0));
        let heard = std::mem::take(&mut world.socket(place).taken);
        assert!(heard.len() > 4 && heard[0] == 0x50 && heard[4] >= 0x80, "lost {lost}: {heard:x?}");
        progress(&mut world, Progress { synced: 1, lost, ..Progress::default() });
        world.bytes(place, &publish(7, false));
        assert_eq!(kinds(&mut world, place), [0_u8; 0], "the identifier is free: this is another message");
    }
}

#[test]
fn a_publish_that_was_answered_stays_so_whatever_is_lost_later() {
    let mut world = world();
    let place = return_as(&mut world, None);
    world.bytes(place, &publish(7, false));
    world.turn(0);
    progress(&mut world, Progress { synced: 1, ..Progress::default() });
    assert_eq!(kinds(&mut world, place), [0_u8; 0]);
    write_notes(&mut world, true);
    assert_eq!(kinds(&mut world, place), [0x50]);
    let place = return_as(&mut world, Some(place));
    progress(&mut world, Progress { synced: 3, lost: 3, ..Progress::default() });
    world.bytes(place, &publish(7, true));
    world.turn(0);
    write_notes(&mut world, true);
    (0..4).for_each(|_| world.turn(0));
    assert_eq!(std::mem::take(&mut world.socket(place).taken)[..4], [0x50, 2, 0, 7]);
}

#[test]
fn past_its_share_of_memory_nothing_more_is_put_together_for_the_disk() {
    let mut world = world_with(|settings| settings.limits.partial_bytes_max = 16);
    let places = ["first", "second"].map(|name| {
        let place = come(&mut world, 0, &connect(name, true));
        assert_eq!(kinds(&mut world, place), [0x20]);
        world.bytes(place, &packet(0x82, &[&[0, 1, 0], &subscribe(&[("a/x", 2)])[4..]].concat()));
        world.turn(0);
        write_notes(&mut world, false);
        assert_eq!(kinds(&mut world, place), [0x90], "the disk refuses");
        place
    });
    let _ = world.node.lock().unwrap().take_notes();
    let publisher = world.connect(0);
    world.ask(publisher, r#"{"id":1,"publish":"/a/x","content":1}"#);
    places.iter().for_each(|place| assert_eq!(kinds(&mut world, *place), [0_u8; 0]));
    let slow: u64 = world.shard(0).counters().wires.each().map(|(_, wire)| wire.slow_consumers).sum();
    assert_eq!(slow, 0, "the node's disk makes no client slow");
    let notes = world.node.lock().unwrap().take_notes();
    assert_eq!(notes.keys().filter(|name| name.starts_with("session ")).count(), 1, "{notes:?}");
    progress(&mut world, Progress { synced: 1, ..Progress::default() });
    let mut heard = Vec::new();
    for _ in 0..2 {
        write_notes(&mut world, true);
        heard.extend(places.iter().flat_map(|place| kinds(&mut world, *place)).collect::<Vec<_>>());
    }
    assert_eq!(heard, [0x30, 0x30]);
}
