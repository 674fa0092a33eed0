//! What a session or group is owed holds the log, whether its clients are connected, away or coming back; at a named bound the oldest that wait
//! are skipped and reported, and the session stays.

use std::collections::BTreeSet;

use super::admit::{come_as, connect_with};
use super::{come, connect, listeners, packet, subscribe};
use crate::world::{Place, World, open_settings};
use godwit_core::holder::Holder;
use godwit_core::report::Report;
use godwit_core::settings::{PatternSettings, Settings};
use serde_json::json;

/// A world in which a log keeps three messages, for 200 ms.
fn short_logs(change: impl FnOnce(&mut Settings)) -> World {
    let mut settings = open_settings();
    settings.listeners = listeners();
    settings.limits.log_messages_max = 3;
    settings.limits.log_age_ms_max = 200;
    settings.limits.mqtt_inflight_max = 2;
    settings.limits.idle_ms_max = 1 << 40;
    change(&mut settings);
    World::new(settings, 2, false)
}

pub(super) fn arrive(world: &mut World, shard: usize, name: &str) -> Place {
    let place = come(world, shard, &connect(name, true));
    world.turn_all();
    place
}

pub(super) fn subscribe_five(world: &mut World, place: Place, filter: &str, qos: u8) {
    let mut bytes = subscribe(&[(filter, qos)]);
    bytes.insert(4, 0); // no properties
    bytes[1] += 1;
    world.bytes(place, &bytes);
    world.turn_all();
}

fn publish(world: &mut World, publisher: Place, subject: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        world.say(publisher, &json!({"publish": subject, "content": number}).to_string());
    }
    world.turn_all();
}

/// Time passes, and the node looks at all it has.
fn pass(world: &mut World, ms: u64) {
    for _ in 0..ms.div_ceil(100) {
        world.advance(100);
        world.turn_all();
    }
}

/// Takes the packets that came: CONNACK's flags and properties, and the numbers of messages, each of which is acknowledged.
pub(super) fn hear(world: &mut World, place: Place, says: bool) -> (Option<Vec<u8>>, Vec<u32>) {
    let (mut connack, mut numbers) = (None, Vec::new());
    loop {
        world.turn_all();
        let mut rest = std::mem::take(&mut world.socket(place).taken);
        if rest.is_empty() {
            return (connack, numbers);
        }
        while !rest.is_empty() {
            let body: Vec<u8> = rest[2..2 + usize::from(rest[1])].to_vec();
            match rest[0] >> 4 {
                2 => connack = Some(body),
                3 => {
                    let topic = usize::from(u16::from_be_bytes([body[0], body[1]]));
                    let id = &body[2 + topic..4 + topic];
                    numbers.push(std::str::from_utf8(&body[5 + topic..]).unwrap().parse().unwrap());
                    if says {
                        world.bytes(place, &packet(0x40, id));
                    }
                }
                _ => {}
            }
            rest.drain(..2 + usize::from(rest[1]));
        }
    }
}

fn all(numbers: std::ops::Range<u32>) -> Vec<u32> {
    numbers.collect()
}

pub(super) fn missed(world: &World) -> Vec<(String, String, Option<u64>)> {
    let reported = world.reports.iter().filter_map(|report| match report {
        Report::MqttMissed { client, selector, missed, .. } => Some((client.to_string(), selector.clone(), *missed)),
        _ => None,
    });
    reported.collect()
}

#[test]
fn a_group_whose_only_member_is_away_loses_nothing() {
    for qos in [0, 1] {
        let mut world = short_logs(|_| {});
        let publisher = world.connect(0);
        let member = arrive(&mut world, 0, "worker");
        subscribe_five(&mut world, member, "$share/g/jobs/#", qos);
        world.gone(member);
        world.turn_all();
        publish(&mut world, publisher, "/jobs/a", 0..20);
        pass(&mut world, 3_000);
        let member = arrive(&mut world, 1, "worker");
        if qos == 1 {
            assert_eq!(hear(&mut world, member, true).1, all(0..20));
        } else {
            assert_eq!(world.socket(member).taken.iter().filter(|byte| **byte == b'j').count(), 20);
        }
    }
}

#[test]
fn a_slow_client_that_never_left_gets_everything_whatever_the_log_keeps() {
    for filter in ["a/x", "a/#"] {
        let mut world = short_logs(|_| {});
        let publisher = world.connect(1);
        let slow = arrive(&mut world, 0, "slow");
        subscribe_five(&mut world, slow, filter, 1);
        hear(&mut world, slow, true);
        publish(&mut world, publisher, "/a/x", 0..900);
        pass(&mut world, 5_000);
        publish(&mut world, publisher, "/a/x", 900..1_000);
        pass(&mut world, 5_000);
        assert_eq!(hear(&mut world, slow, true).1, all(0..1_000), "{filter}");
        assert!(missed(&world).is_empty());
        // What it has settled is held no longer.
        pass(&mut world, 6_000);
        assert_eq!(world.node.lock().unwrap().totals().messages, 0, "{filter}");
        assert_eq!(world.node.lock().unwrap().totals().owed_bytes, 0, "{filter}");
    }
}

#[test]
fn a_client_that_came_back_gets_everything_whatever_the_log_keeps() {
    let mut world = short_logs(|_| {});
    let publisher = world.connect(1);
    let slow = arrive(&mut world, 0, "slow");
    subscribe_five(&mut world, slow, "a/#", 1);
    world.gone(slow);
    publish(&mut world, publisher, "/a/x", 0..50);
    pass(&mut world, 3_000);
    let slow = arrive(&mut world, 1, "slow");
    pass(&mut world, 3_000);
    publish(&mut world, publisher, "/a/y", 50..60);
    pass(&mut world, 3_000);
    let (connack, numbers) = hear(&mut world, slow, true);
    assert_eq!(numbers, all(0..60));
    let connack = connack.unwrap();
    assert_eq!(connack[..2], [1, 0]);
    assert!(!connack.windows(13).any(|part| part == b"godwit-missed"));
}

#[test]
fn workers_slower_than_the_log_is_old_lose_no_job() {
    let mut world = short_logs(|settings| settings.limits.mqtt_inflight_max = 1);
    let publisher = world.connect(1);
    let workers = [arrive(&mut world, 0, "one"), arrive(&mut world, 1, "two")];
    for worker in workers {
        subscribe_five(&mut world, worker, "$share/g/jobs", 1);
        hear(&mut world, worker, true);
    }
    publish(&mut world, publisher, "/jobs", 0..10);
    pass(&mut world, 4_000);
    world.gone(workers[0]); // with a job that it took a long time over
    pass(&mut world, 4_000);
    assert_eq!(hear(&mut world, workers[1], true).1.into_iter().collect::<BTreeSet<u32>>().len(), 10);
    pass(&mut world, 6_000);
    assert_eq!(world.node.lock().unwrap().totals().messages, 0);
}

#[test]
fn past_its_bound_a_session_skips_the_oldest_and_stays() {
    let mut world = short_logs(|settings| settings.limits.mqtt_owed_messages_max = 20);
    let publisher = world.connect(1);
    let slow = arrive(&mut world, 0, "slow");
    subscribe_five(&mut world, slow, "a", 1);
    hear(&mut world, slow, true);
    publish(&mut world, publisher, "/a", 0..200); // two are under way
    let (_, numbers) = hear(&mut world, slow, true);
    assert_eq!(numbers[..2], [0, 1]);
    assert_eq!(numbers[numbers.len() - 20..], all(180..200));
    let reported = missed(&world);
    assert_eq!(reported.iter().map(|one| one.2.unwrap()).sum::<u64>(), 200 - numbers.len() as u64);
    assert!(reported.iter().all(|one| (&*one.0, &*one.1) == ("slow", "/a")), "{reported:?}");
    publish(&mut world, publisher, "/a", 200..203);
    assert_eq!(hear(&mut world, slow, true).1, all(200..203), "it goes on");
}

#[test]
fn a_session_that_is_away_skips_over_all_its_topics_and_is_told_how_many_when_it_comes_back() {
    let mut world = short_logs(|settings| settings.limits.mqtt_owed_messages_max = 20);
    let publisher = world.connect(1);
    let away = arrive(&mut world, 0, "away");
    subscribe_five(&mut world, away, "a/#", 1);
    world.gone(away);
    for number in 0..50 {
        publish(&mut world, publisher, &format!("/a/{}", number % 10), number..number + 1);
    }
    pass(&mut world, 5_000);
    let overdue = world.reports.iter().find_map(|report| match report {
        Report::MqttOverdue { name, messages, .. } => Some((name.to_string(), *messages)),
        _ => None,
    });
    assert_eq!(overdue, Some(("away".to_owned(), 30)));
    let away = arrive(&mut world, 0, "away");
    let (connack, numbers) = hear(&mut world, away, true);
    assert_eq!(numbers, all(30..50));
    let connack = connack.unwrap();
    assert_eq!(connack[0], 1, "the session is still there");
    assert!(connack.ends_with(b"godwit-missed\0\x0230"), "{connack:x?}");
    // Of ten subjects, a few reports a second.
    let reported = missed(&world);
    assert!(!reported.is_empty() && reported.iter().all(|one| &*one.0 == "away" && one.2 == Some(3)), "{reported:?}");
}

#[test]
fn a_pattern_may_ask_that_such_a_session_ends_or_that_age_stays_a_promise() {
    let pattern = |change: fn(&mut PatternSettings)| {
        let mut one = PatternSettings { pattern: "/a/**".into(), ..PatternSettings::default() };
        change(&mut one);
        short_logs(|settings| {
            settings.limits.mqtt_owed_messages_max = 20;
            settings.patterns = vec![one];
        })
    };
    for (change, present, got) in [
        ((|one| one.mqtt_at_owed_max = Some("end".into())) as fn(&mut PatternSettings), 0, vec![]),
        (|one| one.mqtt_holds = Some(false), 1, vec![]),
    ] {
        let mut world = pattern(change);
        let publisher = world.connect(1);
        let away = arrive(&mut world, 0, "away");
        subscribe_five(&mut world, away, "a/#", 1);
        world.gone(away);
        publish(&mut world, publisher, "/a/x", 0..50);
        pass(&mut world, 3_000);
        let away = arrive(&mut world, 0, "away");
        let (connack, numbers) = hear(&mut world, away, true);
        assert_eq!((connack.unwrap()[0], numbers), (present, got));
    }
}

#[test]
fn past_the_nodes_bound_the_holder_with_most_skips_first() {
    let mut world = short_logs(|settings| {
        settings.limits.logs_bytes_max = 4 << 20;
        settings.limits.mqtt_owed_node_bytes_max = 100_000;
    });
    let publisher = world.connect(1);
    for (name, filter) in [("much", "much/#"), ("little", "little/#")] {
        let place = arrive(&mut world, 0, name);
        subscribe_five(&mut world, place, filter, 1);
        world.gone(place);
    }
    publish(&mut world, publisher, "/little/x", 0..100);
    publish(&mut world, publisher, "/much/x", 0..2_000);
    pass(&mut world, 20_000);
    assert!(world.node.lock().unwrap().totals().owed_bytes <= 100_000);
    let little = arrive(&mut world, 0, "little");
    assert_eq!(hear(&mut world, little, true).1, all(0..100));
    let much = arrive(&mut world, 0, "much");
    let numbers = hear(&mut world, much, true).1;
    assert!(numbers.len() > 100 && numbers.last() == Some(&1_999), "{}", numbers.len());
    assert_eq!(missed(&world).iter().map(|one| one.2.unwrap()).sum::<u64>(), 2_000 - numbers.len() as u64);
}

#[test]
fn a_walk_of_retained_messages_goes_on_where_it_was_and_live_messages_follow() {
    let mut world = short_logs(|_| {});
    let publisher = world.connect(1);
    for number in 0..20 {
        publish(&mut world, publisher, &format!("/a/{number:02}"), number..number + 1);
    }
    let mut place = arrive(&mut world, 0, "short");
    subscribe_five(&mut world, place, "a/#", 1);
    publish(&mut world, publisher, "/a/live", 100..101);
    let mut got = Vec::new();
    for _ in 0..12 {
        // Two are under way at a time; it acknowledges them and is cut off.
        got.append(&mut hear(&mut world, place, false).1);
        for id in 1..=60_u8 {
            world.bytes(place, &packet(0x40, &[0, id]));
        }
        world.gone(place);
        place = arrive(&mut world, 0, "short");
    }
    got.append(&mut hear(&mut world, place, true).1);
    let count = |number: u32| got.iter().filter(|one| **one == number).count();
    let wanted = (0..20).chain([100]);
    assert!(wanted.clone().all(|number| (1..=2).contains(&count(number))), "{got:?}");
}

#[test]
fn past_the_nodes_bound_the_tenant_with_most_skips_first() {
    tenant_skips(|number| format!("t/{number}/#"), "c");
}

#[test]
fn what_groups_are_owed_is_in_their_tenants_share() {
    tenant_skips(|number| if number == 0 { "t/0/#".to_owned() } else { format!("$share/g/t/{number}/#") }, "$share");
}

/// A tenant is owed more in all than another, which is owed more once; those whose names begin so are to skip.
fn tenant_skips(filter: impl Fn(usize) -> String, skips: &str) {
    let mut world = World::new(
        {
            let mut settings = super::admit::settings();
            (settings.limits.logs_bytes_max, settings.limits.mqtt_owed_node_bytes_max) = (4 << 20, 100_000);
            (settings.limits.log_messages_max, settings.limits.log_age_ms_max) = (3, 200);
            settings
        },
        1,
        false,
    );
    // One identity of a tenant is owed more than any of another tenant, whose many are owed more together.
    let lone = Holder::new("small", "authorizer", "one");
    let many = (0..6).map(|number| Holder::new("large", "authorizer", &format!("{number}")));
    let publisher = come_as(&mut world, Holder::new("", "authorizer", "p"), &connect_with("p", false));
    for (number, holder) in std::iter::once(lone).chain(many).enumerate() {
        let place = come_as(&mut world, holder, &connect_with(&format!("c{number}"), false));
        subscribe_five(&mut world, place, &filter(number), 1);
        world.gone(place);
        for sent in 0..if number == 0 { 300_u32 } else { 250 } {
            let topic = super::text(&format!("t/{number}/x"));
            let body = [&topic[..], &[0, 1, 0], sent.to_string().as_bytes()].concat();
            world.bytes(publisher, &packet(0x32, &body));
        }
        world.turn_all();
    }
    pass(&mut world, 20_000);
    assert!(world.node.lock().unwrap().totals().owed_bytes <= 100_000);
    let overdue = world.reports.iter().filter_map(|report| match report {
        Report::MqttOverdue { name, .. } => Some(name.to_string()),
        _ => None,
    });
    let overdue: Vec<String> = overdue.collect();
    assert!(!overdue.is_empty() && overdue.iter().all(|name| name.starts_with(skips) && name != "c0"), "{overdue:?}");
    assert!(missed(&world).is_empty());
}
