//! The table of sessions: one is promised at CONNECT and kept, whatever others do; its last fifth is for holders with few.
use super::admit::{come_as, connect_with, settings, taken};
use super::end::{packet, subscribe};
use crate::world::{Place, World};
use godwit_core::holder::Holder;
use godwit_core::report::Order;
use std::sync::Arc;

fn come(world: &mut World, identity: &str, client: &str) -> (Place, u8) {
    let place = come_as(world, Holder::new("", "authorizer", identity), &connect_with(client, false));
    let reason = taken(world, place)[3];
    (place, reason)
}

#[test]
fn nobody_alone_fills_the_table_of_sessions_and_no_promised_one_is_dropped() {
    let mut settings = settings();
    settings.limits.mqtt_sessions_max = 200;
    let mut world = World::new(settings, 1, false);
    let (device, reason) = come(&mut world, "device", "d");
    assert_eq!(reason, 0);
    let reasons: Vec<u8> = (0..170)
        .map(|number| {
            let (place, reason) = come(&mut world, "greedy", &format!("g{number}"));
            world.gone(place);
            world.turn_all();
            reason
        })
        .collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == 0).count(), 159);
    assert_eq!(reasons.last(), Some(&0x97));
    let (_, reason) = come(&mut world, "device", "e");
    assert_eq!(reason, 0, "who has few has a place in the last fifth");
    assert_eq!(come(&mut world, "device", "f").1, 0x97, "and not more than a hundredth");
    assert_eq!(come(&mut world, "greedy", "g7").1, 0, "a session that is there is resumed");
    world.gone(device);
    world.turn_all();
    let back = come_as(&mut world, Holder::new("", "authorizer", "device"), &connect_with("d", false));
    assert_eq!(taken(&mut world, back)[2..4], [1, 0], "a promised session is there");
}

#[test]
fn a_full_table_refuses_who_asks_and_a_session_that_ends_frees_its_place() {
    let mut settings = settings();
    settings.limits.mqtt_sessions_max = 2;
    let mut world = World::new(settings.clone(), 1, false);
    let (first, _) = come(&mut world, "a", "1");
    let (second, _) = come(&mut world, "a", "2");
    assert_eq!(come(&mut world, "a", "3").1, 0x97);
    assert_eq!(come(&mut world, "a", "3").1, 0x97, "a refusal takes no place and leaves nothing");
    world.gone(second);
    world.turn_all();
    // DISCONNECT with a session expiry of 0.
    world.bytes(first, &[0xe0, 7, 0, 5, 0x11, 0, 0, 0, 0]);
    world.turn_all();
    world.gone(first);
    world.turn_all();
    assert_eq!(come(&mut world, "a", "3").1, 0);
    settings.limits.mqtt_sessions_max = 1;
    world.order(0, Order::Configure(Arc::new(settings)));
    let back = come_as(&mut world, Holder::new("", "authorizer", "a"), &connect_with("2", false));
    assert_eq!(taken(&mut world, back)[2..4], [1, 0], "a lower limit ends no session that is promised");
}

#[test]
fn where_no_session_is_kept_nobody_is_refused_for_asking() {
    let mut settings = settings();
    settings.limits.mqtt_sessions_max = 0;
    let mut world = World::new(settings, 1, false);
    let (place, reason) = come(&mut world, "a", "1");
    assert_eq!(reason, 0);
    world.gone(place);
    world.turn_all();
    assert_eq!(come(&mut world, "a", "1").1, 0);
}

#[test]
fn a_shared_subscription_takes_a_subject_of_its_holders_share() {
    let mut settings = settings();
    settings.limits.subjects_max = 100;
    let mut world = World::new(settings, 1, false);
    let (place, _) = come(&mut world, "greedy", "g");
    let refused = (0..100).filter(|number| {
        let filter = subscribe(&[(&format!("$share/group/{number}"), 1)]);
        world.bytes(place, &packet(0x82, &[&filter[2..4], &[0], &filter[4..]].concat()));
        world.turn_all();
        taken(&mut world, place).last() == Some(&0x97)
    });
    assert_eq!(refused.count(), 20);
}

/// How many of so many subscriptions an identity is granted over one more session, which then is left.
fn subscribe_and_leave(world: &mut World, identity: &str, client: &str, count: usize) -> usize {
    let (place, reason) = come(world, identity, client);
    assert_eq!(reason, 0);
    let granted = (0..count).filter(|number| {
        let filter = subscribe(&[(&format!("w/{client}/{number}"), 1)]);
        world.bytes(place, &packet(0x82, &[&filter[2..4], &[0], &filter[4..]].concat()));
        world.turn_all();
        taken(world, place).last().is_some_and(|code| *code <= 2)
    });
    let granted = granted.count();
    world.gone(place);
    world.turn_all();
    granted
}

#[test]
fn sessions_that_are_away_count_with_their_identity_and_can_all_be_resumed() {
    let mut limited = settings();
    limited.limits.subscriptions_per_identity_max = 50;
    let mut world = World::new(limited.clone(), 1, false);
    let granted: usize = (0..40).map(|number| subscribe_and_leave(&mut world, "ann", &format!("a{number}"), 30)).sum();
    assert_eq!(granted, 50, "of 1,200 over 40 sessions");
    assert_eq!(subscribe_and_leave(&mut world, "bob", "b", 30), 30, "others have their own");
    for client in ["a0", "a1"] {
        let place = come_as(&mut world, Holder::new("", "authorizer", "ann"), &connect_with(client, false));
        assert_eq!(taken(&mut world, place)[2..4], [1, 0], "{client}");
        world.gone(place);
        world.turn_all();
    }
    // a clean start ends the session of 30
    let mut clean = connect_with("a0", false);
    clean[9] |= 2;
    let place = come_as(&mut world, Holder::new("", "authorizer", "ann"), &clean);
    assert_eq!(taken(&mut world, place)[2..4], [0, 0]);
    assert_eq!(subscribe_and_leave(&mut world, "ann", "new", 60), 30);
}

#[test]
fn a_quota_that_is_turned_on_or_lowered_counts_who_is_away_and_each_can_come_back() {
    let mut world = World::new(settings(), 1, false);
    for client in ["1", "2", "3"] {
        assert_eq!(subscribe_and_leave(&mut world, "ann", client, 30), 30);
    }
    let mut limited = settings();
    limited.limits.subscriptions_per_identity_max = 50;
    world.configure(&limited);
    world.turn_all();
    assert_eq!(subscribe_and_leave(&mut world, "ann", "4", 30), 0, "90 of 50 are there");
    let holder = || Holder::new("", "authorizer", "ann");
    let first = come_as(&mut world, holder(), &connect_with("1", false));
    assert_eq!(taken(&mut world, first)[2..4], [1, 0]);
    let second = come_as(&mut world, holder(), &connect_with("2", false));
    assert_eq!(taken(&mut world, second)[2..4], [0, 0x97], "two of them are more than 50");
    world.gone(first);
    world.gone(second);
    world.turn_all();
    let second = come_as(&mut world, holder(), &connect_with("2", false));
    assert_eq!(taken(&mut world, second)[2..4], [1, 0], "it was kept whole");
}

/// A group is dealt to by what the feed says: what a shard was not told of is dealt all the same, each message once.
#[test]
fn a_group_is_dealt_what_its_shard_was_not_told_of() {
    for members in 1..4 {
        let mut settings = settings();
        settings.asks_on_connect = false;
        settings.limits.feed_entries_max = 10;
        let mut world = World::new(settings, 2, false);
        let publisher = world.connect(0);
        let places: Vec<Place> = (0..members)
            .map(|number| {
                let place = super::come(&mut world, 1, &super::connect(&format!("m{number}"), false));
                world.turn_all();
                world.bytes(place, &subscribe(&[("$share/g/a", 1)]));
                world.turn_all();
                taken(&mut world, place);
                place
            })
            .collect();
        let contents: Vec<String> = (0..20).map(|number| format!("content-{number:02}")).collect();
        let all: Vec<String> =
            contents.iter().map(|content| format!(r#"{{"publish":"/a","content":"{content}"}}"#)).collect();
        world.say(publisher, &format!("[{}]", all.join(",")));
        world.turn_alone(0);
        world.turn(1);
        world.settle();
        let got: Vec<Vec<u8>> = places.into_iter().map(|place| taken(&mut world, place)).collect();
        for content in contents {
            let count =
                |bytes: &[u8]| bytes.windows(content.len()).filter(|window| *window == content.as_bytes()).count();
            let times: usize = got.iter().map(|bytes| count(bytes)).sum();
            assert_eq!(times, 1, "{content} with {members} members");
        }
    }
}
