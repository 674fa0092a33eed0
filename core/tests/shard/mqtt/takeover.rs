//! Limits that a client meets over MQTT: a refusal names the limit, and a takeover needs nothing of a limit that its client has already.
use std::sync::Arc;

use super::admit::{all, come_as, connect_with, grant_to, has, question, settings, taken};
use super::end::{packet, subscribe, text};
use super::will_limit;
use crate::world::{Place, World, masked, open_settings};
use godwit_core::holder::Holder;
use godwit_core::limits::Limits;
use godwit_core::report::{Order, Report};
use godwit_core::settings::JournalSettings;

fn ann() -> Arc<Holder> {
    Holder::new("acme", "authorizer", "ann")
}

fn world(change: impl FnOnce(&mut Limits)) -> World {
    let mut settings = settings();
    change(&mut settings.limits);
    World::new(settings, 2, false)
}

/// The log entries about refused commands since the last call.
fn reports(world: &mut World) -> Vec<String> {
    let reason = |report| match report {
        Report::CommandRefused { reason, .. } => Some(reason),
        _ => None,
    };
    world.reports().into_iter().filter_map(reason).collect()
}

/// SUBSCRIBE and PUBLISH at QoS 1 with packet identifier 1, as 5.0 writes them.
fn subscribe_to(filter: &str) -> Vec<u8> {
    let mut bytes = subscribe(&[(filter, 1)]);
    bytes.insert(4, 0);
    bytes[1] += 1;
    bytes
}

fn publish_to(topic: &str) -> Vec<u8> {
    packet(0x32, &[&text(topic)[..], &[0, 1, 0], b"content"].concat())
}

#[test]
fn a_refusal_names_the_quota_in_the_log_and_in_the_reason_string() {
    type Case = (&'static str, fn(&mut Limits), fn(&str) -> Vec<u8>);
    let cases: [Case; 7] = [
        ("subscriptions_per_connection_max", |limits| limits.subscriptions_per_connection_max = 1, subscribe_to),
        ("subscriptions_per_address_max", |limits| limits.subscriptions_per_address_max = 1, subscribe_to),
        ("subscriptions_per_identity_max", |limits| limits.subscriptions_per_identity_max = 1, subscribe_to),
        ("subscriptions_per_tenant_max", |limits| limits.subscriptions_per_tenant_max = 1, subscribe_to),
        ("subscribes_per_second_max", |limits| limits.subscribes_per_second_max = 1, subscribe_to),
        (
            "publishes_per_second_per_identity_max",
            |limits| limits.publishes_per_second_per_identity_max = 1,
            publish_to,
        ),
        ("publishes_per_second_per_tenant_max", |limits| limits.publishes_per_second_per_tenant_max = 1, publish_to),
    ];
    for (limit, change, says) in cases {
        let mut world = world(|limits| {
            limits.burst_ms_max = 1_000;
            change(limits);
        });
        let place = come_as(&mut world, ann(), &connect_with("c", false));
        world.bytes(place, &says("first"));
        world.turn_all();
        taken(&mut world, place);
        reports(&mut world);
        for _ in 0..2 {
            world.bytes(place, &says("second"));
            world.turn_all();
            let name = format!("limits.{limit}");
            let answer = taken(&mut world, place);
            assert!(has(&answer, &name), "{name}: {}", String::from_utf8_lossy(&answer));
            assert!(answer.contains(&0x97), "{answer:x?}");
            let reports = reports(&mut world);
            assert!(reports.len() == 1 && reports[0].contains(&name), "{name}: {reports:?}");
        }
    }
}

#[test]
fn a_session_that_may_not_be_resumed_is_told_which_quota_it_is() {
    let mut world = world(|_| {});
    let place = come_as(&mut world, ann(), &connect_with("c", false));
    for filter in ["first", "second"] {
        world.bytes(place, &subscribe_to(filter));
        world.turn_all();
    }
    world.gone(place);
    let mut less = settings();
    less.shards = 2;
    less.limits.subscriptions_per_identity_max = 1;
    for shard in 0..2 {
        world.order(shard, Order::Configure(Arc::new(less.clone())));
    }
    reports(&mut world);
    let place = come_as(&mut world, ann(), &connect_with("c", false));
    let answer = taken(&mut world, place);
    assert!(answer[3] == 0x97 && has(&answer, "limits.subscriptions_per_identity_max"), "{answer:x?}");
    assert!(reports(&mut world).iter().any(|line| line.contains("limits.subscriptions_per_identity_max")));
}

/// How a client comes: over TCP, or MQTT over WebSocket.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Tcp,
    WebSocket,
}

/// Somebody comes from an address; returns the reason of CONNACK, none where HTTP refused.
fn come_from(
    world: &mut World,
    (shard, last): (usize, u8),
    way: Way,
    who: Option<&Arc<Holder>>,
    says: &[u8],
) -> (Place, Option<u8>) {
    let address = ([192, 0, 2, last], 4000).into();
    let place = world.accept_from(shard, address, u8::from(way == Way::Tcp));
    if way == Way::WebSocket {
        world.bytes(
            place,
            b"GET /mqtt HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
              Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
        );
        world.turn_all();
        if !taken(world, place).starts_with(b"HTTP/1.1 101") {
            return (place, None);
        }
        let mut frame = masked(says);
        frame[0] = 0x82;
        world.bytes(place, &frame);
    } else {
        world.bytes(place, says);
    }
    world.turn_all();
    if let Some((connection, holder)) = who.and_then(|holder| Some((question(world)?, holder))) {
        world.order(shard, grant_to(connection, Arc::clone(holder), &all()));
        world.turn_all();
    }
    world.turn_all();
    let answer = taken(world, place);
    let start = if way == Way::WebSocket { 2 } else { 0 };
    (place, answer.get(start + 3).copied())
}

#[test]
fn a_takeover_needs_no_second_place_of_its_address() {
    for (way, has_token) in [(Way::Tcp, true), (Way::Tcp, false), (Way::WebSocket, true), (Way::WebSocket, false)] {
        let mut settings = settings();
        settings.asks_on_connect = has_token;
        if !has_token {
            settings.anonymous = open_settings().anonymous;
        }
        settings.limits.connections_per_address_max = 1;
        let mut world = World::new(settings, 2, false);
        let ann = ann();
        let who = has_token.then_some(&ann);
        let says = |name: &str| {
            let mut says = connect_with(name, false);
            if !has_token {
                says = super::connect(name, true);
            }
            says
        };
        let (mut old, reason) = come_from(&mut world, (0, 1), way, who, &says("c"));
        assert_eq!(reason, Some(0));
        let (other, reason) = come_from(&mut world, (0, 1), way, who, &says("d"));
        assert_ne!(reason, Some(0), "another client needs a place of its own");
        world.gone(other);
        for shard in [1, 0, 1] {
            let (place, reason) = come_from(&mut world, (shard, 1), way, who, &says("c"));
            assert_eq!(reason, Some(0), "{has_token} on {shard}");
            world.gone(old);
            let (other, reason) = come_from(&mut world, (1, 1), way, who, &says("d"));
            assert_ne!(reason, Some(0), "still one place");
            world.gone(other);
            old = place;
        }
        assert_eq!(come_from(&mut world, (0, 2), way, who, &says("e")).1, Some(0));
        let (_, reason) = come_from(&mut world, (0, 2), way, who, &says("c"));
        assert_ne!(reason, Some(0), "its connection is at another address: it frees nothing here");
        world.turn_all();
        assert!(!world.socket(old).is_closed && taken(&mut world, old).is_empty(), "and stays");
    }
}

#[test]
fn a_will_that_replaces_its_clients_needs_no_second_room() {
    for is_away in [false, true] {
        let mut world = will_limit::world_of(50_000);
        let (place, reason) = will_limit::come(&mut world, "ann", &will_limit::connect(5, "a", 30_000, 60));
        assert_eq!(reason, 0);
        if is_away {
            world.gone(place);
            world.turn_all();
        }
        for bytes in [30_000, 10, 45_000] {
            let (_, reason) = will_limit::come(&mut world, "ann", &will_limit::connect(5, "a", bytes, 60));
            assert_eq!(reason, 0, "{is_away} {bytes}");
            let held = will_limit::held(&world) as usize;
            assert!((bytes..bytes + 1_000).contains(&held), "{bytes} {held}");
        }
        let (_, reason) = will_limit::come(&mut world, "ann", &will_limit::connect(5, "a", 55_000, 60));
        assert_eq!(reason, 0x97, "more than the limit");
        let (_, reason) = will_limit::come(&mut world, "ann", &will_limit::connect(5, "b", 30_000, 60));
        assert_eq!(reason, 0x97, "another client's");
        let (_, reason) = will_limit::come(&mut world, "bob", &will_limit::connect(5, "a", 30_000, 60));
        assert_ne!(reason, 0, "somebody else's");
    }
}

/// Bytes arrive, and only their shard takes a turn: other shards have not learned of them.
fn says_alone(world: &mut World, place: Place, says: &[u8]) {
    world.bytes(place, says);
    world.turn_alone(place.0);
}

#[test]
fn the_newest_connection_wins_wherever_an_older_one_still_waits() {
    let mut settings = settings();
    settings.asks_on_connect = false;
    settings.anonymous = open_settings().anonymous;
    let mut world = World::new(settings, 3, false);
    let says = super::connect("c", false);
    let first = super::come(&mut world, 0, &says);
    world.turn_all();
    let [second, third] = [1, 2].map(|shard| world.accept_from(shard, ([127, 0, 0, 1], 4000).into(), 1));
    says_alone(&mut world, second, &says);
    world.turn_alone(0);
    world.turn_alone(0);
    assert!(world.socket(first).is_closed || !taken(&mut world, first).is_empty(), "the first must go");
    world.gone(first);
    world.turn_alone(0);
    says_alone(&mut world, third, &says);
    world.turn_all();
    world.turn_all();
    assert_eq!(taken(&mut world, third).get(..2), Some(&[0x20, 2][..]), "the third has come");
    assert!(!world.socket(third).is_closed, "and stays");
    world.bytes(third, &[0xc0, 0]);
    world.turn_all();
    assert_eq!(taken(&mut world, third), [0xd0, 0]);
    // 3.1.1 has no reason for it: the second is ended without CONNACK.
    assert!(taken(&mut world, second).is_empty());
    assert!(world.socket(second).is_finished, "the second does not stay");
}

/// A connection on shard 0 has the client, one on shard 1 waits for it.
fn waiting_world(has_journal: bool) -> (World, Place, Place) {
    let mut settings = settings();
    settings.asks_on_connect = false;
    settings.anonymous = open_settings().anonymous;
    settings.journal = has_journal.then(JournalSettings::default);
    let mut world = World::new(settings, 3, false);
    let says = super::connect("c", true);
    let first = super::come(&mut world, 0, &says);
    world.turn_all();
    assert_eq!(taken(&mut world, first).first(), Some(&0x20));
    let second = world.accept_from(1, ([127, 0, 0, 1], 4000).into(), 1);
    says_alone(&mut world, second, &says);
    assert!(taken(&mut world, second).is_empty() && world.node.lock().unwrap().is_awaited("c"));
    (world, first, second)
}

#[test]
fn nobody_waits_on_a_shard_that_gave_up() {
    let (world, _, _) = waiting_world(false);
    let mut node = world.node.lock().unwrap();
    node.abandon(1);
    node.sweep(world.now);
    assert!(!node.is_awaited("c"));
}

#[test]
fn who_waits_for_a_client_of_a_shard_that_gave_up_gets_it() {
    for has_journal in [false, true] {
        let (mut world, _, second) = waiting_world(has_journal);
        world.node.lock().unwrap().abandon(0);
        for _ in 0..20 {
            world.advance(500);
            world.turn(1);
        }
        assert_eq!(taken(&mut world, second).first(), Some(&0x20), "journal {has_journal}");
    }
}
