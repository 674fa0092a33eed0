//! The contract's table of joins, protocol/vectors/recovery.json: a place, a log, and what a subscriber gets.

use crate::world::{World, open_settings};
use serde_json::{Value, json};

const RECOVERY: &str = include_str!("../../../protocol/vectors/recovery.json");

fn gets(case: &Value, is_pending: bool) -> Vec<Value> {
    let mut settings = open_settings();
    settings.limits.log_messages_max = case["log_messages_max"].as_u64().unwrap_or(0) as usize;
    let mut world = World::new(settings, 2, is_pending);
    let (publisher, reader) = (world.connect(0), world.connect(1));
    for n in 1..=case["published"].as_u64().unwrap_or(0) {
        world.ask(publisher, &json!({"publish": "/s", "content": {"n": n}}).to_string());
    }
    let mut join = case["join"].clone();
    join["subscribe"] = "/s".into();
    let mut heard = world.ask(reader, &join.to_string());
    for object in heard.iter_mut().filter_map(Value::as_object_mut) {
        object.remove("time");
    }
    heard
}

#[test]
fn a_join_gives_what_the_table_says() {
    let Ok(file) = serde_json::from_str::<Value>(RECOVERY) else { panic!("no JSON") };
    let cases = file["node"].as_array().cloned().unwrap_or_default();
    assert!(!cases.is_empty());
    for case in &cases {
        for is_pending in [false, true] {
            assert_eq!(Value::from(gets(case, is_pending)), case["gets"], "{}", case["name"]);
        }
    }
}
