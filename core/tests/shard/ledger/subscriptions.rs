//! Which subscription a row is of can be told from the rows alone: by their times, by where each begins, and by who began again.

use super::{deliveries, journaling};
use crate::mqtt::{come, connect, listeners, packet, subscribe, text};
use crate::world::World;
use godwit_core::journal::{AccessKind, Range, Rows};
use serde_json::json;

/// When subscriptions to `/a` began and when rows of it were written, each by its stream.
fn times(rows: Vec<Rows>) -> (Vec<u64>, Vec<u64>) {
    let access = rows.iter().filter_map(|rows| if let Rows::Access(rows) = rows { Some(rows) } else { None }).flatten();
    let began = access.filter(|row| row.kind == AccessKind::Subscribed).map(|row| row.time_us).collect();
    (began, deliveries(rows).iter().map(|row| row.time_us).collect())
}

#[test]
fn rows_of_subscriptions_that_follow_each_other_within_a_moment_are_told_apart_by_their_times() {
    let mut world = World::new(journaling(), 1, false);
    let place = world.connect(0);
    for (ends_before, back_ms) in [(false, 0), (true, 0), (false, 3_600_000)] {
        world.advance(10);
        world.now.wall_ms -= back_ms;
        for _ in 0..1_100 {
            world.ask(place, r#"{"id":1,"subscribe":"/a","after":"7.1"}"#);
            world.ask(place, r#"{"publish":"/a","content":1}"#);
            if ends_before {
                world.ask(place, r#"{"id":2,"unsubscribe":"/a"}"#);
            }
        }
        world.ask(place, r#"{"id":2,"unsubscribe":"/a"}"#);
        let (began, handed) = times(world.take_rows(0));
        assert!(began.len() == 1_100 && handed.len() >= 1_100 && began.is_sorted_by(|one, next| one < next));
        assert!(began.iter().all(|time_us| !time_us.is_multiple_of(1_000)), "a reader knows by it what to go by");
        assert!(began[0] / 1_000 == world.now.wall_ms && handed.is_sorted());
        // Of each subscription there is a row at least, and it comes before the next one begins.
        let last = began[began.len() - 1];
        let is_delivered = |from, to| handed.iter().any(|time_us| (from..to).contains(time_us));
        assert!(began.windows(2).all(|pair| is_delivered(pair[0], pair[1])) && is_delivered(last, last + 1_000_000));
    }
}

#[test]
fn a_range_begins_behind_its_resume_token_though_the_log_has_let_go_of_what_follows_that() {
    for has_window in [false, true] {
        let mut settings = journaling();
        (settings.limits.log_messages_max, settings.limits.journal_reads_max) = (4, 0);
        let mut world = World::new(settings, 1, false);
        let place = world.connect(0);
        let slow = [world.connect(0), world.connect(0)];
        for reader in slow.iter().filter(|_| has_window) {
            world.ask(*reader, r#"{"id":1,"subscribe":"/a"}"#);
            world.socket(*reader).room = 0; // what it is owed stays in the stream's window
        }
        for number in 1..=10 {
            world.ask(place, &json!({"publish": "/a", "content": number}).to_string());
        }
        world.ask(place, r#"{"id":2,"subscribe":"/a","since":"a1.2.0","on_gap":"oldest"}"#);
        world.turn(0);
        let heard = world.heard(place);
        world.ask(place, r#"{"id":3,"unsubscribe":"/a"}"#);
        let rows = deliveries(world.take_rows(0));
        let [row] = &rows[..] else { panic!("{heard:?} {rows:?}") };
        assert_eq!(row.range, Range::Subject { epoch: 7, from: Some(3), to: 10 });
        let expected = if has_window { (8, 0, Some(0)) } else { (4, 1, Some(4)) };
        assert_eq!((row.count, row.gaps, row.gap_count), expected, "{heard:?}");
    }
}

#[test]
fn a_session_that_goes_on_is_subscribed_again_and_owed_what_its_qos_keeps() {
    let mut settings = journaling();
    settings.listeners = listeners();
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    let publish = |world: &mut World| {
        for subject in ["/a", "/b"] {
            world.ask(publisher, &json!({"publish": subject, "content": 1}).to_string());
        }
    };
    for turn in 0..2 {
        let place = come(&mut world, 0, &connect("c", false));
        if turn == 0 {
            world.bytes(place, &subscribe(&[("a", 0), ("b", 1)]));
        }
        world.turn(0);
        publish(&mut world);
        world.gone(place);
        world.turn(0);
        let rows = world.take_rows(0);
        let access = rows.iter().filter_map(|rows| if let Rows::Access(rows) = rows { Some(rows) } else { None });
        let began: Vec<_> = access.flatten().filter(|row| row.kind == AccessKind::Subscribed).collect();
        let outcomes: Vec<_> = began.iter().map(|row| row.outcome.unwrap().name()).collect();
        assert_eq!(outcomes, [["live", "recovered"][turn]; 2]);
        let ranges: Vec<_> = deliveries(rows).iter().map(|row| (row.range, row.count)).collect();
        publish(&mut world); // while it is away
        let range = |from, to, count| (Range::Subject { epoch: 7, from: Some(from), to }, count);
        let expected = [[range(1, 1, 1), range(1, 1, 1)], [range(3, 3, 1), range(2, 3, 2)]][turn];
        assert!(ranges.len() == 2 && expected.iter().all(|each| ranges.contains(each)), "{ranges:?}");
    }
}

#[test]
fn a_subscription_that_sends_for_one_that_ended_begins_again_where_that_stood() {
    let mut settings = journaling();
    settings.listeners = listeners();
    settings.limits.mqtt_inflight_max = 1;
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    let place = come(&mut world, 0, &connect("c", false));
    world.bytes(place, &subscribe(&[("e/#", 1), ("e/a", 2)]));
    for subject in ["/e/a", "/e/a", "/e/a", "/e/b"] {
        world.ask(publisher, &json!({"publish": subject, "content": 1}).to_string());
    }
    world.bytes(place, &packet(0xa2, &[&[0, 2], text("e/a").as_slice()].concat()));
    for answer in [[0x50, 1], [0x70, 1], [0x40, 2], [0x40, 3], [0x40, 4]] {
        world.turn(0);
        world.bytes(place, &packet(answer[0], &[0, answer[1]]));
    }
    world.gone(place);
    world.turn(0);
    let rows = world.take_rows(0);
    let access = rows.iter().filter_map(|rows| if let Rows::Access(rows) = rows { Some(rows) } else { None });
    let began = access.flatten().filter(|row| row.kind == AccessKind::Subscribed);
    let began: Vec<_> = began.map(|row| (row.selector.as_deref().unwrap(), row.outcome.unwrap().name())).collect();
    assert_eq!(began, [("/e/**", "live"), ("/e/a", "live"), ("/e/**", "recovered")]);
    let ranges: Vec<_> = deliveries(rows).iter().map(|row| (row.range, row.count, row.conflated)).collect();
    let pattern = |from, to, count, merged| (Range::Pattern { run: 161, from: Some(from), to }, count, merged);
    let subject = (Range::Subject { epoch: 7, from: Some(1), to: 1 }, 1, 0);
    // What it had left to the other it leaves to it no more, but for the first.
    assert_eq!(ranges, [pattern(1, 3, 0, 3), subject, pattern(2, 4, 3, 0)]);
}
