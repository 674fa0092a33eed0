//! A client is sent no frame that is longer than it takes: a gap stands in a message's place, or a count in a standard one's, its position
//! moves on, and what others get is whole.
use crate::http::{answer, get};
use crate::ledger::{deliveries, journaling};
use crate::world::events::Events;
use crate::world::past::Past;
use crate::world::{Place, World, binary, open_settings};
use serde_json::{Value, json};

const LIMIT: usize = 8_192;

/// A client that takes frames of `LIMIT` bytes.
fn connect(world: &mut World, encoding: &str) -> Place {
    let place = world.connect_on(0, encoding);
    if encoding == "json" {
        world.ask(place, &json!({"id": 1, "connect": {"frame_bytes_max": LIMIT}}).to_string());
    } else {
        world.say_bytes(place, &[0x40, 1, 4, 0x80, 0x40]);
        world.turn_all();
        world.heard(place);
    }
    place
}

fn subscribe(world: &mut World, place: Place, encoding: &str, command: &Value) -> Vec<Value> {
    if encoding == "json" {
        world.say(place, &command.to_string());
    } else {
        world.say_bytes(place, &binary::subscribe(command));
    }
    world.turn_all();
    brief(&world.heard(place))
}

fn publish(world: &mut World, place: Place, subject: &str, bytes: usize, more: &Value) {
    let mut command = json!({"publish": subject, "content": "x".repeat(bytes)});
    command.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.say(place, &command.to_string());
    world.turn_all();
}

/// What came, without long contents: message and position, gap, reply.
fn brief(heard: &[Value]) -> Vec<Value> {
    let one = |value: &Value| match (value.get("message"), value.get("gap"), value.get("ok")) {
        (Some(_), ..) => json!({"at": value.get("at"), "snapshot": value.get("snapshot")}),
        (_, Some(_), _) => json!([value["reason"], value.get("after"), value["at"], value["missed"]]),
        (_, _, Some(_)) => json!([value["outcome"], value["at"], value["count"]]),
        _ => value.clone(),
    };
    heard.iter().filter(|value| value.get("resume_token").is_none()).map(one).collect()
}

fn message(at: &str) -> Value {
    json!({"at": at, "snapshot": null})
}

fn hear(world: &mut World, place: Place) -> Vec<Value> {
    brief(&world.heard(place))
}

#[test]
fn a_gap_stands_in_the_place_of_a_frame_that_is_too_long() {
    for (encoding, selector, listeners) in [
        ("json", "/a", 1),
        ("binary", "/a", 1),
        ("json", "/a", 3),
        ("binary", "/a", 3),
        ("json", "/*", 2),
        ("binary", "/*", 1),
    ] {
        let mut world = World::new(open_settings(), 1, false);
        let publisher = world.connect(0);
        let other = world.connect(0);
        subscribe(&mut world, other, "json", &json!({"id": 1, "subscribe": selector}));
        let places: Vec<Place> = (0..listeners).map(|_| connect(&mut world, encoding)).collect();
        for &place in &places {
            subscribe(&mut world, place, encoding, &json!({"id": 2, "subscribe": selector}));
        }
        for bytes in [10, LIMIT, 10] {
            publish(&mut world, publisher, "/a", bytes, &json!({}));
        }
        publish(&mut world, publisher, "/a", LIMIT, &json!({"guaranteed": false}));
        let gap = json!(["too_large", "7.1", "7.2", 1]);
        let dropped = json!({"dropped": selector, "count": 1});
        for &place in &places {
            let heard = hear(&mut world, place);
            assert_eq!(heard, [message("7.1"), gap.clone(), message("7.3"), dropped.clone()], "{encoding} {selector}");
        }
        let whole: Vec<Value> = ["7.1", "7.2", "7.3"].into_iter().map(message).collect();
        assert_eq!(hear(&mut world, other)[..3], whole, "whoever takes it gets it");
        let counters = world.shard(0).counters();
        assert_eq!((counters.gaps, counters.dropped), (listeners, listeners), "{encoding} {selector}");
        assert_eq!(counters.gap_reasons, [0, 0, 0, 0, 0, listeners]);
    }
}

#[test]
fn a_frame_is_as_long_as_what_it_holds() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    let place = connect(&mut world, "json");
    subscribe(&mut world, place, "json", &json!({"id": 2, "subscribe": "/a"}));
    let around = json!({"message": "/a", "at": "7.1", "time": 1_795_250_000_000_u64, "content": ""}).to_string().len();
    publish(&mut world, publisher, "/a", LIMIT - around, &json!({}));
    publish(&mut world, publisher, "/a", LIMIT - around + 1, &json!({}));
    assert_eq!(hear(&mut world, place), [message("7.1"), json!(["too_large", "7.1", "7.2", 1])]);
}

#[test]
fn who_resumes_gets_the_gap_and_all_that_follows() {
    for (encoding, selector, from) in [
        ("json", "/a", json!({"after": "7.1"})),
        ("binary", "/a", json!({"after": "7.1"})),
        ("json", "/a", json!({"last": 3})),
        ("json", "/*", json!({"after": {"/a": "7.1"}})),
        ("binary", "/*", json!({"after": {"/a": "7.1"}})),
    ] {
        let mut world = World::new(open_settings(), 1, false);
        let publisher = world.connect(0);
        for bytes in [10, 10, LIMIT, 10] {
            publish(&mut world, publisher, "/a", bytes, &json!({}));
        }
        let place = connect(&mut world, encoding);
        let mut command = json!({"id": 2, "subscribe": selector});
        command.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
        let heard = subscribe(&mut world, place, encoding, &command);
        let expected = [message("7.2"), json!(["too_large", "7.2", "7.3", 1]), message("7.4")];
        assert_eq!(heard[1..], expected, "{encoding} {command}");
    }
}

#[test]
fn a_snapshot_that_is_too_long_is_a_gap_and_mends_none() {
    for encoding in ["json", "binary"] {
        let mut settings = open_settings();
        settings.limits.log_messages_max = 2;
        let mut world = World::new(settings, 1, false);
        let publisher = world.connect(0);
        for bytes in [10, 10, 10, LIMIT] {
            publish(&mut world, publisher, "/a", bytes, &json!({}));
        }
        let place = connect(&mut world, encoding);
        let heard = subscribe(&mut world, place, encoding, &json!({"id": 2, "subscribe": "/a"}));
        let gap = json!(["too_large", null, "7.4", 1]);
        assert_eq!(heard, [json!(["snapshot", "7.4", 1]), gap.clone()], "{encoding}");
        let heard = subscribe(&mut world, place, encoding, &json!({"id": 2, "subscribe": "/*"}));
        assert_eq!(heard[1..], [gap], "{encoding}");
        let heard = subscribe(&mut world, place, encoding, &json!({"id": 2, "subscribe": "/a", "after": "7.1"}));
        assert_eq!(heard[1..], [json!(["overrun", "7.1", "7.4", 3])], "{encoding}");
        // The subject's number was announced with what was not sent.
        publish(&mut world, publisher, "/a", 10, &json!({}));
        assert_eq!(hear(&mut world, place), [message("7.5"), message("7.5")], "{encoding}");
    }
}

#[test]
fn merged_messages_that_are_too_long_are_one_gap() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    let place = connect(&mut world, "json");
    subscribe(&mut world, place, "json", &json!({"id": 2, "subscribe": "/a", "conflate_ms": 100}));
    for bytes in [10, 10, LIMIT] {
        publish(&mut world, publisher, "/a", bytes, &json!({}));
    }
    world.advance(200);
    world.turn_all();
    assert_eq!(hear(&mut world, place), [json!(["too_large", "7.0", "7.3", 3])]);
}

#[test]
fn over_http_a_request_says_its_limit() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    let requests = ["subject=/a", "subject=/a&subject=/b", "subject=/*"];
    let streams = requests.map(|query| {
        let place = world.accept(0);
        world.bytes(place, get(&format!("/v1/stream?{query}&frame_bytes_max={LIMIT}"), None).as_bytes());
        world.turn_all();
        place
    });
    for bytes in [10, LIMIT, 10] {
        publish(&mut world, publisher, "/a", bytes, &json!({}));
    }
    let gap = json!(["too_large", "7.1", "7.2", 1]);
    for (query, place) in requests.into_iter().zip(streams) {
        let mut events = Events::default();
        events.read(std::str::from_utf8(&world.socket(place).taken).unwrap());
        let data: Vec<Value> = events.found.iter().map(|event| event.data.clone()).collect();
        let heard: Vec<Value> =
            brief(&data).into_iter().filter(|value| value.get(1).is_none_or(|at| at == "7.1")).collect();
        assert_eq!(heard, [message("7.1"), gap.clone(), message("7.3")], "{query}");
        let ids: Vec<&str> = events.found.iter().filter_map(|event| event.id.as_deref()).collect();
        assert!(query != "subject=/a" || ids == ["7.0", "7.1", "7.2", "7.3"], "the gap moves the stream on: {ids:?}");
    }
    for query in requests {
        let place = world.accept(0);
        let target = format!("/v1/messages?{query}&last=9&frame_bytes_max={LIMIT}");
        world.bytes(place, get(&target, None).as_bytes());
        world.turn_all();
        let (status, body) = answer(std::str::from_utf8(&world.socket(place).taken).unwrap());
        let heard = brief(&serde_json::from_str::<Vec<Value>>(&body).unwrap());
        assert_eq!((status, heard), (200, vec![message("7.1"), gap.clone(), message("7.3")]), "{query}");
    }
}

#[test]
fn a_limit_is_within_bounds() {
    let mut world = World::new(open_settings(), 1, false);
    for (limit, is_valid) in
        [("8191", false), ("8192", true), ("1073741824", true), ("1073741825", false), ("-1", false), ("\"9\"", false)]
    {
        let place = world.connect(0);
        let heard = world.ask(place, &format!("{{\"id\":1,\"connect\":{{\"frame_bytes_max\":{limit}}}}}"));
        assert_eq!(heard[0].get("error").is_none(), is_valid, "{limit}: {heard:?}");
    }
}

#[test]
fn what_was_too_long_is_written_down_as_missing() {
    for (listeners, selector) in [(1, "/a"), (2, "/a"), (1, "/*"), (2, "/*")] {
        let mut world = World::new(journaling(), 1, false);
        let publisher = world.connect(0);
        let places: Vec<Place> = (0..listeners).map(|_| connect(&mut world, "json")).collect();
        for &place in &places {
            subscribe(&mut world, place, "json", &json!({"id": 2, "subscribe": selector}));
        }
        for bytes in [10, LIMIT, 10] {
            publish(&mut world, publisher, "/a", bytes, &json!({}));
        }
        for &place in &places {
            world.ask(place, &json!({"unsubscribe": selector}).to_string());
        }
        let rows = deliveries(world.take_rows(0));
        let counted: Vec<_> = rows.iter().map(|row| (row.count, row.gaps, row.gap_count, row.conflated)).collect();
        assert_eq!(counted, vec![(2, 1, Some(1), 0); listeners], "{listeners} of {selector}");
    }
}

#[test]
fn what_is_read_back_from_the_journal_is_held_to_the_limit_too() {
    for (encoding, selector, from) in [
        ("json", "/a", json!({"after": "7.1"})),
        ("binary", "/a", json!({"after": "7.1"})),
        ("json", "/*", json!({"since": "a1.1.0"})),
    ] {
        let mut settings = journaling();
        settings.limits.log_messages_max = 1;
        let mut world = World::new(settings, 1, false);
        let mut past = Past { page_max: 3, ..Past::default() };
        let publisher = world.connect(0);
        for bytes in [10, 10, LIMIT, 10, 10] {
            publish(&mut world, publisher, "/a", bytes, &json!({}));
        }
        past.note(&world);
        past.write_all();
        let place = connect(&mut world, encoding);
        let mut command = json!({"id": 2, "subscribe": selector});
        command.as_object_mut().unwrap().extend(from.as_object().unwrap().clone());
        let mut heard = subscribe(&mut world, place, encoding, &command);
        past.serve(&mut world);
        heard.extend(hear(&mut world, place));
        let expected = [message("7.2"), json!(["too_large", "7.2", "7.3", 1]), message("7.4"), message("7.5")];
        assert_eq!(heard[1..], expected, "{encoding} {command}");
        assert!(past.asked > 0, "memory alone has only the last");
    }
}
