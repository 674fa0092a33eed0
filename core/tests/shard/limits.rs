//! Deadlines, limits and questions through a node of values: what a silent, a hasty, a hostile and a questioned client gets.

use std::sync::Arc;

use crate::world::{World, masked, open_settings};
use godwit_core::holder::Holder;
use godwit_core::report::{Order, Report};
use godwit_core::rights::{Rights, Rule, Verdict};
use godwit_core::settings::{PatternSettings, RuleSettings};
use proptest::prelude::*;
use serde_json::{Value, json};

fn wait(world: &mut World, ms: u64) {
    for _ in 0..ms / 250 {
        world.advance(250);
        world.turn_all();
    }
}

#[test]
fn who_says_nothing_is_let_go_in_time() {
    let mut world = World::new(open_settings(), 1, true);
    let mute = world.accept(0);
    let silent = world.connect(0);
    world.socket(silent).room = 1000;
    wait(&mut world, 9_000);
    assert!(!world.socket(mute).is_closed);
    wait(&mut world, 4_000);
    assert!(world.socket(mute).is_closed, "no request head within ten seconds");
    wait(&mut world, 20_000);
    assert!(world.socket(silent).taken.starts_with(&[0x89, 0]), "a ping before the idle limit");
    world.socket(silent).room = 0;
    wait(&mut world, 70_000);
    assert!(world.socket(silent).is_closed);
}

#[test]
fn a_pattern_has_at_most_the_segments_and_bytes_that_the_limits_allow() {
    let mut settings = open_settings();
    settings.limits.patterns_bytes_max = 65_536;
    let mut world = World::new(settings, 1, true);
    let client = world.connect(0);
    let of = |segments: usize| "/a".repeat(segments - 1) + "/*";
    let ask = |world: &mut World, command: Value| {
        let heard = world.ask(client, &command.to_string());
        heard.into_iter().find(|one| one["id"] == command["id"]).expect("an answer")
    };
    assert_eq!(ask(&mut world, json!({"id": 1, "subscribe": of(32)}))["ok"], "subscribed");
    assert_eq!(ask(&mut world, json!({"id": 2, "subscribe": of(33)}))["error"], 4102);
    assert_eq!(ask(&mut world, json!({"id": 3, "watch": of(33)}))["error"], 4102);
    assert_eq!(ask(&mut world, json!({"id": 4, "subscribe": "/a".repeat(500)}))["ok"], "subscribed");
    let refused = (0..100).find_map(|which| {
        let pattern = format!("/{which}{}", of(31));
        let answer = ask(&mut world, json!({"id": 5, "subscribe": &pattern}));
        (answer["ok"] != "subscribed").then(|| (pattern, answer["error"].clone()))
    });
    let (pattern, code) = refused.expect("a hundred of them take more than 64 KiB");
    assert_eq!(code, 4121);
    // Those that leave make room.
    for pattern in [of(32), format!("/0{}", of(31))] {
        assert_eq!(ask(&mut world, json!({"id": 6, "unsubscribe": pattern}))["ok"], "unsubscribed");
    }
    wait(&mut world, 12_000);
    assert_eq!(ask(&mut world, json!({"id": 7, "subscribe": pattern}))["ok"], "subscribed");
}

#[test]
fn nobody_is_let_go_before_the_time_is_up() {
    let mut settings = open_settings();
    settings.limits.handshake_ms_max = 300;
    let mut world = World::new(settings, 1, true);
    for _ in 0..40 {
        world.advance(7);
        let mute = world.accept(0);
        for _ in 0..42 {
            world.advance(7);
            world.turn_all();
        }
        assert!(!world.socket(mute).is_closed, "it had 294 of its 300 ms");
        wait(&mut world, 4_000);
        assert!(world.socket(mute).is_closed);
    }
}

#[test]
fn a_pong_keeps_a_silent_client() {
    let mut world = World::new(open_settings(), 1, false);
    let silent = world.connect(0);
    for _ in 0..8 {
        wait(&mut world, 40_000);
        world.bytes(silent, &[0x8a, 0x80, 0, 0, 0, 0]);
    }
    assert!(!world.socket(silent).is_closed);
}

#[test]
fn a_message_that_never_ends_is_cut_off() {
    let mut world = World::new(open_settings(), 1, true);
    let slow = world.connect(0);
    let frame = masked(br#"{"id":1,"ping":true}"#);
    for byte in &frame[..10] {
        world.bytes(slow, &[*byte]);
        wait(&mut world, 1_500);
    }
    assert_eq!(world.heard(slow), [json!({"close": 4203})]);
}

#[test]
fn answers_that_are_not_taken_stop_the_reading() {
    let mut world = World::new(open_settings(), 1, true);
    let greedy = world.connect(0);
    world.socket(greedy).room = 0;
    for _ in 0..2_000 {
        if !world.socket(greedy).is_paused {
            world.say(greedy, r#"{"id":1,"ping":true}"#);
            world.turn(0);
        }
    }
    assert!(world.socket(greedy).is_paused);
    world.give_room(greedy, usize::MAX / 2);
    world.turn_all();
    assert!(!world.socket(greedy).is_paused);
    let pongs = world.heard(greedy).len();
    assert!((300..600).contains(&pongs), "{pongs} pongs of about 40 bytes in a reply buffer of 16 kB");
}

#[test]
fn held_frames_leave_together() {
    let mut settings = open_settings();
    let held = PatternSettings {
        pattern: "/h/**".into(),
        batch_ms: Some(5),
        batch_bytes_max: Some(400),
        ..PatternSettings::default()
    };
    settings.patterns = vec![held];
    let mut world = World::new(settings, 1, true);
    let (publisher, reader) = (world.connect(0), world.connect(0));
    world.ask(reader, r#"{"id":1,"subscribe":"/h/a"}"#);
    let sends = world.sends(0);
    for _ in 0..3 {
        world.ask(publisher, r#"{"publish":"/h/a","content":1}"#);
    }
    assert_eq!((world.heard(reader), world.sends(0)), (Vec::<Value>::new(), sends));
    world.advance(5);
    world.turn_all();
    assert_eq!((world.heard(reader).len(), world.sends(0)), (3, sends + 1));
    for _ in 0..8 {
        world.ask(publisher, r#"{"publish":"/h/a","content":1}"#);
    }
    assert!(world.heard(reader).len() >= 4, "a full hold does not wait");
}

#[test]
fn a_slow_consumer_can_ask_for_merged_messages() {
    let mut settings = open_settings();
    let slow = PatternSettings {
        pattern: "/m/**".into(),
        conflate_when_slow: Some(true),
        merge: Some(true),
        ..PatternSettings::default()
    };
    settings.patterns = vec![slow];
    let mut world = World::new(settings, 1, true);
    let (publisher, reader) = (world.connect(0), world.connect(0));
    world.ask(reader, r#"{"id":1,"subscribe":"/m/a"}"#);
    world.socket(reader).room = 0;
    for n in 1..=9 {
        world.ask(publisher, &json!({"publish": "/m/a", "content": {format!("k{}", n % 3): n}}).to_string());
    }
    world.give_room(reader, usize::MAX / 2);
    world.turn_all();
    let heard = world.heard(reader);
    assert_eq!((heard.len(), &heard[0]["conflated"]), (1, &json!(9)));
    assert_eq!(heard[0]["content"], json!({"k0": 9, "k1": 7, "k2": 8}));
}

#[test]
fn a_question_holds_the_connection_until_it_is_answered() {
    let mut settings = open_settings();
    let rule = |verdict: &str| RuleSettings { pattern: "/**".into(), actions: "both".into(), verdict: verdict.into() };
    settings.anonymous = Some(vec![rule("ask")]);
    let mut world = World::new(settings, 1, true);
    let client = world.connect(0);
    let batch = r#"[{"id":1,"subscribe":"/a"},{"id":2,"publish":"/a","content":1},{"id":3,"ping":true}]"#;
    assert_eq!(world.ask(client, batch), Vec::<Value>::new());
    assert!(world.socket(client).is_paused);
    let Some(Report::Ask { connection, selector, .. }) = world.reports().pop() else { panic!("a question") };
    assert_eq!(selector, "/a");
    let settings = RuleSettings { pattern: "/a".into(), actions: "both".into(), verdict: "allow".into() };
    world.order(0, Order::Answer { connection, rule: Rule::compile(&settings).unwrap(), is_background: false });
    world.turn_all();
    let heard = world.heard(client);
    let oks: Vec<&Value> = heard.iter().filter_map(|m| m.get("ok")).collect();
    assert_eq!(oks, ["subscribed", "published", "pong"]);
    assert!(heard.iter().any(|m| m["message"] == "/a"));
    assert!(!world.socket(client).is_paused);
}

#[test]
fn new_rights_end_what_they_no_longer_cover() {
    let mut settings = open_settings();
    settings.asks_on_connect = true;
    let mut world = World::new(settings, 1, true);
    let client = world.connect(0);
    world.ask(client, r#"[{"id":1,"subscribe":"/a"},{"id":2,"subscribe":"/b"},{"id":3,"subscribe":"/**"}]"#);
    world.ask(client, r#"{"id":4,"connect":{"token":"t"}}"#);
    let found = world.reports().into_iter().find_map(|report| match report {
        Report::Authorize { connection, token, .. } => Some((connection, token)),
        _ => None,
    });
    let (connection, token) = found.expect("a question");
    assert_eq!(token.as_deref(), Some("t"));
    let rules = [RuleSettings { pattern: "/a".into(), actions: "both".into(), verdict: "allow".into() }];
    let rights = Arc::new(Rights::compile(&rules).unwrap());
    world.order(
        0,
        Order::Grant {
            connection,
            holder: Holder::new("", "authorizer", "ann"),
            rights,
            expires_ms: Some(world.now.wall_ms + 90_000),
            token: None,
        },
    );
    world.turn_all();
    let heard = world.heard(client);
    assert!(heard.iter().any(|m| m["ok"] == "connected"));
    let mut ended: Vec<&str> = heard.iter().filter_map(|m| m["ended"].as_str()).collect();
    ended.sort_unstable();
    assert_eq!(ended, ["/**", "/b"], "{heard:?}");
    wait(&mut world, 45_000);
    assert!(!world.heard(client).iter().any(|m| m["notice"] == "token_expiring"), "half its time is left");
    world.bytes(client, &[0x8a, 0x80, 0, 0, 0, 0]);
    wait(&mut world, 25_000);
    assert!(world.heard(client).iter().any(|m| m["notice"] == "token_expiring"));
    world.bytes(client, &[0x8a, 0x80, 0, 0, 0, 0]);
    wait(&mut world, 25_000);
    assert_eq!(world.heard(client).last(), Some(&json!({"close": 4003})));
    assert_eq!(Rights::default().judge_subject(godwit_core::rights::Action::Publish, "/a"), Verdict::Deny);
}

#[test]
fn a_publisher_is_not_read_while_a_shard_lags() {
    let mut settings = open_settings();
    settings.limits.feed_entries_max = 64;
    let mut world = World::new(settings, 2, true);
    let (publisher, reader) = (world.connect(0), world.connect(1));
    world.ask(reader, r#"{"id":1,"subscribe":"/a"}"#);
    for _ in 0..40 {
        world.say(publisher, r#"{"publish":"/a","content":1}"#);
    }
    world.turn_alone(0);
    assert!(world.socket(publisher).is_paused);
    world.turn(1);
    world.advance(2);
    world.turn_all();
    assert!(!world.socket(publisher).is_paused);
    assert_eq!(world.heard(reader).len(), 40);
}

proptest! {
    /// Whatever bytes come, nothing panics, the answer is bounded, and others are served.
    #[test]
    fn no_bytes_break_a_session(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20)) {
        let mut world = World::new(open_settings(), 1, true);
        let (other, hostile, raw) = (world.connect(0), world.connect(0), world.accept(0));
        for chunk in &chunks {
            world.bytes(hostile, chunk);
            world.bytes(raw, chunk);
            world.turn_all();
        }
        prop_assert_eq!(&world.ask(other, r#"{"id":1,"ping":true}"#)[0]["ok"], "pong");
    }

    /// Commands made of the right words in any order and with any values neither panic nor leave anything behind.
    #[test]
    fn no_commands_break_a_session(commands in proptest::collection::vec(command(), 1..40)) {
        let mut world = World::new(open_settings(), 2, false);
        let client = world.connect(1);
        for text in &commands {
            if world.socket(client).is_closed {
                break;
            }
            world.say(client, text);
            world.turn_all();
        }
        world.gone(client);
        world.advance(60_000);
        world.turn_all();
        wait(&mut world, 4_000);
        let counters = world.shard(1).counters();
        prop_assert_eq!((counters.connections, counters.subscriptions, counters.streams, counters.held_bytes), (0, 0, 0, 0));
    }
}

fn command() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("/a"),
        Just("/a/b"),
        Just("/a/*"),
        Just("/**"),
        Just("/$x"),
        Just("a"),
        Just("/a//b"),
        Just("/a/**/b")
    ];
    let verb = prop_oneof![
        Just("subscribe"),
        Just("unsubscribe"),
        Just("publish"),
        Just("watch"),
        Just("unwatch"),
        Just("ping")
    ];
    let key = prop_oneof![
        Just("after"),
        Just("since"),
        Just("last"),
        Just("snapshot"),
        Just("conflate_ms"),
        Just("content"),
        Just("text"),
        Just("retain"),
        Just("guaranteed"),
        Just("key"),
        Just("reply_to"),
        Just("ack"),
        Just("on_gap"),
        Just("connect")
    ];
    let value = prop_oneof![
        Just(json!("7.0")),
        Just(json!("7.5")),
        Just(json!("a1.0.5")),
        Just(json!({"/a": "7.0"})),
        Just(json!(2)),
        Just(json!(-1)),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!("/r")),
        Just(json!("oldest")),
        Just(json!("a key of sixteen bytes")),
        Just(json!({"x": 1})),
        Just(Value::Null),
        Just(json!("disk")),
        Just(json!(1e300))
    ];
    (name, verb, proptest::collection::vec((key, value), 0..3)).prop_map(|(name, verb, extra)| {
        let mut command = json!({"id": 1, verb: if verb == "ping" { json!(true) } else { json!(name) }});
        for (key, value) in extra {
            command[key] = value;
        }
        command.to_string()
    })
}
