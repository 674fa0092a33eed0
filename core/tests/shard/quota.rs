//! What one address, identity and tenant may use, on every wire: who has more is told so in the words of its wire, and when to come
//! again; who has not is not touched.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::world::{Place, World, open_settings};
use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::limits::Limits;
use godwit_core::report::{Order, Report};
use godwit_core::rights::Rights;
use godwit_core::settings::{Listener, PatternSettings, RuleSettings, Settings};
use serde_json::Value;

const CONNECT_V3: &[u8] = &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 0, 0, 1, b'd'];
const CONNECT_V5: &[u8] = &[0x10, 14, 0, 4, b'M', b'Q', b'T', b'T', 5, 2, 0, 0, 0, 0, 1, b'd'];

fn world(change: impl FnOnce(&mut Limits)) -> World {
    let mut settings = open_settings();
    change(&mut settings.limits);
    settings.listeners = ["client", "mqtt"].map(|name| Listener { name: name.into(), ..Listener::default() }).into();
    World::new(settings, 1, false)
}

fn from(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 4000))
}

/// What a socket was sent, as text; empty for one that was closed without a word.
fn said(world: &mut World, place: Place) -> String {
    String::from_utf8_lossy(&std::mem::take(&mut world.socket(place).taken)).into_owned()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes()
}

fn post(world: &mut World, place: Place, bytes: usize) -> String {
    let body = "x".repeat(bytes);
    let head = "POST /v1/messages?subject=/a HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length:";
    world.bytes(place, format!("{head} {bytes}\r\n\r\n{body}").as_bytes());
    world.turn(0);
    said(world, place)
}

/// The codes that a client's publishes are answered with, 0 for success, lowest first: a refusal does not wait for the turn's end.
fn publish(world: &mut World, place: Place, count: usize) -> Vec<u64> {
    let text = (1..=count).map(|n| format!(r#"{{"id":{n},"publish":"/a","content":1}}"#)).collect::<Vec<_>>().join(",");
    let mut found = codes(&world.ask(place, &format!("[{text}]")));
    found.sort_unstable();
    found
}

fn codes(heard: &[Value]) -> Vec<u64> {
    heard
        .iter()
        .filter(|line| line["id"].as_u64().is_some_and(|id| id > 0))
        .map(|line| line["error"].as_u64().unwrap_or(0))
        .collect()
}

fn hits(world: &World, limit: &str) -> u64 {
    world.shard(0).counters().codes.limits.each().find(|(name, _)| *name == limit).map_or(0, |(_, count)| count)
}

#[test]
fn an_address_that_connects_too_often_is_told_when_to_come_again_and_others_are_let_in() {
    let mut world = world(|limits| limits.connects_per_second_per_address_max = 5);
    let come = |world: &mut World, last: u8| {
        let place = world.accept_from(0, from(last), 0);
        if !world.socket(place).is_closed {
            world.bytes(place, &get("/"));
            world.turn(0);
        }
        said(world, place)
    };
    for _ in 0..5 {
        assert!(come(&mut world, 1).starts_with("HTTP/1.1 200"));
    }
    for _ in 0..10 {
        let answer = come(&mut world, 1);
        assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("\r\nRetry-After: 1\r\n"), "{answer}");
        assert!(answer.contains("\"code\":4208"), "{answer}");
    }
    assert_eq!(come(&mut world, 1), "", "who has been told ten times in a second is not told again");
    assert!(come(&mut world, 2).starts_with("HTTP/1.1 200"));
    assert_eq!(hits(&world, "connects_per_second_per_address_max"), 11);
    world.advance(1_000);
    assert!(come(&mut world, 1).starts_with("HTTP/1.1 200"));
    let refused = world.reports().iter().filter(|report| matches!(report, Report::Refused { .. })).count();
    assert_eq!(refused, 11, "operators see each");
}

#[test]
fn a_quota_of_connections_is_given_back_by_who_leaves_and_each_wire_says_it_in_its_words() {
    let mut world = world(|limits| limits.connections_per_address_max = 2);
    let here = [world.accept_from(0, from(1), 0), world.accept_from(0, from(1), 0)];
    world.upgrade(here[0], "json");
    world.upgrade(here[1], "binary");
    let upgrade = "GET /v1/live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    for (listener, first, expected) in [
        (0, upgrade.as_bytes(), &b"HTTP/1.1 429 "[..]),
        (0, &get("/v1/stream?subject=/a"), b"HTTP/1.1 429 "),
        (1, CONNECT_V3, &[0x20, 2, 0, 3]),
        (1, CONNECT_V5, &[0x20]),
    ] {
        let place = world.accept_from(0, from(1), listener);
        world.bytes(place, first);
        world.turn(0);
        let taken = std::mem::take(&mut world.socket(place).taken);
        assert!(taken.starts_with(expected), "{taken:?}");
        assert!(first != CONNECT_V5 || taken[3] == 0x97, "quota exceeded: {taken:?}");
        world.gone(place);
    }
    world.gone(here[0]);
    let again = world.accept_from(0, from(1), 0);
    world.upgrade(again, "json");
}

/// A client with a token, and what the server answers.
fn come_as(world: &mut World, identity: &str, tenant: &str) -> Place {
    let place = world.accept_from(0, from(1), 0);
    world.upgrade(place, "json");
    show_token(world, place, identity, tenant);
    place
}

fn show_token(world: &mut World, place: Place, identity: &str, tenant: &str) {
    world.say(place, r#"{"id":0,"connect":{"token":"t"}}"#);
    world.turn(0);
    let asked = world.reports().into_iter().find_map(|report| match report {
        Report::Authorize { connection, .. } => Some(connection),
        _ => None,
    });
    let connection = asked.expect("a question");
    let rules = [RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: "allow".into() }];
    let rights = Arc::new(Rights::compile(&rules).unwrap());
    let holder = Holder::new(tenant, "authorizer", identity);
    world.order(0, Order::Grant { connection, holder, rights, expires_ms: None, token: None });
    world.turn(0);
}

fn asking_world(change: impl FnOnce(&mut Limits)) -> World {
    let mut settings = Settings { asks_on_connect: true, ..open_settings() };
    change(&mut settings.limits);
    World::new(settings, 1, false)
}

#[test]
fn identities_and_tenants_have_their_own_quotas_and_a_renewal_is_no_new_connection() {
    let mut world = asking_world(|limits| {
        limits.connections_per_identity_max = 1;
        limits.connections_per_tenant_max = 2;
        limits.subscriptions_per_identity_max = 3;
    });
    let ann = come_as(&mut world, "ann", "acme");
    let ended = |world: &mut World, place| world.heard(place).iter().find_map(|line| line["close"].as_u64());
    show_token(&mut world, ann, "ann", "acme");
    assert_eq!(ended(&mut world, ann), None, "the same identity again");
    let twin = come_as(&mut world, "ann", "acme");
    assert_eq!(ended(&mut world, twin), Some(4208));
    let bob = come_as(&mut world, "bob", "acme");
    assert_eq!(ended(&mut world, bob), None);
    let eve = come_as(&mut world, "eve", "acme");
    assert_eq!(ended(&mut world, eve), Some(4208), "the tenant has two");
    let other = come_as(&mut world, "eve", "elsewhere");
    assert_eq!(ended(&mut world, other), None);
    let ask =
        r#"[{"id":1,"subscribe":"/a"},{"id":2,"subscribe":"/b"},{"id":3,"subscribe":"/c"},{"id":4,"subscribe":"/d"}]"#;
    assert_eq!(codes(&world.ask(bob, ask)), [0, 0, 0, 4112]);
    assert_eq!(codes(&world.ask(bob, r#"[{"unsubscribe":"/a"},{"id":5,"subscribe":"/d"}]"#)), [0]);
    for limit in ["connections_per_identity_max", "connections_per_tenant_max", "subscriptions_per_identity_max"] {
        assert_eq!(hits(&world, limit), 1, "{limit}");
    }
    world.gone(ann);
    let back = come_as(&mut world, "ann", "acme");
    assert_eq!(ended(&mut world, back), None);
}

#[test]
fn an_identitys_rate_is_of_all_its_connections_and_nobody_elses() {
    let mut world = asking_world(|limits| limits.publishes_per_second_per_identity_max = 10);
    let (first, second) = (come_as(&mut world, "ann", ""), come_as(&mut world, "ann", ""));
    let other = come_as(&mut world, "bob", "");
    assert_eq!(publish(&mut world, first, 7), [0; 7]);
    assert_eq!(publish(&mut world, second, 7), [0, 0, 0, 4122, 4122, 4122, 4122]);
    assert_eq!(publish(&mut world, other, 7), [0; 7]);
    world.advance(500);
    assert_eq!(publish(&mut world, first, 7), [0, 0, 0, 0, 0, 4122, 4122]);
    assert_eq!(hits(&world, "publishes_per_second_per_identity_max"), 6);
}

#[test]
fn bytes_and_subscribes_have_rates_and_http_is_told_how_long_to_wait() {
    let mut world = world(|limits| {
        limits.publish_bytes_per_second_per_address_max = 1_000;
        limits.subscribes_per_second_max = 2;
        limits.burst_ms_max = 1_000;
    });
    let place = world.accept_from(0, from(1), 0);
    assert!(post(&mut world, place, 1_000).starts_with("HTTP/1.1 201"));
    let answer = post(&mut world, place, 900);
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("\r\nRetry-After: 1\r\n"), "{answer}");
    world.advance(900);
    assert!(post(&mut world, place, 900).starts_with("HTTP/1.1 201"));
    assert!(post(&mut world, place, 5_000).contains("try again in 1000 ms"));
    let live = world.accept_from(0, from(2), 0);
    world.upgrade(live, "json");
    let ask = r#"[{"id":1,"subscribe":"/a"},{"id":2,"subscribe":"/b"},{"id":3,"subscribe":"/c"}]"#;
    assert_eq!(codes(&world.ask(live, ask)), [0, 0, 4122]);
}

#[test]
fn a_pattern_sets_the_rate_of_each_of_its_subjects_whoever_publishes() {
    let mut settings = open_settings();
    let rate = |pattern: &str, count| PatternSettings {
        pattern: pattern.into(),
        publishes_per_second_max: Some(count),
        ..PatternSettings::default()
    };
    settings.patterns = vec![rate("/slow/**", 2), rate("/slow/quick", 1_000)];
    let mut world = World::new(settings, 1, false);
    let (ann, bob) = (world.connect(0), world.connect(0));
    let mut go = |place, subject: &str, more: &str| {
        let text = format!(r#"{{"id":1,"publish":"{subject}","content":1{more}}}"#);
        codes(&world.ask(place, &text))
    };
    let mut tried = |subject: &str, more: &str| [ann, bob, ann, bob].map(|place| go(place, subject, more)[0]);
    assert_eq!(tried("/slow/a", ""), [0, 0, 4122, 4122]);
    assert_eq!(tried("/slow/b", ""), [0, 0, 4122, 4122], "each subject has its own");
    assert_eq!(tried("/slow/quick", ""), [0; 4]);
    assert_eq!(tried("/other", ""), [0; 4]);
    assert_eq!(tried("/slow/passing", r#","guaranteed":false"#), [0, 0, 4122, 4122], "and one that is not kept too");
}

#[test]
fn mqtt_says_no_where_it_can_and_ends_the_connection_where_it_cannot() {
    let qos = |level: u8, id: u8| match level {
        0 => vec![0x30, 4, 0, 1, b'a', b'1'],
        _ => vec![0x30 | level << 1, 7, 0, 1, b'a', 0, id, 0, b'1'],
    };
    let mut world = world(|limits| limits.publishes_per_second_max = 1);
    let mut come = |connect: &[u8], packets: &[Vec<u8>]| {
        let place = world.accept_from(0, from(1), 1);
        world.bytes(place, connect);
        world.turn_all();
        world.socket(place).taken.clear();
        packets.iter().for_each(|packet| world.bytes(place, packet));
        world.turn_all();
        let (taken, is_finished) = (world.socket(place).taken.clone(), world.socket(place).is_finished);
        world.gone(place);
        world.advance(10_000);
        (taken, is_finished)
    };
    let (taken, _) = come(CONNECT_V5, &[qos(1, 1), qos(1, 2)]);
    assert_eq!((taken[4], &taken[6..9]), (0x40, &[0, 2, 0x97][..]), "PUBACK, quota exceeded: {taken:?}");
    let (taken, is_finished) =
        come(CONNECT_V5, &[vec![0x30, 5, 0, 1, b'a', 0, b'1'], vec![0x30, 5, 0, 1, b'a', 0, b'1']]);
    assert_eq!((taken[0], taken[2], is_finished), (0xe0, 0x96, true), "DISCONNECT, message rate too high");
    let (taken, is_finished) = come(CONNECT_V3, &[qos(0, 0), qos(0, 0)]);
    assert_eq!((taken, is_finished), (vec![], true), "3.1.1 has no word for it");
}

#[test]
fn who_guesses_tokens_waits_and_who_shows_none_does_not() {
    let mut world = asking_world(|limits| limits.token_failures_per_minute_per_address_max = 3);
    let mut tries = 0..;
    let mut guess = |world: &mut World| {
        let place = world.accept_from(0, from(1), 0);
        world.upgrade(place, "json");
        world.say(place, &format!(r#"{{"id":0,"connect":{{"token":"guess-{}"}}}}"#, tries.next().unwrap_or(0)));
        world.turn(0);
        for report in world.reports() {
            if let Report::Authorize { connection, .. } = report {
                let (code, reason) = (Code::TokenInvalid, String::new());
                world.order(0, Order::Refuse { connection, code, reason });
            }
        }
        world.turn(0);
        world.heard(place).iter().find_map(|line| line["close"].as_u64())
    };
    assert_eq!([(); 5].map(|()| guess(&mut world)), [Some(4002), Some(4002), Some(4002), Some(4208), Some(4208)]);
    assert_eq!(hits(&world, "token_failures_per_minute_per_address_max"), 2);
    let anonymous = world.accept_from(0, from(1), 0);
    world.upgrade(anonymous, "json");
    assert_eq!(publish(&mut world, anonymous, 1), [0]);
    let elsewhere = world.accept_from(0, from(2), 0);
    let request = "GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\n\r\n";
    world.bytes(elsewhere, request.as_bytes());
    world.turn(0);
    assert!(world.reports().iter().any(|report| matches!(report, Report::Authorize { .. })), "others are asked about");
    let here = world.accept_from(0, from(1), 0);
    world.bytes(here, request.as_bytes());
    world.turn(0);
    let answer = said(&mut world, here);
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("Retry-After: 20\r\n"), "{answer}");
    world.advance(20_000);
    assert_eq!(guess(&mut world), Some(4002));
}

#[test]
fn limits_that_are_turned_on_count_who_is_there_and_send_nobody_away() {
    let mut settings = Settings { asks_on_connect: true, ..open_settings() };
    let mut world = World::new(settings.clone(), 1, false);
    let places = [come_as(&mut world, "ann", ""), come_as(&mut world, "ann", "")];
    world.ask(places[0], r#"{"id":1,"subscribe":"/a"}"#);
    settings.shards = 1;
    settings.limits.connections_per_identity_max = 2;
    settings.limits.subscriptions_per_address_max = 1;
    world.order(0, Order::Configure(Arc::new(settings)));
    world.turn_all();
    assert_eq!(codes(&world.ask(places[1], r#"{"id":1,"subscribe":"/b"}"#)), [4112]);
    let third = come_as(&mut world, "ann", "");
    assert_eq!(world.heard(third).iter().find_map(|line| line["close"].as_u64()), Some(4208));
    assert_eq!(publish(&mut world, places[0], 1), [0]);
}

#[test]
fn what_a_trusted_proxy_says_is_who_is_counted_and_the_proxy_itself_is_not() {
    let mut settings = open_settings();
    settings.trusted_proxies = vec!["127.0.0.1".into()];
    settings.limits.connects_per_second_per_address_max = 1;
    let mut world = World::new(settings, 1, false);
    let proxy = SocketAddr::from(([127, 0, 0, 1], 1));
    let ask = |world: &mut World, client: &str| {
        let place = world.accept_from(0, proxy, 0);
        let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {client}\r\n\r\n");
        world.bytes(place, head.as_bytes());
        world.turn(0);
        said(world, place)[9..12].to_owned()
    };
    assert_eq!(["192.0.2.1", "192.0.2.2", "192.0.2.1"].map(|client| ask(&mut world, client)), ["200", "200", "429"]);
    let proxied = world.accept_from(0, proxy, 0);
    world.set_peer(proxied, from(2));
    world.bytes(proxied, &get("/"));
    world.turn(0);
    assert!(said(&mut world, proxied).starts_with("HTTP/1.1 429"));
}
