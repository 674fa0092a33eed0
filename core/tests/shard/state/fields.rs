//! Fields beside the content: from one protocol to another, in the snapshot, in a window, and what a removal does to them. Whoever puts the fields
//! of each message over those before has what the snapshot has.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::world::{Place, World, open_settings};

fn publish(world: &mut World, place: Place, options: Value) {
    let mut command = json!({"id": 1, "publish": "/a"});
    command.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    let answer = world.ask(place, &command.to_string());
    assert_eq!(answer[0]["ok"], "published", "{command} {answer:?}");
}

/// The fields of a reader that puts those of each message over what it has.
fn fold(state: &mut BTreeMap<String, Value>, message: &Value) {
    if message["snapshot"] == true || message["removed"] == true {
        state.clear();
    }
    for (name, value) in message["fields"].as_object().into_iter().flatten() {
        state.remove(name);
        if !value.is_null() {
            state.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in message["fields_bytes"].as_object().into_iter().flatten() {
        state.insert(name.clone(), json!({"bytes": value}));
    }
}

fn script() -> Vec<Value> {
    vec![
        json!({"content": {"x": 1}, "fields": {"error": "disk full", "unit": "C"}}),
        json!({"text": "plain", "fields": {"status": "ok"}, "fields_bytes": {"raw": "/wA="}}),
        json!({"content": {"y": 2}, "merge": true, "fields": {"error": null}}),
        json!({"content": 3}),
        json!({"removed": true}),
        json!({"content": {"z": 1}, "fields": {"unit": "K", "gone": null}}),
        json!({"content": {"z": 2}, "fields": {"late": "1"}, "guaranteed": false, "retain": true}),
    ]
}

#[test]
fn a_reader_of_messages_has_the_fields_of_the_snapshot() {
    let mut world = World::new(open_settings(), 1, false);
    let (publisher, reader) = (world.connect(0), world.connect(0));
    world.ask(reader, r#"{"id":1,"subscribe":"/a"}"#);
    let mut state = BTreeMap::new();
    for options in script() {
        publish(&mut world, publisher, options.clone());
        let heard: Vec<Value> = world.heard(reader);
        let messages = heard.iter().filter(|push| !push["message"].is_null());
        messages.for_each(|message| fold(&mut state, message));
        let late = world.connect(0);
        let shown = world.ask(late, r#"{"id":1,"subscribe":"/a"}"#);
        let mut whole = BTreeMap::new();
        shown.iter().filter(|push| push["snapshot"] == true).for_each(|message| fold(&mut whole, message));
        assert_eq!(whole, state, "after {options}: {shown:?}");
        assert!(whole.values().all(|value| !value.is_null()));
    }
    assert_eq!(state.into_iter().collect::<Vec<_>>(), [("late".into(), json!("1")), ("unit".into(), json!("K"))]);
}

#[test]
fn a_window_has_the_latest_of_every_field_and_says_what_was_removed() {
    let mut world = World::new(open_settings(), 1, false);
    let (publisher, reader) = (world.connect(0), world.connect(0));
    publish(&mut world, publisher, json!({"content": 0, "fields": {"before": "1", "error": "x"}}));
    world.ask(reader, r#"{"id":1,"subscribe":"/a","conflate_ms":100}"#);
    let mut state = BTreeMap::new();
    world.heard(reader).iter().for_each(|message| fold(&mut state, message));
    for options in script().into_iter().take(6) {
        publish(&mut world, publisher, options);
    }
    world.advance(200);
    world.turn(0);
    world.settle();
    let heard = world.heard(reader);
    let merged: Vec<&Value> = heard.iter().filter(|push| !push["conflated"].is_null()).collect();
    assert_eq!(merged.len(), 1, "{heard:?}");
    heard.iter().for_each(|message| fold(&mut state, message));
    assert_eq!(state.into_iter().collect::<Vec<_>>(), [("unit".into(), json!("K"))]);
}

#[test]
fn a_union_that_is_too_large_is_refused_and_loses_nothing() {
    let mut settings = open_settings();
    settings.limits.snapshot_bytes_max = 100;
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    publish(&mut world, publisher, json!({"content": 1, "fields": {"a": "x".repeat(40)}}));
    let refused = json!({"id": 1, "publish": "/a", "content": 2, "fields": {"b": "x".repeat(60)}});
    let answer = world.ask(publisher, &refused.to_string());
    assert_eq!(answer[0]["error"], 4130, "{answer:?}");
    publish(&mut world, publisher, json!({"content": 3, "fields": {"a": "y".repeat(60)}}));
}

/// What takes fields away is never more than it may carry, and what replaces them is measured without them.
#[test]
fn a_snapshot_has_no_more_fields_than_a_message() {
    let mut settings = open_settings();
    settings.limits.fields_max = 3;
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    publish(&mut world, publisher, json!({"content": 1, "fields": {"a": "1", "b": "1"}}));
    for is_guaranteed in [true, false] {
        let more = json!({"id": 1, "publish": "/a", "content": 2, "fields": {"c": "1", "d": "1"}, "retain": true,
            "guaranteed": is_guaranteed});
        assert_eq!(world.ask(publisher, &more.to_string())[0]["error"], 4132);
    }
    publish(&mut world, publisher, json!({"content": 3, "fields": {"c": "1", "d": "1", "a": null}}));
    publish(&mut world, publisher, json!({"content": 4, "fields": {"b": "2"}}));
    publish(&mut world, publisher, json!({"removed": true}));
}
