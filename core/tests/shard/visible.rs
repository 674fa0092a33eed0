//! Subjects whose messages are seen only from the disk: what is read back from the journal ends where everybody else's view ends, so that
//! nobody receives a message that a crash may still take back, and nobody receives one twice when it is shown.

use crate::world::past::Past;
use crate::world::{Place, World, open_settings};
use godwit_core::node::Progress;
use godwit_core::settings::{JournalSettings, PatternSettings};
use serde_json::{Value, json};

fn world() -> World {
    let mut settings = open_settings();
    settings.journal = Some(JournalSettings::default());
    settings.limits.log_messages_max = 3;
    settings.patterns = vec![PatternSettings {
        pattern: "/a".to_owned(),
        visible: Some("journaled".to_owned()),
        ..PatternSettings::default()
    }];
    World::new(settings, 1, false)
}

fn publish(world: &mut World, publisher: Place, count: u64) {
    for number in 0..count {
        world.say(publisher, &json!({"publish": "/a", "content": number}).to_string());
        world.turn(0);
    }
}

fn sync(world: &mut World, synced: u64) {
    world.node.lock().unwrap().journaled(Progress { synced, ..Progress::default() });
    world.turn_all();
}

fn ats(heard: &[Value]) -> Vec<&str> {
    assert!(heard.iter().all(|value| value["gap"].is_null()), "{heard:?}");
    heard.iter().filter(|value| value["message"].is_string()).filter_map(|value| value["at"].as_str()).collect()
}

fn positions(range: std::ops::RangeInclusive<u64>) -> Vec<String> {
    range.map(|sequence| format!("7.{sequence}")).collect()
}

#[test]
fn what_is_read_back_ends_where_messages_may_be_seen() {
    for command in [
        json!({"id": 1, "subscribe": "/a", "after": "7.2"}),
        json!({"id": 1, "subscribe": "/a", "since": "RESUME_TOKEN"}),
        json!({"id": 1, "subscribe": "/*", "since": "RESUME_TOKEN"}),
    ] {
        for page_max in [3, 100] {
            let mut world = world();
            let (publisher, first) = (world.connect(0), world.connect(0));
            publish(&mut world, publisher, 2);
            sync(&mut world, 2);
            let heard = world.ask(first, r#"{"id":1,"subscribe":"/*"}"#);
            let resume_token =
                heard.iter().find_map(|value| value["resume_token"].as_str()).expect("a resume token").to_owned();
            world.gone(first);
            publish(&mut world, publisher, 18);
            sync(&mut world, 20);
            // These are written, and not on the disk yet.
            publish(&mut world, publisher, 4);
            let mut past = Past { page_max, ..Past::default() };
            past.note(&world);
            let reader = world.connect(0);
            world.say(reader, &command.to_string().replace("RESUME_TOKEN", &resume_token));
            world.turn(0);
            past.serve(&mut world);
            assert_eq!(ats(&world.heard(reader)), positions(3..=20), "{command}");
            sync(&mut world, 22);
            past.serve(&mut world);
            assert_eq!(ats(&world.heard(reader)), positions(21..=22), "{command}");
            sync(&mut world, 24);
            publish(&mut world, publisher, 1);
            sync(&mut world, 25);
            past.serve(&mut world);
            assert_eq!(ats(&world.heard(reader)), positions(23..=25), "{command}");
        }
    }
}

#[test]
fn a_purge_takes_what_was_accepted_and_is_not_seen_yet() {
    let mut world = world();
    let publisher = world.connect(0);
    let kept =
        |number: u64| json!({"publish": "/a", "content": {"k": number}, "retain": true, "merge": true}).to_string();
    world.say(publisher, &kept(1));
    world.turn(0);
    sync(&mut world, 1);
    world.say(publisher, &kept(2));
    world.say(publisher, &kept(3));
    world.turn(0);
    world.purge("/a");
    world.say(publisher, &json!({"publish": "/a", "content": {"after": 1}, "retain": true, "merge": true}).to_string());
    world.turn(0);
    sync(&mut world, 3);
    let node = world.node.lock().unwrap();
    let log = node.find("/a").expect("is known");
    assert!(node.snapshot(log, world.now).is_none(), "nothing of it is left");
    assert_eq!((node.place_last(log, 10).1, node.head(log).at.sequence), (0, 3));
    drop(node);
    sync(&mut world, 4);
    let node = world.node.lock().unwrap();
    assert_eq!(node.place_last(log, 10).1, 1);
    let snapshot = node.snapshot(node.find("/a").expect("is known"), world.now).expect("a state");
    assert_eq!(snapshot.content(), br#"{"after":1}"#, "of what came after the purge alone");
}
