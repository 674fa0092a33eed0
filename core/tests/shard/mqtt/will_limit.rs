//! The memory of wills is bounded: a CONNECT with one too many is refused, those that are kept are counted until they are published.
use super::admit::{come_as, settings, taken};
use super::end::text;
use crate::world::{Place, World};
use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::node::PastRun;
use godwit_core::report::Report;
use godwit_core::settings::{JournalSettings, RuleSettings, Settings};

/// A CONNECT with a token and a will of so many bytes, whose session outlives it in 5.0; the will has this delay.
pub(super) fn connect(version: u8, client: &str, will_bytes: usize, delay_s: u8) -> Vec<u8> {
    let is_v5 = version == 5;
    let keep: &[u8] = if is_v5 { &[5, 0x11, 0, 0, 0xff, 0xff] } else { &[] };
    let delay = [5, 0x18, 0, 0, 0, delay_s];
    let delay: &[u8] = if is_v5 { &delay } else { &[] };
    let head = [&text("MQTT")[..], &[version, 0x80 | 0x04 | 0x40, 0, 0], keep].concat();
    let body = "w".repeat(will_bytes);
    let rest = [&head, &text(client), delay, &text("will"), &text(&body), &text("name"), &text("token")].concat();
    let (mut packet, mut length) = (vec![0x10], rest.len());
    while length > 127 {
        packet.push(length as u8 | 0x80);
        length >>= 7;
    }
    packet.push(length as u8);
    [packet, rest].concat()
}

/// A node that holds wills of so many bytes.
pub(super) fn world_of(bytes: usize) -> World {
    let mut settings = settings();
    settings.limits.mqtt_wills_bytes_max = bytes;
    World::new(settings, 2, false)
}

/// Somebody comes; returns the reason of the CONNACK as well.
pub(super) fn come(world: &mut World, identity: &str, says: &[u8]) -> (Place, u8) {
    let place = come_as(world, Holder::new("", "authorizer", identity), says);
    let reason = taken(world, place)[3];
    (place, reason)
}

pub(super) fn held(world: &World) -> u64 {
    world.node.lock().unwrap().totals().mqtt_wills_bytes
}

#[test]
fn one_will_too_many_is_refused_at_connect_in_the_words_of_each_version() {
    for (version, reason) in [(5, 0x97), (4, 0x03)] {
        let mut world = world_of(100_000);
        let (first, _) = come(&mut world, "ann", &connect(version, "a", 60_000, 0));
        assert!((60_000..61_000).contains(&held(&world)), "once, and nothing beside: {}", held(&world));
        world.reports();
        assert_eq!(come(&mut world, "ann", &connect(version, "b", 60_000, 0)).1, reason);
        let reported = world.reports().into_iter().filter_map(|report| match report {
            Report::CommandRefused { code, reason, client, .. } => Some((code, reason, client)),
            _ => None,
        });
        let reported: Vec<_> = reported.collect();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert_eq!((reported[0].0, reported[0].2.as_deref()), (Code::NodeBusy, Some("b")));
        assert!(reported[0].1.contains("limits.mqtt_wills_bytes_max"), "{}", reported[0].1);
        // DISCONNECT in order: the will is discarded, and its bytes are free.
        world.bytes(first, &[0xe0, 0]);
        world.turn_all();
        world.gone(first);
        world.turn_all();
        assert_eq!(held(&world), 0);
        assert_eq!(come(&mut world, "ann", &connect(version, "b", 60_000, 0)).1, 0);
    }
}

#[test]
fn the_rule_that_lets_a_will_in_counts_with_it() {
    let held_by = |pattern: &str| {
        let mut world = world_of(100_000);
        let (pattern, actions, verdict) = (pattern.into(), "publish".into(), "allow".into());
        let rule = RuleSettings { pattern, actions, verdict };
        super::admit::come(&mut world, 1, &connect(5, "a", 10, 0), &[rule]);
        held(&world)
    };
    assert_eq!(held_by("/will") - held_by("/**"), 2, "as its pattern is longer");
}

#[test]
fn a_will_counts_until_it_is_published() {
    let mut world = world_of(100_000);
    let (place, _) = come(&mut world, "ann", &connect(5, "a", 60_000, 5));
    let before = held(&world);
    world.gone(place);
    world.turn_all();
    assert_eq!(held(&world), before, "its delay is not over");
    let (resumed, reason) = come(&mut world, "ann", &connect(5, "a", 20_000, 5));
    assert_eq!((reason, held(&world)), (0, before - 40_000), "its client came back with another");
    world.gone(resumed);
    for _ in 0..20 {
        world.advance(500);
        world.turn_all();
    }
    assert_eq!(held(&world), 0);
    assert_eq!(world.node.lock().unwrap().totals().accepted, 1);
}

#[test]
fn a_will_of_a_shard_that_gave_up_is_not_counted_for_ever() {
    let mut world = world_of(100_000);
    come(&mut world, "ann", &connect(5, "a", 60_000, 0));
    world.node.lock().unwrap().abandon(0);
    for _ in 0..20 {
        world.advance(500);
        world.turn(1);
    }
    assert_eq!(held(&world), 0);
}

#[test]
fn nobody_alone_takes_all_the_memory_of_wills() {
    let mut world = world_of(1_000_000);
    let reasons: Vec<u8> =
        (0..60).map(|number| come(&mut world, "ann", &connect(5, &format!("a{number}"), 20_000, 0)).1).collect();
    let accepted = reasons.iter().filter(|reason| **reason == 0).count();
    assert_eq!((accepted, reasons.last()), (40, Some(&0x97)), "four fifths");
    assert_eq!(come(&mut world, "bob", &connect(5, "b", 1_000, 0)).1, 0, "the rest is for others");
}

#[test]
fn wills_of_an_earlier_run_count_whatever_the_limit_is() {
    let run = |run: u64, bytes: usize| {
        let mut settings = settings();
        settings.journal = Some(JournalSettings::default());
        settings.limits.mqtt_wills_bytes_max = bytes;
        World::new(Settings { run: 0xc0 + run, epoch: 7 + run, ..settings }, 1, false)
    };
    let mut world = run(0, 100_000);
    come(&mut world, "ann", &connect(5, "a", 60_000, 200));
    let before = held(&world);
    let notes = world.take_notes();
    let mut world = run(1, 50_000);
    let now = world.now;
    {
        let mut node = world.node.lock().unwrap();
        node.begin_restore(vec![PastRun { run: 0xc0, epoch: 7, epoch_end: 8, began: 1, last: 1 }]);
        for name in ["session a", "will a"] {
            assert!(node.restore_note(name, notes[name].as_deref().expect("a note"), 0, now));
        }
        node.finish_restore(now);
        assert_eq!(node.totals().mqtt_wills_bytes, before);
    }
    assert_eq!(come(&mut world, "ann", &connect(5, "b", 10, 0)).1, 0x97);
    world.advance(300_000);
    (0..4).for_each(|_| world.turn(0));
    assert_eq!(held(&world), 0, "it was published");
    assert_eq!(come(&mut world, "ann", &connect(5, "b", 10, 0)).1, 0);
}
