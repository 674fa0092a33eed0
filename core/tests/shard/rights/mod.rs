//! What the rules leave to the server: paid before it is asked, asked again when the answer is old, and where replies may be awaited.
mod failures;
mod notice;
mod resubscribe;
mod shares;

use std::sync::Arc;

use crate::world::{Place, World, open_settings};
use godwit_core::codes::Code;
use godwit_core::holder::Holder;
use godwit_core::limits::Limits;
use godwit_core::report::{ConnectionId, Order, Report};
use godwit_core::rights::{Rights, Rule};
use godwit_core::settings::{RuleSettings, Settings};
use serde_json::json;

fn rule(pattern: &str, actions: &str, verdict: &str) -> RuleSettings {
    RuleSettings { pattern: pattern.into(), actions: actions.into(), verdict: verdict.into() }
}

fn world(change: impl FnOnce(&mut Limits)) -> World {
    let mut settings = Settings { asks_on_connect: true, ..open_settings() };
    settings.limits.idle_ms_max = 1 << 40;
    change(&mut settings.limits);
    World::new(settings, 1, false)
}

/// Connections whose tokens are to be judged.
fn shown(world: &mut World) -> Vec<ConnectionId> {
    let reports = std::mem::take(&mut world.reports);
    let judged = reports.into_iter().filter_map(|report| match report {
        Report::Authorize { connection, .. } => Some(connection),
        _ => None,
    });
    judged.collect()
}

fn asked(world: &mut World) -> Vec<(ConnectionId, String, bool)> {
    let reports = std::mem::take(&mut world.reports);
    let asked = reports.into_iter().filter_map(|report| match report {
        Report::Ask { connection, selector, is_background, .. } => Some((connection, selector, is_background)),
        _ => None,
    });
    asked.collect()
}

fn grant(world: &mut World, connection: ConnectionId, rules: &[RuleSettings]) {
    let rights = Arc::new(Rights::compile(rules).expect("rules"));
    let holder = Holder::new("", "authorizer", "ann");
    world.order(0, Order::Grant { connection, holder, rights, expires_ms: None, token: None });
    world.turn_all();
}

fn come(world: &mut World, rules: &[RuleSettings]) -> (Place, ConnectionId) {
    let place = world.accept_from(0, ([192, 0, 2, 1], 4000).into(), 0);
    world.upgrade(place, "json");
    world.say(place, r#"{"id":0,"connect":{"token":"t"}}"#);
    world.turn_all();
    let connection = shown(world)[0];
    grant(world, connection, rules);
    world.heard(place);
    (place, connection)
}

fn answer(world: &mut World, (connection, selector, is_background): &(ConnectionId, String, bool), verdict: &str) {
    let rule = Rule::compile(&rule(selector, "both", verdict)).expect("a rule");
    world.order(0, Order::Answer { connection: *connection, rule, is_background: *is_background });
    world.turn_all();
}

#[test]
fn rates_bound_what_reaches_the_server_and_a_command_pays_once() {
    for (verdict, sites) in [("deny", ["subscribe", "publish"]), ("allow", ["subscribe", "publish"])] {
        for verb in sites {
            let mut world = world(|limits| {
                (limits.subscribes_per_second_max, limits.publishes_per_second_max) = (5, 5);
            });
            let (place, _) = come(&mut world, &[rule("/**", "both", "ask")]);
            let (mut questions, mut granted, mut limited) = (0, 0, 0);
            for number in 0..40 {
                let more = if verb == "publish" { r#","content":1"# } else { "" };
                world.say(place, &format!(r#"{{"id":{number},"{verb}":"/a/{number}"{more}}}"#));
                world.turn_all();
                for question in asked(&mut world) {
                    questions += 1;
                    answer(&mut world, &question, verdict);
                }
                for line in world.heard(place) {
                    granted += u32::from(line["ok"] == "subscribed" || line["ok"] == "published");
                    limited += u32::from(line["error"] == 4122);
                }
            }
            assert_eq!(questions, 5, "{verb} {verdict}");
            assert_eq!((granted, limited), (if verdict == "allow" { 5 } else { 0 }, 35), "{verb} {verdict}");
        }
    }
}

#[test]
fn each_question_of_one_frame_takes_from_the_rate() {
    let mut world = world(|limits| limits.subscribes_per_second_max = 5);
    let (place, _) = come(&mut world, &[rule("/**", "both", "ask")]);
    let commands: Vec<String> =
        (0..40).map(|number| format!(r#"{{"id":{number},"subscribe":"/a/{number}"}}"#)).collect();
    world.say(place, &format!("[{}]", commands.join(",")));
    world.turn_all();
    let mut questions = 0;
    loop {
        let new = asked(&mut world);
        if new.is_empty() {
            break;
        }
        for question in new {
            questions += 1;
            answer(&mut world, &question, "deny");
        }
    }
    assert_eq!(questions, 5);
}

#[test]
fn renewals_have_the_rate_of_connects_and_are_refused_without_an_end() {
    let mut world = world(|limits| limits.connects_per_second_per_identity_max = 5);
    let (place, connection) = come(&mut world, &[rule("/**", "both", "allow")]);
    let (mut judged, mut limited) = (0, 0);
    for number in 0..40 {
        world.say(place, &format!(r#"{{"id":{number},"connect":{{"token":"t{number}"}}}}"#));
        world.turn_all();
        for one in shown(&mut world) {
            assert_eq!(one, connection);
            judged += 1;
            grant(&mut world, one, &[rule("/**", "both", "allow")]);
        }
        limited += world.heard(place).iter().filter(|line| line["error"] == 4122).count();
    }
    assert_eq!((judged, limited), (4, 36), "the first was the connect itself");
    assert!(!world.socket(place).is_closed);
}

#[test]
fn logins_over_one_http_connection_have_the_rate_of_connects() {
    let mut world = world(|limits| limits.connects_per_second_per_address_max = 5);
    let place = world.accept_from(0, ([192, 0, 2, 1], 4000).into(), 0);
    let (mut judged, mut limited) = (0, 0);
    for number in 0..40 {
        let request =
            format!("GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t{number}\r\n\r\n");
        world.bytes(place, request.as_bytes());
        world.turn_all();
        for one in shown(&mut world) {
            judged += 1;
            grant(&mut world, one, &[rule("/**", "both", "allow")]);
        }
        let taken = std::mem::take(&mut world.socket(place).taken);
        limited += usize::from(taken.starts_with(b"HTTP/1.1 429"));
    }
    assert_eq!((judged, limited), (5, 35));
}

#[test]
fn wrong_tokens_of_a_neighbour_never_hinder_a_renewal() {
    let mut world = world(|limits| limits.token_failures_per_minute_per_address_max = 2);
    let (place, _) = come(&mut world, &[rule("/**", "both", "allow")]);
    for _ in 0..5 {
        let guest = world.accept_from(0, ([192, 0, 2, 1], 4001).into(), 0);
        world.upgrade(guest, "json");
        world.say(guest, r#"{"connect":{"token":"guess"}}"#);
        world.turn_all();
        for connection in shown(&mut world) {
            world.order(0, Order::Refuse { connection, code: Code::TokenInvalid, reason: String::new() });
            world.turn_all();
        }
    }
    world.say(place, r#"{"id":9,"connect":{"token":"new"}}"#);
    world.turn_all();
    let judged = shown(&mut world);
    assert_eq!(judged.len(), 1);
    grant(&mut world, judged[0], &[rule("/**", "both", "allow")]);
    assert_eq!(world.heard(place)[0]["ok"], "connected");
}

#[test]
fn an_answer_that_a_subscription_stands_on_is_asked_for_again() {
    for (second, ends) in [("allow", false), ("deny", true), ("silence", true)] {
        let mut world = world(|limits| limits.answers_age_ms = 60_000);
        let (place, _) = come(&mut world, &[rule("/**", "both", "ask")]);
        world.say(place, r#"{"id":1,"subscribe":"/a/*"}"#);
        world.turn_all();
        let first = asked(&mut world);
        answer(&mut world, &first[0], "allow");
        assert_eq!(world.heard(place)[0]["ok"], "subscribed");
        let pass = |world: &mut World, ms: u64| {
            for _ in 0..ms / 500 {
                world.advance(500);
                world.turn_all();
            }
        };
        pass(&mut world, 58_000);
        assert!(asked(&mut world).is_empty(), "the answer holds");
        pass(&mut world, 4_000);
        let again = asked(&mut world);
        assert_eq!(again.iter().map(|one| (&*one.1, one.2)).collect::<Vec<_>>(), [("/a/*", true)]);
        assert!(world.heard(place).iter().all(|line| line.get("ended").is_none()), "and goes on meanwhile");
        if second != "silence" {
            answer(&mut world, &again[0], second);
        }
        let ended =
            |world: &mut World| world.heard(place).iter().any(|line| line["ended"] == "/a/*" && line["error"] == 4113);
        assert_eq!(ended(&mut world), second == "deny");
        pass(&mut world, 50_000);
        assert!(!ended(&mut world), "silence is borne for one more age");
        pass(&mut world, 14_000);
        assert_eq!(ended(&mut world), second == "silence");
        assert_eq!(world.shard(0).counters().subscriptions == 0, ends, "{second}");
    }
}

#[test]
fn a_renewed_token_has_every_granted_subscription_asked_about() {
    let mut world = world(|_| {});
    let (place, connection) = come(&mut world, &[rule("/**", "both", "ask")]);
    world.say(place, r#"{"id":1,"subscribe":"/a/*"}"#);
    world.turn_all();
    let first = asked(&mut world);
    answer(&mut world, &first[0], "allow");
    grant(&mut world, connection, &[rule("/**", "both", "ask")]);
    let again = asked(&mut world);
    assert_eq!((again.len(), again[0].2), (1, true));
    answer(&mut world, &again[0], "deny");
    assert!(world.heard(place).iter().any(|line| line["ended"] == "/a/*"));
}

#[test]
fn replies_are_awaited_where_the_requester_has_a_right_of_its_own() {
    let rules = [
        rule("/rpc", "publish", "allow"),
        rule("/inbox/**", "subscribe", "allow"),
        rule("/out/**", "publish", "allow"),
    ];
    for is_strict in [false, true] {
        let mut settings = Settings { asks_on_connect: true, reply_to_needs_publish: is_strict, ..open_settings() };
        settings.limits.idle_ms_max = 1 << 40;
        let mut world = World::new(settings, 1, false);
        let (place, _) = come(&mut world, &rules);
        for (reply_to, is_granted) in [("/inbox/1", !is_strict), ("/out/1", true), ("/victim", false)] {
            let heard =
                world.ask(place, &json!({"id": 1, "publish": "/rpc", "content": 1, "reply_to": reply_to}).to_string());
            let refused = heard[0]["error"] == 4114;
            assert_eq!(!refused, is_granted, "{reply_to}, strict {is_strict}: {heard:?}");
        }
    }
}

#[test]
fn who_may_only_listen_changes_nothing_for_those_who_publish_already() {
    let mut world = world(|_| {});
    let all = [rule("/**", "both", "allow")];
    let (owner, _) = come(&mut world, &all);
    world.ask(owner, r#"{"id":1,"publish":"/prices","content":1}"#);
    let (place, _) = come(&mut world, &[rule("/rpc", "publish", "allow"), rule("/prices", "subscribe", "allow")]);
    world.ask(place, r#"{"id":1,"publish":"/rpc","content":1,"reply_to":"/prices"}"#);
    world.ask(owner, r#"{"id":2,"publish":"/prices","content":2}"#);
    let heard = world.ask(owner, r#"{"id":3,"subscribe":"/prices"}"#);
    assert!(heard.iter().any(|line| line["content"] == 2), "its last message is its snapshot: {heard:?}");
}

#[test]
fn what_was_first_named_for_replies_does_not_stay() {
    let mut world = world(|limits| limits.reply_age_ms_max = 10_000);
    let (place, _) = come(&mut world, &[rule("/**", "both", "allow")]);
    world.ask(place, r#"{"id":1,"publish":"/rpc","content":1,"reply_to":"/inbox/1"}"#);
    world.ask(place, r#"{"id":2,"publish":"/inbox/1","content":"reply"}"#);
    let kept = |world: &mut World, subject: &str| {
        let node = world.node.lock().expect("nobody panicked");
        node.subjects("", 100, None).0.iter().any(|row| &*row.subject == subject && row.messages > 0)
    };
    assert!(kept(&mut world, "/inbox/1") && kept(&mut world, "/rpc"));
    for _ in 0..60 {
        world.advance(500);
        world.ask(place, r#"{"id":3,"publish":"/other","content":1}"#);
    }
    assert!(!kept(&mut world, "/inbox/1") && kept(&mut world, "/rpc"));
}

#[test]
fn a_slow_answer_ends_no_connection_for_its_silence() {
    let mut world = world(|limits| (limits.idle_ms_max, limits.ping_interval_ms) = (2_000, 500));
    let (place, _) = come(&mut world, &[rule("/**", "both", "ask")]);
    world.say(place, r#"{"id":1,"publish":"/a","content":1}"#);
    world.turn_all();
    let question = asked(&mut world);
    for _ in 0..20 {
        world.advance(500);
        world.say(place, r#"{"id":2,"ping":true}"#);
        world.turn_all();
    }
    assert!(!world.socket(place).is_closed);
    answer(&mut world, &question[0], "allow");
    world.advance(500);
    world.turn_all();
    let heard = world.heard(place);
    assert!(heard.iter().any(|line| line["ok"] == "published") && !world.socket(place).is_closed, "{heard:?}");
}

#[test]
fn what_was_answered_is_asked_again_when_the_server_says_so_and_when_a_reload_lowers_the_age() {
    let mut world = world(|limits| limits.answers_age_ms = 0);
    let (place, _) = come(&mut world, &[rule("/**", "both", "ask")]);
    for subject in ["/kept", "/lost"] {
        world.say(place, &format!(r#"{{"id":1,"subscribe":"{subject}"}}"#));
        world.turn_all();
        let question = asked(&mut world);
        answer(&mut world, &question[0], "allow");
    }
    world.heard(place);
    world.order(0, Order::AskAgain { identity: Some("bob".into()), tenant: None });
    world.turn_all();
    assert!(asked(&mut world).is_empty(), "another identity's answers stay");
    world.order(0, Order::AskAgain { identity: Some("ann".into()), tenant: None });
    world.turn_all();
    let mut again = asked(&mut world);
    again.sort_by(|a, b| a.1.cmp(&b.1));
    assert!(again.iter().map(|one| (&*one.1, one.2)).eq([("/kept", true), ("/lost", true)]), "{again:?}");
    answer(&mut world, &again[0], "allow");
    answer(&mut world, &again[1], "deny");
    let heard = world.heard(place);
    assert!(heard.iter().any(|line| line["ended"] == "/lost" && line["error"] == 4113), "{heard:?}");
    assert!(!heard.iter().any(|line| line["ended"] == "/kept"));
    world.advance(60_000);
    world.turn_all();
    assert!(asked(&mut world).is_empty(), "answers do not age");
    let mut settings = Settings { asks_on_connect: true, ..open_settings() };
    (settings.limits.idle_ms_max, settings.limits.answers_age_ms) = (1 << 40, 30_000);
    world.order(0, Order::Configure(Arc::new(settings)));
    let mut is_asked = false;
    for _ in 0..10 {
        world.advance(500);
        world.turn_all();
        is_asked |= asked(&mut world).iter().any(|one| one.1 == "/kept" && one.2);
    }
    assert!(is_asked, "a lower age holds for what is kept");
}
