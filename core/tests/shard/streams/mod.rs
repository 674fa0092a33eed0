//! A stream that a POST asks for carries all subscriptions and watches of a client, each with its own options, and is resumed on any node.
use crate::http::answer;
use crate::world::events::{Event, Events};
use crate::world::{Place, World, open_settings};
use godwit_core::settings::RuleSettings;
use serde_json::{Value, json};

/// Opens a stream for these commands; the events come to `hear`.
fn listen(world: &mut World, commands: &Value, last_id: Option<&str>) -> Place {
    let place = world.accept(0);
    let body = commands.to_string();
    let field = last_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /v1/stream HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n{field}Content-Length: {}\r\n\r\n",
        body.len()
    );
    world.bytes(place, head.as_bytes());
    world.bytes(place, body.as_bytes());
    world.turn_all();
    place
}

fn hear(world: &mut World, place: Place) -> Vec<Event> {
    let mut events = Events::default();
    let taken = std::mem::take(&mut world.socket(place).taken);
    events.read(std::str::from_utf8(&taken).unwrap());
    events.found
}

/// Kind of event, and what it is of.
fn brief(events: &[Event]) -> Vec<String> {
    let name = |data: &Value| {
        let names = ["message", "subject", "gap", "interest", "interest_state", "name"];
        names.iter().find_map(|name| data.get(name)?.as_str()).unwrap_or("").to_owned()
    };
    events
        .iter()
        .filter(|event| event.kind != "resume_token")
        .map(|event| format!("{} {}", event.kind, name(&event.data)))
        .collect()
}

fn publish(world: &mut World, place: Place, subject: &str, number: u64) {
    world.say(place, &json!({"publish": subject, "content": {"n": number}}).to_string());
    world.turn_all();
}

#[test]
fn one_stream_carries_subscriptions_and_watches_each_with_its_own_options() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    for number in 1..=3 {
        publish(&mut world, publisher, "/a", number);
        publish(&mut world, publisher, "/b", number);
    }
    let commands = json!([
        {"id": 1, "subscribe": "/a", "last": 2},
        {"id": 2, "subscribe": "/b", "after": "7.1"},
        {"id": "w", "watch": "/a"},
        {"id": 3, "subscribe": "/c/*", "snapshot": false, "conflate_ms": 100},
        {"subscribe": "/d"},
    ]);
    let place = listen(&mut world, &commands, None);
    let events = hear(&mut world, place);
    let replies: Vec<&Value> =
        events.iter().filter(|event| event.kind == "subscribed").map(|event| &event.data["id"]).collect();
    assert_eq!(replies, [&json!(1), &json!(2), &json!(3), &Value::Null]);
    let mut heard = brief(&events);
    heard.sort();
    let expected = [
        "interest /a",
        "interest_state /a",
        "interest_state /a",
        "message /a",
        "message /a",
        "message /b",
        "message /b",
        "subscribed /a",
        "subscribed /b",
        "subscribed /c/*",
        "subscribed /d",
        "watching /a",
    ];
    assert_eq!(heard, expected);
    publish(&mut world, publisher, "/c/1", 1);
    publish(&mut world, publisher, "/c/1", 2);
    world.advance(200);
    world.turn_all();
    let events = hear(&mut world, place);
    assert_eq!(events.iter().find(|event| event.kind == "message").unwrap().data["conflated"], 2);
}

#[test]
fn a_command_that_is_refused_leaves_the_others_as_they_are() {
    let mut settings = open_settings();
    settings.anonymous =
        Some(vec![RuleSettings { pattern: "/a/**".into(), actions: "subscribe".into(), verdict: "allow".into() }]);
    let mut world = World::new(settings, 1, false);
    let commands = json!([
        {"id": 1, "subscribe": "/b"},
        {"id": 2, "subscribe": "/a/x"},
        {"id": 3, "subscribe": "/a/x"},
        {"id": 4, "watch": "/a/x"},
        {"id": 5, "subscribe": "a"},
        {"id": 6, "publish": "/a/x", "content": 1},
        {"id": 7, "subscribe": "/a/y", "last": -1},
    ]);
    let place = listen(&mut world, &commands, None);
    let events = hear(&mut world, place);
    let refused: Vec<(u64, u64)> = events
        .iter()
        .filter(|event| event.kind == "refused")
        .map(|event| (event.data["id"].as_u64().unwrap(), event.data["error"].as_u64().unwrap()))
        .collect();
    assert_eq!(refused, [(1, 4113), (3, 4104), (4, 4115), (5, 4102), (6, 4103), (7, 4104)]);
    let subscribed = events.iter().find(|event| event.kind == "subscribed").unwrap();
    assert_eq!((&subscribed.data["id"], subscribed.id.as_deref()), (&json!(2), Some("7.0")), "alone it has positions");
}

#[test]
fn a_stream_is_resumed_by_its_last_id_on_any_node() {
    let mut world = World::new(open_settings(), 2, false);
    let publisher = world.connect(1);
    let commands =
        json!([{"subscribe": "/a", "snapshot": false}, {"subscribe": "/b/*", "snapshot": false}, {"watch": "/c"}]);
    let place = listen(&mut world, &commands, None);
    publish(&mut world, publisher, "/a", 1);
    publish(&mut world, publisher, "/b/x", 1);
    world.advance(30_000);
    world.turn_all();
    let id = hear(&mut world, place).iter().filter_map(|event| event.id.clone()).next_back().unwrap();
    world.gone(place);
    publish(&mut world, publisher, "/a", 2);
    publish(&mut world, publisher, "/b/x", 2);
    let place = listen(&mut world, &commands, Some(&id));
    let events = hear(&mut world, place);
    let mut numbers: Vec<&Value> =
        events.iter().filter(|event| event.kind == "message").map(|event| &event.data["content"]["n"]).collect();
    numbers.retain(|number| **number != 1);
    assert_eq!(numbers, [&json!(2), &json!(2)], "{events:?}");
    assert!(events.iter().all(|event| event.kind != "gap"), "{events:?}");
}

#[test]
fn a_body_that_is_no_array_of_commands_is_refused_whole() {
    let mut world = World::new(open_settings(), 1, false);
    for (body, status) in [("{}", 400), ("[", 400), ("[]", 400), ("[1]", 200)] {
        let place = world.accept(0);
        let length = body.len();
        let head = format!(
            "POST /v1/stream HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        world.bytes(place, head.as_bytes());
        world.turn_all();
        let text = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).unwrap();
        assert_eq!(answer(&text).0, status, "{body}: {text}");
    }
    let place = world.accept(0);
    world.bytes(place, b"POST /v1/stream?subject=/a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]");
    world.turn_all();
    assert_eq!(answer(&String::from_utf8(world.socket(place).taken.clone()).unwrap()).0, 400);
}

#[test]
fn a_stream_behind_an_answer_of_the_same_connection_begins_when_that_has_left() {
    let mut world = World::new(open_settings(), 1, false);
    let place = world.accept(0);
    let publish = "POST /v1/messages?subject=/a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n1";
    let body = r#"[{"subscribe":"/a"}]"#;
    let stream = format!(
        "POST /v1/stream HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    world.bytes(place, format!("{publish}{stream}").as_bytes());
    world.turn_all();
    let text = String::from_utf8(std::mem::take(&mut world.socket(place).taken)).unwrap();
    let (first, rest) = text.split_at(text.find("HTTP/1.1 200").unwrap_or_else(|| panic!("{text}")));
    assert!(first.starts_with("HTTP/1.1 201"), "{text}");
    let mut events = Events::default();
    events.read(rest);
    assert_eq!(brief(&events.found), ["subscribed /a", "message /a"]);
}
