//! What a shard counts is what happened: each message once, however a socket cut it, on its own wire; gauges return to nothing.

use crate::world::seeds::seeded;
use crate::world::{Place, World, open_settings};
use godwit_core::report::WireCounters;
use proptest::prelude::*;
use serde_json::{Value, json};

fn wire(world: &World, name: &str) -> WireCounters {
    let found = world.shard(0).counters().wires.each().find(|(known, _)| *known == name);
    *found.expect("a wire").1
}

fn say(world: &mut World, place: Place, wire: &str, command: &Value) {
    if wire == "json" {
        world.say(place, &command.to_string());
    } else {
        world.say_bytes(place, &crate::world::binary::subscribe(command));
    }
}

fn count_messages(heard: &[Value]) -> u64 {
    heard.iter().filter(|value| !value["message"].is_null()).count() as u64
}

fn count_gaps(heard: &[Value]) -> u64 {
    heard.iter().filter(|value| !value["gap"].is_null()).count() as u64
}

/// One reader for each selector, on the binary wire or the JSON wire.
fn subscribe(world: &mut World, selectors: &[(&str, bool)]) -> Vec<(Place, &'static str)> {
    let mut readers = Vec::new();
    for (selector, is_binary) in selectors {
        let wire = if *is_binary { "binary" } else { "json" };
        let place = world.connect_on(0, wire);
        say(world, place, wire, &json!({"id": 1, "subscribe": selector}));
        world.turn(0);
        readers.push((place, wire));
    }
    world.settle();
    readers
}

/// Publishes, narrows a reader's socket, or lets it take some more and time pass.
fn take(world: &mut World, publisher: Place, readers: &[(Place, &str)], (what, which, size): (u8, usize, usize)) {
    match (what, readers.get(which)) {
        (0, _) => {
            let subject = if which % 2 == 0 { "/a" } else { "/b" };
            let publish = json!({"publish": subject, "content": "x".repeat(size), "guaranteed": which > 0});
            world.say(publisher, &publish.to_string());
            world.turn(0);
        }
        (1, Some((place, _))) => world.socket(*place).room = size,
        (_, reader) => {
            if let Some((place, _)) = reader {
                world.give_room(*place, size * 4);
            }
            world.advance(400);
            world.turn(0);
        }
    }
}

proptest! {
    #![proptest_config(seeded(48))]

    /// Readers on both wires, alone in a stream and together, on subjects and patterns, whose sockets take what they like.
    #[test]
    fn messages_out_are_the_messages_that_were_heard(
        is_pending in any::<bool>(),
        selectors in prop::collection::vec((prop::sample::select(vec!["/a", "/b", "/*", "/**"]), any::<bool>()), 1..6),
        steps in prop::collection::vec((0..3_u8, 0..6_usize, 0..900_usize), 1..60),
    ) {
        let mut settings = open_settings();
        settings.limits.log_messages_max = 12;
        settings.limits.stream_window_bytes_max = 4096;
        let mut world = World::new(settings, 1, is_pending);
        let publisher = world.connect(0);
        let readers = subscribe(&mut world, &selectors);
        for step in steps {
            take(&mut world, publisher, &readers, step);
        }
        for (place, _) in &readers {
            world.give_room(*place, usize::MAX / 2);
        }
        world.turn(0);
        world.settle();
        let (mut messages, mut gaps) = ([0, 0], 0);
        for (place, wire) in &readers {
            let heard = world.heard(*place);
            messages[usize::from(*wire == "binary")] += count_messages(&heard);
            gaps += count_gaps(&heard);
        }
        prop_assert_eq!([wire(&world, "json").messages_out, wire(&world, "binary").messages_out], messages);
        let counters = world.shard(0).counters();
        prop_assert_eq!(counters.gaps, gaps);
        prop_assert_eq!(counters.gap_reasons.iter().sum::<u64>(), gaps);
        prop_assert_eq!(counters.wires.each().map(|(_, wire)| wire.bytes_out).sum::<u64>(), counters.bytes_out);
        prop_assert_eq!(wire(&world, "json").slow_consumers + wire(&world, "binary").slow_consumers, 0);
        for (place, _) in readers {
            world.gone(place);
        }
        world.gone(publisher);
        for (name, wire) in world.shard(0).counters().wires.each() {
            let gauges = (wire.connections, wire.subscriptions, wire.slow_consumers);
            prop_assert_eq!(gauges, (0, 0, 0), "{}", name);
            prop_assert_eq!(wire.connects, wire.disconnects, "{}", name);
        }
    }
}

#[test]
fn refusals_are_counted_by_code_and_wire_and_a_slow_consumer_while_it_is_one() {
    let mut world = World::new(open_settings(), 1, false);
    let (publisher, reader) = (world.connect(0), world.connect_on(0, "binary"));
    world.ask(publisher, r#"{"publish":"/$node/x/now","content":1}"#);
    world.ask(publisher, r#"{"publish":"/a/*","content":1}"#);
    world.ask(publisher, r#"{"subscribe":"a"}"#);
    world.ask(publisher, r#"{"publish":"/a","content":1}"#);
    let counters = world.shard(0).counters();
    assert_eq!((counters.publishes_refused, counters.commands_refused, counters.messages_in), (2, 3, 1));
    assert_eq!(wire(&world, "json").publishes_refused, 2);
    let by_code = |tally: &godwit_core::report::Tally| tally.each().collect::<Vec<_>>();
    assert_eq!(by_code(&counters.codes.publishes).iter().map(|(_, count)| count).sum::<u64>(), 2);
    assert_eq!(by_code(&counters.codes.commands).iter().map(|(_, count)| count).sum::<u64>(), 3);

    say(&mut world, reader, "binary", &json!({"id": 1, "subscribe": "/a"}));
    world.turn(0);
    world.socket(reader).room = 0;
    world.ask(publisher, r#"{"publish":"/a","content":2}"#);
    assert_eq!((wire(&world, "binary").slow_consumers, wire(&world, "json").slow_consumers), (1, 0));
    world.give_room(reader, 10_000);
    world.turn(0);
    assert_eq!(wire(&world, "binary").slow_consumers, 0);
    world.socket(reader).room = 0;
    world.ask(publisher, r#"{"publish":"/a","content":3}"#);
    world.gone(reader);
    assert_eq!((wire(&world, "binary").slow_consumers, wire(&world, "binary").connections), (0, 0));
    assert_eq!(by_code(&world.shard(0).counters().codes.closes), [(1001, 1)]);
}

#[test]
fn who_never_opens_a_wire_is_counted_as_a_request() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.accept(0);
    assert_eq!((wire(&world, "http").connections, wire(&world, "http").connects), (1, 0));
    world.bytes(place, b"no request at all\r\n\r\n");
    world.turn(0);
    world.gone(place);
    let http = wire(&world, "http");
    assert_eq!((http.connections, http.connects, http.disconnects, http.bytes_in), (0, 1, 1, 21));
    assert!(http.bytes_out > 0);
    assert_eq!(world.shard(0).counters().codes.refused.each().map(|(_, count)| count).sum::<u64>(), 1);
}

#[test]
fn sessions_are_reported_only_where_somebody_reads_it() {
    for reports_sessions in [false, true] {
        let mut settings = open_settings();
        settings.reports_sessions = reports_sessions;
        let mut world = World::new(settings, 1, false);
        let place = world.connect(0);
        world.ask(place, r#"{"id":1,"connect":{}}"#);
        world.ask(place, r#"{"id":2,"subscribe":"/a"}"#);
        world.ask(place, r#"{"id":3,"unsubscribe":"/a"}"#);
        world.gone(place);
        world.turn(0);
        assert_eq!(world.reports().len(), if reports_sessions { 4 } else { 0 });
    }
}

proptest! {
    /// Whoever comes and goes, in whatever way and on whichever shard: who subscribes to a subject by its name is counted, others
    /// are not; one who came at once, one who left within a second.
    #[test]
    fn subscribers_of_a_subject_are_counted(
        steps in prop::collection::vec((0u8..5, 0usize..3, prop::sample::select(vec!["/a", "/b", "/*"])), 1..40),
    ) {
        let mut world = World::new(open_settings(), 3, false);
        let mut readers: Vec<(Place, &str)> = Vec::new();
        for (what, which, selector) in steps {
            let count = readers.len();
            match what {
                0 | 1 => {
                    let (place, wire) = if what == 0 { (world.connect(which), "json") } else { (world.connect_on(which, "binary"), "binary") };
                    say(&mut world, place, wire, &json!({"id": 1, "subscribe": selector}));
                    readers.push((place, selector));
                }
                2 => {
                    let place = world.connect(which);
                    let command = json!({"id": 1, "subscribe": selector, "conflate_ms": 100});
                    say(&mut world, place, "json", &command);
                    readers.push((place, selector));
                }
                _ if count == 0 => {}
                _ => {
                    let (place, _) = readers.swap_remove((which * 7) % count);
                    world.gone(place);
                }
            }
            world.turn_all();
            let least = |subject: &str| readers.iter().filter(|(_, selector)| *selector == subject).count() as u32;
            for subject in ["/a", "/b"] {
                prop_assert!(world.subscribers(subject) >= least(subject), "{subject}");
            }
        }
        for _ in 0..8 {
            world.advance(250);
            world.turn_all();
        }
        for subject in ["/a", "/b"] {
            let expected = readers.iter().filter(|(_, selector)| *selector == subject).count() as u32;
            prop_assert_eq!(world.subscribers(subject), expected, "{}", subject);
        }
    }
}

#[test]
fn a_gap_of_a_subject_that_is_not_there_counts_by_its_reason_and_protocol() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.connect(0);
    let heard = world.ask(place, r#"{"id":1,"subscribe":"/a/*","after":{"/a/x":"3.4","/a/y":"7.4"}}"#);
    assert_eq!(count_gaps(&heard), 2, "{heard:?}");
    let counters = world.shard(0).counters();
    assert_eq!((counters.gaps, counters.gap_reasons.iter().sum::<u64>()), (2, 2));
}
