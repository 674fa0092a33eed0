//! A subscribe to what a connection has already, refused for any reason, leaves the subscription that is there: it loses nothing and
//! gets nothing twice.
use super::{answer, asked, come, rule, world};
use crate::mqtt::{connect, listeners, packet, subscribe};
use crate::world::{Place, World, open_settings};
use godwit_core::limits::Limits;
use godwit_core::report::{Order, Report};
use serde_json::{Value, json};

/// Pushes of `/a`, one for each that is published now.
fn delivered(world: &mut World, place: Place) -> Vec<Value> {
    world.heard(place);
    let publisher = world.connect(0);
    for number in 0..3 {
        world.say(publisher, &json!({"publish": "/a", "content": number}).to_string());
    }
    world.turn_all();
    let pushes = world.heard(place).into_iter().filter_map(|push| push.get("content").cloned());
    pushes.collect()
}

fn refused(change: impl FnOnce(&mut Limits), again: &str, code: u64) {
    let mut world = world(change);
    let (place, _) = come(&mut world, &[rule("/**", "both", "allow")]);
    assert_eq!(world.ask(place, r#"{"id":1,"subscribe":"/a"}"#)[0]["ok"], "subscribed");
    let heard = world.ask(place, again);
    assert_eq!(heard[0]["error"], code, "{heard:?}");
    assert_eq!(delivered(&mut world, place), [json!(0), json!(1), json!(2)], "after {code}");
}

#[test]
fn a_rate_a_full_table_or_options_that_cannot_be_leave_what_is_there() {
    refused(|limits| limits.subscribes_per_second_max = 1, r#"{"id":2,"subscribe":"/a"}"#, 4122);
    // Conflated frames need a stream of their own.
    let full = |limits: &mut Limits| limits.streams_per_shard_max = 1;
    refused(full, r#"{"id":2,"subscribe":"/a","conflate_ms":1000}"#, 4121);
    refused(|_| {}, r#"{"id":2,"subscribe":"/a","after":"no position"}"#, 4109);
}

#[test]
fn an_authorizer_that_is_silent_or_says_no_leaves_what_is_there() {
    for verdict in ["ask", "deny"] {
        let mut world = world(|_| {});
        let (place, _) = come(&mut world, &[rule("/**", "subscribe", "ask"), rule("/**", "publish", "allow")]);
        world.say(place, r#"{"id":1,"subscribe":"/a"}"#);
        world.turn_all();
        let question = asked(&mut world).remove(0);
        answer(&mut world, &question, "allow");
        world.order(0, Order::AskAgain { identity: None, tenant: None });
        world.turn_all();
        asked(&mut world); // in the background, and unanswered
        world.say(place, r#"{"id":2,"subscribe":"/a"}"#);
        world.turn_all();
        let question = asked(&mut world).remove(0);
        assert!(!question.2, "the command waits for this one");
        answer(&mut world, &question, verdict);
        let heard = world.heard(place);
        let refusal = heard.iter().find(|push| push["id"] == 2).expect("an answer");
        assert_eq!(refusal["error"], if verdict == "ask" { 4125 } else { 4113 }, "{refusal}");
        assert_eq!(delivered(&mut world, place), [json!(0), json!(1), json!(2)], "after {verdict}");
    }
}

/// How often a device's socket was sent `content`.
fn count(world: &mut World, place: Place, content: &str) -> usize {
    let taken = std::mem::take(&mut world.socket(place).taken);
    taken.windows(content.len()).filter(|window| *window == content.as_bytes()).count()
}

fn device(filter: &str, change: impl FnOnce(&mut Limits)) {
    let mut settings = godwit_core::settings::Settings { listeners: listeners(), ..open_settings() };
    settings.limits.idle_ms_max = 1 << 40;
    change(&mut settings.limits);
    let mut world = World::new(settings, 1, false);
    let place = crate::mqtt::come(&mut world, 0, &connect("d", false));
    world.turn_all();
    world.bytes(place, &subscribe(&[(filter, 1)]));
    world.turn_all();
    std::mem::take(&mut world.socket(place).taken);
    world.bytes(place, &subscribe(&[(filter, 0)]));
    world.turn_all();
    let suback = std::mem::take(&mut world.socket(place).taken);
    assert_eq!(suback, packet(0x90, &[0, 1, 0x80]), "{filter} is refused");
    let publisher = world.connect(0);
    world.say(publisher, r#"{"publish":"/a","content":"reading"}"#);
    world.turn_all();
    assert_eq!(count(&mut world, place, "reading"), 1, "{filter}");
}

#[test]
fn a_device_keeps_its_subscription_too() {
    for filter in ["a", "+", "#"] {
        device(filter, |limits| limits.subscribes_per_second_max = 1);
        device(filter, |limits| limits.streams_per_shard_max = 1);
    }
    device("$share/g/a", |limits| limits.subscribes_per_second_max = 1);
}

#[test]
fn no_question_is_left_behind_by_a_refusal() {
    let mut world = world(|limits| limits.subscribes_per_second_max = 1);
    let (place, _) = come(&mut world, &[rule("/**", "subscribe", "ask")]);
    world.say(place, r#"[{"id":1,"subscribe":"/a"},{"id":2,"subscribe":"/a"}]"#);
    world.turn_all();
    let question = asked(&mut world).remove(0);
    answer(&mut world, &question, "allow");
    let heard = world.heard(place);
    assert_eq!(heard.iter().filter(|push| push["ok"] == "subscribed").count(), 1, "{heard:?}");
    assert!(!world.reports.iter().any(|report| matches!(report, Report::Ask { .. })));
}
