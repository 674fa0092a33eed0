//! A session that is resumed has what its client may have now: by its token, its listener and its quotas, not by those it had before.
use std::sync::Arc;

use super::end::{packet, subscribe, text};
use super::listeners;
use crate::world::{Place, World, open_settings};
use godwit_core::codes::Code;
use godwit_core::holder::{Holder, Revoked};
use godwit_core::report::{ConnectionId, Order, Report};
use godwit_core::rights::{Rights, Rule};
use godwit_core::settings::{JournalSettings, RuleSettings, Settings};

fn rule(pattern: &str, actions: &str, verdict: &str) -> RuleSettings {
    RuleSettings { pattern: pattern.into(), actions: actions.into(), verdict: verdict.into() }
}

pub(super) fn settings() -> Settings {
    let mut settings = Settings { listeners: listeners(), asks_on_connect: true, ..open_settings() };
    settings.listeners.push(godwit_core::settings::Listener { role: "publish".into(), ..listeners().remove(1) });
    settings.limits.idle_ms_max = 1 << 40;
    settings
}

/// A CONNECT of MQTT 5.0 with a token, whose session outlives it, and a will on `/will` if asked for.
pub(super) fn connect_with(name: &str, has_will: bool) -> Vec<u8> {
    let flags = if has_will { 0x84 } else { 0x80 };
    let will: Vec<u8> = if has_will { [&[0][..], &text("will"), &text("gone")].concat() } else { Vec::new() };
    let keep = [5, 0x11, 0, 0, 0xff, 0xff];
    packet(0x10, &[&text("MQTT"), &[5, flags, 0, 0][..], &keep, &text(name), &will, &text("token")].concat())
}

pub(super) fn question(world: &mut World) -> Option<ConnectionId> {
    std::mem::take(&mut world.reports).into_iter().find_map(|report| match report {
        Report::Authorize { connection, .. } => Some(connection),
        _ => None,
    })
}

fn grant(connection: ConnectionId, rules: &[RuleSettings]) -> Order {
    grant_to(connection, Holder::new("", "authorizer", "ann"), rules)
}

pub(super) fn grant_to(connection: ConnectionId, holder: Arc<Holder>, rules: &[RuleSettings]) -> Order {
    let rights = Arc::new(Rights::compile(rules).expect("rules"));
    Order::Grant { connection, holder, rights, expires_ms: None, token: Some("t".into()) }
}

/// Somebody comes who may do everything.
pub(super) fn come_as(world: &mut World, holder: Arc<Holder>, says: &[u8]) -> Place {
    let place = world.accept_from(0, ([127, 0, 0, 1], 4000).into(), 1);
    world.bytes(place, says);
    world.turn_all();
    let connection = question(world).expect("a question");
    world.order(0, grant_to(connection, holder, &all()));
    world.turn_all();
    place
}

/// Ann comes by a listener with rules.
pub(super) fn come(world: &mut World, listener: u8, says: &[u8], rules: &[RuleSettings]) -> Place {
    let place = world.accept_from(0, ([127, 0, 0, 1], 4000).into(), listener);
    world.bytes(place, says);
    world.turn_all();
    let connection = question(world).expect("a question");
    world.order(0, grant(connection, rules));
    world.turn_all();
    place
}

pub(super) fn taken(world: &mut World, place: Place) -> Vec<u8> {
    std::mem::take(&mut world.socket(place).taken)
}

pub(super) fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Publishes as somebody who may do everything.
pub(super) fn publish(world: &mut World, subject: &str, content: &str) {
    let place = world.connect(0);
    world.say(place, &format!(r#"{{"publish":"{subject}","content":"{content}"}}"#));
    world.turn_all();
}

const ALL: [&str; 2] = ["/**", "both"];

pub(super) fn all() -> Vec<RuleSettings> {
    vec![rule(ALL[0], ALL[1], "allow")]
}

/// Ann subscribes to `secret/#` and `only/#`, has one secret message in flight, and goes.
fn leave_a_session(world: &mut World, filters: &[(&str, u8)]) {
    let place = come(world, 1, &connect_with("c", false), &all());
    let properties = [&subscribe(filters)[..4], &[0], &subscribe(filters)[4..]].concat();
    world.bytes(place, &packet(0x82, &properties[2..]));
    world.turn_all();
    publish(world, "/secret/flying", "in flight");
    let bytes = taken(world, place);
    assert!(has(&bytes, "in flight"), "{bytes:x?}");
    world.gone(place);
    world.turn_all();
    publish(world, "/secret/queued", "queued");
    publish(world, "/only/later", "allowed");
}

const FILTERS: [(&str, u8); 2] = [("secret/#", 1), ("only/#", 1)];

#[test]
fn a_resumed_session_has_only_what_its_token_grants_now() {
    let mut world = World::new(settings(), 2, false);
    leave_a_session(&mut world, &FILTERS);
    let place = come(&mut world, 1, &connect_with("c", false), &[rule("/only/**", "both", "allow")]);
    publish(&mut world, "/secret/live", "live");
    publish(&mut world, "/only/new", "open");
    let bytes = taken(&mut world, place);
    assert_eq!(bytes[..4], [0x20, bytes[1], 1, 0], "the session is present");
    for (content, is_granted) in
        [("in flight", false), ("queued", false), ("live", false), ("allowed", true), ("open", true)]
    {
        assert_eq!(has(&bytes, content), is_granted, "{content}");
    }
    // A right that comes back does not bring the subscription back.
    world.gone(place);
    world.turn_all();
    let place = come(&mut world, 1, &connect_with("c", false), &all());
    publish(&mut world, "/secret/end", "too much");
    assert!(!has(&taken(&mut world, place), "too much"));
}

#[test]
fn a_withdrawn_message_keeps_its_identifier_and_takes_no_room() {
    let mut settings = settings();
    settings.limits.mqtt_inflight_max = 1;
    let mut world = World::new(settings, 1, false);
    leave_a_session(&mut world, &FILTERS);
    let place = come(&mut world, 1, &connect_with("c", false), &[rule("/only/**", "both", "allow")]);
    let bytes = taken(&mut world, place);
    let at = bytes.windows(10).position(|window| window == b"only/later").expect("the message that is granted");
    assert_eq!(bytes[at + 10..at + 12], [0, 2], "the withdrawn message still has identifier 1");
    world.bytes(place, &packet(0x40, &[0, 1]));
    world.turn_all();
    assert!(!world.socket(place).is_closed, "the client may settle what it was sent before");
}

#[test]
fn a_shared_subscription_and_another_listeners_role_are_judged_too() {
    for (listener, rules) in [(1, vec![rule("/only/**", "both", "allow")]), (2, all())] {
        let mut world = World::new(settings(), 1, false);
        leave_a_session(&mut world, &[("secret/#", 1), ("$share/g/secret/#", 0)]);
        let place = come(&mut world, listener, &connect_with("c", false), &rules);
        publish(&mut world, "/secret/live", "live");
        let bytes = taken(&mut world, place);
        assert!(!has(&bytes, "live") && !has(&bytes, "queued") && !has(&bytes, "in flight"), "{bytes:x?}");
    }
}

/// The client takes over from itself with fewer rights than before; another member of its group may have what it had in flight.
#[test]
fn what_a_takeover_may_not_have_any_more_goes_to_another_member() {
    let mut world = World::new(settings(), 1, false);
    let places = ["c", "other"].map(|name| {
        let place = come(&mut world, 1, &connect_with(name, false), &all());
        let filter = subscribe(&[("$share/g/secret/#", 1)]);
        world.bytes(place, &packet(0x82, &[&filter[2..4], &[0], &filter[4..]].concat()));
        world.turn_all();
        place
    });
    for content in ["first", "second"] {
        publish(&mut world, "/secret/job", content);
    }
    assert!(has(&taken(&mut world, places[0]), "first") && has(&taken(&mut world, places[1]), "second"));
    let place = come(&mut world, 1, &connect_with("c", false), &[rule("/only/**", "both", "allow")]);
    world.turn_all();
    assert!(!has(&taken(&mut world, place), "first"));
    assert!(has(&taken(&mut world, places[1]), "first"));
    world.bytes(place, &packet(0x40, &[0, 1]));
    world.turn_all();
    assert!(!world.socket(place).is_closed, "the client may settle what it was sent before");
}

#[test]
fn a_restored_subscription_is_asked_about_and_a_silent_authorizer_keeps_the_session() {
    let mut world = World::new(settings(), 1, false);
    leave_a_session(&mut world, &FILTERS);
    let asks = [rule("/**", "both", "ask")];
    let mut answers = vec![("/secret/**", "ask"), ("/secret/**", "deny"), ("/only/**", "allow")].into_iter();
    for is_silent in [true, false] {
        let place = come(&mut world, 1, &connect_with("c", false), &asks);
        while let Some((connection, selector)) =
            std::mem::take(&mut world.reports).into_iter().find_map(|report| match report {
                Report::Ask { connection, selector, .. } => Some((connection, selector)),
                _ => None,
            })
        {
            let (expected, verdict) = answers.next().expect("no more questions than subscriptions");
            assert_eq!(selector, expected);
            let answer = Rule::compile(&rule(&selector, "subscribe", verdict)).expect("a rule");
            world.order(0, Order::Answer { connection, rule: answer, is_background: false });
            world.turn_all();
        }
        let bytes = taken(&mut world, place);
        if is_silent {
            assert_eq!(bytes[2..4], [0, 0x88], "the authorizer was silent: {bytes:x?}");
        } else {
            assert_eq!(bytes[2..4], [1, 0], "the session was kept: {bytes:x?}");
            assert!(has(&bytes, "allowed") && !has(&bytes, "queued") && !has(&bytes, "in flight"));
        }
    }
    assert_eq!(answers.next(), None);
}

#[test]
fn a_quota_refuses_the_connect_and_keeps_the_session_whole() {
    let mut world = World::new(settings(), 1, false);
    leave_a_session(&mut world, &FILTERS);
    let mut less = settings();
    less.limits.subscriptions_per_identity_max = 1;
    world.order(0, Order::Configure(Arc::new(less)));
    let place = come(&mut world, 1, &connect_with("c", false), &all());
    assert_eq!(taken(&mut world, place)[2..4], [0, 0x97]);
    world.bytes(place, &[]);
    world.turn_all();
    world.order(0, Order::Configure(Arc::new(settings())));
    let place = come(&mut world, 1, &connect_with("c", false), &all());
    let bytes = taken(&mut world, place);
    assert_eq!(bytes[2..4], [1, 0]);
    assert!(has(&bytes, "in flight") && has(&bytes, "queued") && has(&bytes, "allowed"), "{bytes:x?}");
}

#[test]
fn a_subscription_that_is_too_deep_by_now_ends_alone() {
    for filter in ["secret/1/2/3/#", "$share/g/secret/1/2/3/#"] {
        let mut world = World::new(settings(), 1, false);
        leave_a_session(&mut world, &[FILTERS[0], (filter, 1), FILTERS[1]]);
        let mut less = settings();
        less.limits.pattern_segments_max = 3;
        world.node.lock().unwrap().configure(&less);
        let place = come(&mut world, 1, &connect_with("c", false), &all());
        let bytes = taken(&mut world, place);
        assert_eq!(bytes[2..4], [1, 0], "{filter}: {bytes:x?}");
        assert!(has(&bytes, "queued") && has(&bytes, "allowed"), "{filter}: {bytes:x?}");
        let reports = std::mem::take(&mut world.reports);
        let is_reported = |report: &Report| format!("{report:?}").contains("pattern_segments_max");
        assert!(reports.iter().any(is_reported), "{filter}: {reports:?}");
    }
}

#[test]
fn the_will_of_whoever_is_revoked_or_may_publish_no_more_is_withheld() {
    for case in 0..4 {
        let mut world = World::new(settings(), 1, false);
        let listener = world.connect(0);
        assert_eq!(world.ask(listener, r#"{"id":1,"subscribe":"/will"}"#)[0]["ok"], "subscribed");
        let place = come(&mut world, 1, &connect_with("c", true), &all());
        let code = Code::TokenRevoked;
        match case {
            0 => {}
            1 => world.order(
                0,
                Order::Revoke { revoked: Revoked { identity: Some("ann".into()), ..Revoked::default() }, code },
            ),
            2 => world
                .order(0, Order::Revoke { revoked: Revoked { token: Some("t".into()), ..Revoked::default() }, code }),
            _ => {
                let mut less = settings();
                less.listeners[1].role = "subscribe".into();
                world.order(0, Order::Configure(Arc::new(less)));
            }
        }
        world.gone(place);
        world.turn_all();
        let heard = world.heard(listener);
        assert_eq!(heard.iter().any(|line| line["text"] == "gone"), case == 0, "case {case}: {heard:?}");
    }
}

#[test]
fn a_takeover_needs_no_second_place() {
    let mut settings = settings();
    settings.limits.connections_per_identity_max = 1;
    let mut world = World::new(settings, 2, false);
    let old = come(&mut world, 1, &connect_with("c", false), &all());
    assert_eq!(taken(&mut world, old)[2..4], [0, 0]);
    let other = come(&mut world, 1, &connect_with("d", false), &all());
    assert_eq!(taken(&mut world, other)[2..4], [0, 0x97], "another client needs a place of its own");
    let new = come(&mut world, 1, &connect_with("c", false), &all());
    world.turn_all();
    assert_eq!(taken(&mut world, new)[2..4], [1, 0], "it has the session of the connection that it ended");
}

#[test]
fn a_shard_that_gave_up_gives_back_the_places_of_its_sessions() {
    let mut settings = settings();
    settings.limits.mqtt_sessions_max = 1;
    let mut world = World::new(settings, 1, false);
    let place = come(&mut world, 1, &connect_with("c", false), &all());
    assert_eq!(taken(&mut world, place)[2..4], [0, 0]);
    let mut node = world.node.lock().unwrap();
    assert_eq!(node.totals().mqtt_sessions, 1);
    node.abandon(0);
    node.sweep(world.now);
    assert_eq!(node.totals().mqtt_sessions, 0);
}

#[test]
fn the_wills_of_a_shard_that_gave_up_are_published_with_a_journal_and_without() {
    for has_journal in [false, true] {
        let mut settings = settings();
        settings.journal = has_journal.then(JournalSettings::default);
        let mut world = World::new(settings, 2, false);
        come(&mut world, 1, &connect_with("c", true), &all());
        world.node.lock().unwrap().abandon(0);
        for _ in 0..20 {
            world.advance(500);
            world.turn(1);
        }
        let node = world.node.lock().unwrap();
        let snapshot = node.snapshot(node.find("/will").expect("is published"), world.now);
        assert_eq!(snapshot.as_ref().map(|snapshot| snapshot.content()), None, "it was not retained");
        assert_eq!(node.totals().accepted, 1, "once");
    }
}

#[test]
fn who_comes_before_the_sweep_leaves_no_will_of_a_shard_that_gave_up_behind() {
    let mut world = World::new(settings(), 2, false);
    let listener = world.connect(1);
    assert_eq!(world.ask(listener, r#"{"id":1,"subscribe":"/will"}"#)[0]["ok"], "subscribed");
    come(&mut world, 1, &connect_with("c", true), &all());
    world.node.lock().unwrap().abandon(0);
    let place = world.accept_from(1, ([127, 0, 0, 1], 4000).into(), 1);
    world.bytes(place, &connect_with("c", false));
    world.turn(1);
    let connection = question(&mut world).expect("a question");
    world.order(1, grant(connection, &all()));
    world.turn(1);
    let heard = world.heard(listener);
    assert_eq!(heard.iter().filter(|line| line["text"] == "gone").count(), 1, "{heard:?}");
    world.gone(place);
    for _ in 0..20 {
        world.advance(500);
        world.turn(1);
    }
    let heard = world.heard(listener);
    assert!(!heard.iter().any(|line| line["text"] == "gone"), "the second connection had no will: {heard:?}");
}
