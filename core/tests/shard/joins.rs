//! Sessions and joins through a whole node of values: what a client asks and what it is told, point by point.

use std::collections::BTreeSet;

use crate::world::{World, open_settings};
use godwit_core::report::{Order, Report};
use serde_json::{Value, json};

fn both(test: impl Fn(bool)) {
    [false, true].into_iter().for_each(test);
}

fn publish(world: &mut World, place: crate::world::Place, subject: &str, content: &Value) -> Value {
    let text = json!({"id": 1, "publish": subject, "content": content}).to_string();
    world.ask(place, &text).into_iter().find(|v| v["ok"] == "published").expect("published")["at"].clone()
}

#[test]
fn a_subscriber_gets_snapshot_then_live() {
    both(|is_pending| {
        let mut world = World::new(open_settings(), 2, is_pending);
        let (publisher, reader) = (world.connect(0), world.connect(1));
        assert_eq!(publish(&mut world, publisher, "/a/b", &json!({"x": 1, "y": 1})), "7.1");
        world.ask(publisher, r#"{"publish":"/a/b","merge":true,"content":{"x":2}}"#);
        let heard = world.ask(reader, r#"{"id":2,"subscribe":"/a/b"}"#);
        assert_eq!(heard[0]["ok"], "subscribed");
        assert_eq!(
            (&heard[0]["at"], &heard[0]["outcome"], &heard[0]["count"]),
            (&json!("7.2"), &json!("snapshot"), &json!(1))
        );
        assert_eq!(heard[1]["content"], json!({"x": 2, "y": 1}));
        assert_eq!((&heard[1]["at"], &heard[1]["snapshot"]), (&json!("7.2"), &json!(true)));
        publish(&mut world, publisher, "/a/b", &json!({"x": 3}));
        world.settle();
        let heard = world.heard(reader);
        assert_eq!(heard.len(), 1);
        assert_eq!((&heard[0]["at"], &heard[0]["content"]), (&json!("7.3"), &json!({"x": 3})));
    });
}

#[test]
fn a_position_resumes_exactly_and_a_strange_one_gets_a_gap() {
    both(|is_pending| {
        let mut world = World::new(open_settings(), 1, is_pending);
        let publisher = world.connect(0);
        for n in 1..=5 {
            publish(&mut world, publisher, "/a", &json!({"n": n}));
        }
        let reader = world.connect(0);
        let heard = world.ask(reader, r#"{"id":1,"subscribe":"/a","after":"7.2"}"#);
        assert_eq!((&heard[0]["outcome"], &heard[0]["count"]), (&json!("recovered"), &json!(3)));
        let ats: Vec<&str> = heard[1..].iter().map(|m| m["at"].as_str().unwrap()).collect();
        assert_eq!(ats, ["7.3", "7.4", "7.5"]);
        for (after, reason, at, is_snapshot, follows) in
            [("7.9", "ahead", "7.5", json!(true), 1), ("6.2", "epoch", "7.0", Value::Null, 5)]
        {
            let heard = world.ask(reader, &json!({"id": 1, "subscribe": "/a", "after": after}).to_string());
            assert_eq!(heard[0]["outcome"], "resync");
            assert_eq!(
                (&heard[1]["gap"], &heard[1]["reason"], &heard[1]["at"]),
                (&json!("/a"), &json!(reason), &json!(at))
            );
            assert_eq!((&heard[2]["snapshot"], heard.len()), (&is_snapshot, 2 + follows));
        }
    });
}

#[test]
fn history_gives_the_last_messages_then_live() {
    let mut world = World::new(open_settings(), 1, true);
    let publisher = world.connect(0);
    (1..=5).for_each(|n| drop(publish(&mut world, publisher, "/a", &json!(n))));
    let heard = world.ask(publisher, r#"{"id":1,"subscribe":"/a","last":2}"#);
    assert_eq!((&heard[0]["outcome"], &heard[0]["count"]), (&json!("history"), &json!(2)));
    assert_eq!(heard[1..].iter().map(|m| &m["content"]).collect::<Vec<_>>(), [&json!(4), &json!(5)]);
    let heard = world.ask(publisher, r#"{"id":2,"publish":"/a","content":6}"#);
    assert_eq!(heard.iter().filter(|m| m["message"] == "/a").count(), 1);
}

#[test]
fn a_pattern_joins_with_snapshots_in_name_order_and_a_resume_token_that_resumes() {
    both(|is_pending| {
        let mut world = World::new(open_settings(), 2, is_pending);
        let (publisher, reader) = (world.connect(0), world.connect(1));
        for subject in ["/p/b", "/p/a", "/q/a", "/p/c/d"] {
            publish(&mut world, publisher, subject, &json!(subject));
        }
        let heard = world.ask(reader, r#"{"id":1,"subscribe":"/p/**"}"#);
        let names: Vec<&str> = heard.iter().filter_map(|m| m["message"].as_str()).collect();
        assert_eq!(names, ["/p/a", "/p/b", "/p/c/d"]);
        assert!(heard[0].get("at").is_none());
        let resume_token =
            heard.last().unwrap()["resume_token"].as_str().expect("the first resume token ends the join").to_owned();
        publish(&mut world, publisher, "/p/a", &json!(1));
        publish(&mut world, publisher, "/q/a", &json!(2));
        publish(&mut world, publisher, "/p/z", &json!(3));
        world.settle();
        let live: Vec<Value> = world.heard(reader);
        assert_eq!(live.iter().map(|m| &m["content"]).collect::<Vec<_>>(), [&json!(1), &json!(3)]);
        assert!(live.iter().all(|m| m["pattern"] == "/p/**"));
        let again = world.connect(1);
        let heard = world.ask(again, &json!({"id": 1, "subscribe": "/p/**", "since": resume_token}).to_string());
        assert_eq!(heard[0]["outcome"], "recovered");
        let contents: Vec<&Value> =
            heard.iter().filter(|m| m.get("message").is_some()).map(|m| &m["content"]).collect();
        assert_eq!(contents, [&json!(1), &json!(3)]);
        assert!(heard.last().unwrap().get("resume_token").is_some());
    });
}

#[test]
fn a_pattern_is_told_of_its_places_in_subjects_that_are_not_there() {
    both(|is_pending| {
        let mut world = World::new(open_settings(), 1, is_pending);
        let (publisher, reader) = (world.connect(0), world.connect(0));
        publish(&mut world, publisher, "/a/here", &json!({"n": 1}));
        let after =
            json!({"/a/here": "7.1", "/a/gone": "6.12", "/a/later": "7.3", "/a/empty": "7.0", "/b/other": "6.4"});
        let asked = json!({"id": 1, "subscribe": "/a/*", "after": after}).to_string();
        let mut heard = world.ask(reader, &asked);
        assert!(
            heard.last().is_some_and(|last| last["resume_token"].is_string()),
            "the join is complete after the gaps"
        );
        heard.sort_by_key(|one| one["gap"].to_string());
        let gaps: Vec<_> = heard.iter().filter(|one| one["gap"].is_string()).collect();
        let fields = |gap: &Value| [&gap["gap"], &gap["after"], &gap["at"], &gap["reason"]].map(Value::clone);
        assert_eq!(
            gaps.iter().map(|gap| fields(gap)).collect::<Vec<_>>(),
            [
                [json!("/a/gone"), json!("6.12"), json!("7.0"), json!("epoch")],
                [json!("/a/later"), json!("7.3"), json!("7.0"), json!("ahead")],
            ]
        );
        assert!(gaps.iter().all(|gap| gap["missed"].is_null() && gap["pattern"] == "/a/*"));
        publish(&mut world, publisher, "/a/gone", &json!({"n": 2}));
        world.settle();
        assert_eq!(world.heard(reader)[0]["at"], "7.1");
    });
}

#[test]
fn a_resume_token_of_another_run_is_a_gap_of_the_pattern_also_beside_positions_of_some_subjects() {
    both(|is_pending| {
        let mut world = World::new(open_settings(), 1, is_pending);
        let (publisher, reader) = (world.connect(0), world.connect(0));
        publish(&mut world, publisher, "/a/known", &json!({"n": 1}));
        publish(&mut world, publisher, "/a/other", &json!({"n": 2}));
        let asked = json!({"id": 1, "subscribe": "/a/*", "after": {"/a/known": "6.4"}, "since": "ff.12.1795250000123"});
        let heard = world.ask(reader, &asked.to_string());
        assert_eq!(heard[0]["outcome"], "resync");
        assert_eq!((&heard[1]["gap"], &heard[1]["at"]), (&json!("/a/*"), &Value::Null));
        let snapshots: Vec<_> = heard.iter().filter(|one| one["snapshot"] == true).map(|one| &one["message"]).collect();
        assert_eq!(snapshots, [&json!("/a/known"), &json!("/a/other")]);
        assert!(heard.last().is_some_and(|last| last["resume_token"].is_string()));
    });
}

#[test]
fn conflation_merges_a_window_and_counts() {
    let mut world = World::new(open_settings(), 1, true);
    let publisher = world.connect(0);
    let reader = world.connect(0);
    world.ask(reader, r#"{"id":1,"subscribe":"/a","conflate_ms":547}"#);
    for n in 1..=3 {
        let patch = json!({"publish": "/a", "merge": true, "content": {"n": n, format!("k{n}"): n}});
        world.ask(publisher, &patch.to_string());
    }
    assert_eq!(world.heard(reader), Vec::<Value>::new());
    world.advance(500);
    world.turn_all();
    let heard = world.heard(reader);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["content"], json!({"n": 3, "k1": 1, "k2": 2, "k3": 3}));
    assert_eq!(heard[0]["merge"], true);
    assert_eq!(
        (&heard[0]["conflated"], &heard[0]["after"], &heard[0]["at"]),
        (&json!(3), &json!("7.0"), &json!("7.3"))
    );
}

#[test]
fn a_slow_consumer_gets_a_gap_not_a_loss() {
    both(|is_pending| {
        let mut settings = open_settings();
        settings.limits.log_messages_max = 4;
        settings.limits.stream_window_bytes_max = 512;
        settings.limits.index_entries_max = 16;
        let mut world = World::new(settings, 1, is_pending);
        let publisher = world.connect(0);
        for is_alone in [true, false] {
            let subject = format!("/s/{is_alone}");
            let slow = world.connect(0);
            let subscribe = json!({"id": 1, "subscribe": subject}).to_string();
            world.ask(slow, &subscribe);
            if !is_alone {
                let other = world.connect(0);
                world.ask(other, &subscribe);
            }
            world.socket(slow).room = 40;
            for n in 1..=50 {
                publish(&mut world, publisher, &subject, &json!({"n": n}));
            }
            world.give_room(slow, usize::MAX / 2);
            world.turn_all();
            let heard = world.heard(slow);
            assert_eq!(heard[0]["content"]["n"], 1, "the frame that was cut is finished");
            assert_eq!((&heard[1]["gap"], &heard[1]["after"]), (&json!(subject), &json!("7.1")));
            assert_eq!(
                (&heard[1]["at"], &heard[1]["missed"], &heard[1]["reason"]),
                (&json!("7.50"), &json!(49), &json!("overrun"))
            );
            assert_eq!((&heard[2]["snapshot"], &heard[2]["content"]["n"]), (&json!(true), &json!(50)));
            assert_eq!(heard.len(), 3);
        }
    });
}

#[test]
fn standard_messages_have_no_position_and_losses_are_counted() {
    let mut world = World::new(open_settings(), 1, true);
    let (publisher, reader) = (world.connect(0), world.connect(0));
    world.ask(reader, r#"{"id":1,"subscribe":"/a"}"#);
    let send = r#"{"id":1,"publish":"/a","content":1,"guaranteed":false}"#;
    world.ask(publisher, send);
    let heard = world.heard(reader);
    assert_eq!(heard.len(), 1);
    assert!(heard[0].get("at").is_none());
    world.socket(reader).room = 0;
    (0..3).for_each(|_| drop(world.ask(publisher, send)));
    world.give_room(reader, 10_000);
    world.turn_all();
    let heard = world.heard(reader);
    assert_eq!((&heard[0]["dropped"], &heard[0]["count"]), (&json!("/a"), &json!(3)), "{heard:?}");
}

#[test]
fn interest_is_told_as_state_then_changes() {
    let mut world = World::new(open_settings(), 2, true);
    let (publisher, reader) = (world.connect(0), world.connect(1));
    world.ask(reader, r#"{"id":1,"subscribe":"/o/a"}"#);
    let heard = world.ask(publisher, r#"{"id":1,"watch":"/o/**"}"#);
    assert_eq!(heard[0]["ok"], "watching");
    assert_eq!(heard[1], json!({"interest_state": "/o/**", "complete": false}));
    assert_eq!((&heard[2]["interest"], &heard[2]["subscribers"]), (&json!("/o/a"), &json!(true)));
    assert_eq!(heard[3], json!({"interest_state": "/o/**", "complete": true}));
    world.ask(reader, r#"{"id":2,"subscribe":"/o/*"}"#);
    world.ask(reader, r#"{"id":3,"unsubscribe":"/o/a"}"#);
    world.settle();
    let heard = world.heard(publisher);
    assert_eq!((heard.len(), &heard[0]["interest"]), (1, &json!("/o/*")));
    for _ in 0..40 {
        world.advance(250);
        world.turn_all();
    }
    let heard = world.heard(publisher);
    assert!(heard.iter().any(|m| m["interest"] == "/o/a" && m["subscribers"] == false), "{heard:?}");
}

/// Who listens, as a client knows it that reads all this.
fn fold_interest(known: &mut BTreeSet<String>, heard: &[Value]) {
    let mut unconfirmed = BTreeSet::new();
    for push in heard {
        if let Some(selector) = push["interest"].as_str() {
            unconfirmed.remove(selector);
            if push["subscribers"] == true {
                known.insert(selector.to_owned());
            } else {
                known.remove(selector);
            }
        } else if push["interest_state"].is_string() {
            if push["complete"] == true {
                known.retain(|selector| !unconfirmed.contains(selector));
            } else {
                unconfirmed.clone_from(known);
            }
        }
    }
}

#[test]
fn a_watcher_that_falls_behind_learns_who_left_meanwhile() {
    let mut settings = open_settings();
    settings.limits.reply_buffer_bytes_max = 200;
    let mut world = World::new(settings, 1, true);
    let (watcher, reader) = (world.connect(0), world.connect(0));
    world.ask(reader, r#"{"id":1,"subscribe":"/o/left"}"#);
    let mut known = BTreeSet::new();
    fold_interest(&mut known, &world.ask(watcher, r#"{"id":1,"watch":"/o/**"}"#));
    assert_eq!(known, BTreeSet::from(["/o/left".to_owned()]));
    world.socket(watcher).room = 0;
    for number in 0..600 {
        world.ask(reader, &json!({"id": 2, "subscribe": format!("/o/{number}")}).to_string());
    }
    world.ask(reader, r#"{"id":3,"unsubscribe":"/o/left"}"#);
    for _ in 0..40 {
        world.advance(250);
        world.turn_all();
    }
    world.give_room(watcher, usize::MAX / 2);
    world.settle();
    let heard = world.heard(watcher);
    fold_interest(&mut known, &heard);
    assert_eq!(known, (0..600).map(|number| format!("/o/{number}")).collect());
    assert_eq!(heard.last(), Some(&json!({"interest_state": "/o/**", "complete": true})));
}

#[test]
fn a_drain_tells_everybody_and_closes_who_stays() {
    let mut world = World::new(open_settings(), 1, true);
    let reader = world.connect(0);
    world.order(0, Order::Drain { grace_ms: 1000, spread_ms: 500 });
    world.turn_all();
    let heard = world.heard(reader);
    assert_eq!(heard[0]["notice"], "draining");
    assert!(heard[0]["reconnect_after_ms"].as_u64().unwrap() < 500);
    world.advance(1500);
    world.turn_all();
    assert_eq!(world.heard(reader), [json!({"close": 4200})]);
}

#[test]
fn a_drain_does_not_wait_for_who_never_speaks() {
    let mut world = World::new(open_settings(), 1, true);
    let drained = |world: &mut World| world.reports().iter().any(|report| matches!(report, Report::Drained { .. }));
    let (mute, stubborn) = (world.accept(0), world.connect(0));
    let asking = world.accept(0);
    world.bytes(asking, b"GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: a\r\n");
    world.order(0, Order::Drain { grace_ms: 1000, spread_ms: 500 });
    world.turn_all();
    assert!(world.socket(mute).is_closed, "nothing of it is under way");
    assert!(!world.socket(stubborn).is_closed && !world.socket(asking).is_closed);
    assert!(!drained(&mut world));
    // At the end of the grace it is told, and it does not answer the close.
    for _ in 0..7 {
        world.advance(250);
        world.turn_all();
    }
    assert!(world.socket(stubborn).is_closed && world.socket(asking).is_closed);
    assert!(drained(&mut world));
}

#[test]
fn a_number_is_announced_again_when_the_socket_did_not_take_what_announced_it() {
    let mut world = World::new(open_settings(), 1, false);
    let publisher = world.connect(0);
    let reader = world.connect_on(0, "binary");
    world.say_bytes(reader, &crate::world::binary::subscribe(&json!({"id": 1, "subscribe": "/b"})));
    world.turn(0);
    world.socket(reader).room = 0;
    world.say(publisher, &json!({"publish": "/b", "content": 1}).to_string());
    world.turn(0);
    world.give_room(reader, usize::MAX / 2);
    world.turn(0);
    world.settle();
    let heard = world.heard(reader);
    assert!(heard.iter().any(|push| push["message"] == "/b" && push["at"] == "7.1"), "{heard:?}");
}
