//! A full node takes first what no session is owed: as long as there is such a message, wherever it is, no session loses one.

use super::owed::{arrive, hear, missed, subscribe_five};
use crate::mqtt::listeners;
use crate::world::{World, open_settings};
use serde_json::json;

const OWED: u32 = 8_000;
const BULK: u32 = 32;
const BULK_BYTES: usize = 12_000;

/// A node that is full: a session away is owed many small messages, and so many subjects have a few large ones that nobody is owed.
fn fill(subjects: u32, begins_with_state: bool) -> World {
    let mut settings = open_settings();
    settings.listeners = listeners();
    settings.limits.log_messages_max = 100_000;
    settings.limits.mqtt_owed_messages_max = 100_000;
    settings.limits.logs_bytes_max = 2_000_000;
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    let away = arrive(&mut world, 0, "away");
    subscribe_five(&mut world, away, "owed", 1);
    hear(&mut world, away, true);
    world.gone(away);
    let content = "x".repeat(BULK_BYTES);
    for number in 0..BULK {
        let is_state = begins_with_state && number < subjects;
        let subject = format!("/bulk/{}", number % subjects);
        world.say(publisher, &json!({"publish": subject, "text": content, "retain": is_state}).to_string());
        world.turn_all();
    }
    for number in 0..OWED {
        world.say(publisher, &json!({"publish": "/owed", "content": number, "retain": false}).to_string());
        if number % 256 == 0 {
            world.turn_all();
        }
    }
    world.turn_all();
    assert_eq!(world.node.lock().unwrap().totals().messages_evicted_by_bytes, 0);
    world
}

#[test]
fn nothing_that_is_owed_goes_while_messages_that_nobody_is_owed_remain() {
    for (subjects, begins_with_state) in [(1, false), (3, false), (16, false), (1, true), (16, true), (32, false)] {
        let mut world = fill(subjects, begins_with_state);
        let free = 2_000_000 - world.node.lock().unwrap().totals().message_bytes as usize;
        let held = if begins_with_state { subjects as usize } else { 0 };
        // So large that nearly all that nobody is owed has to go, and none of it is left to keep some room free.
        let large = free + (BULK as usize - held - 1) * BULK_BYTES;
        let publisher = world.connect(0);
        let text = "y".repeat(large);
        let answers = world.ask(publisher, &json!({"id": 1, "publish": "/large", "text": text}).to_string());
        assert_eq!(answers[0]["ok"], "published", "{answers:?}");
        let away = arrive(&mut world, 0, "away");
        let (_, numbers) = hear(&mut world, away, true);
        assert_eq!(numbers.len(), OWED as usize, "{subjects} {begins_with_state}");
        assert!(missed(&world).is_empty());
    }
}

/// The same where what is owed is spread over so many subjects that no look meets the others by chance.
#[test]
fn nothing_that_is_owed_goes_however_many_subjects_are_owed() {
    const SUBJECTS: u32 = 12_000;
    let mut settings = open_settings();
    settings.listeners = listeners();
    settings.limits.mqtt_owed_messages_max = 100_000;
    settings.limits.logs_bytes_max = 8_000_000;
    settings.limits.mqtt_owed_node_bytes_max = 4_000_000;
    let mut world = World::new(settings, 1, false);
    let publisher = world.connect(0);
    let away = arrive(&mut world, 0, "away");
    subscribe_five(&mut world, away, "owed/#", 1);
    hear(&mut world, away, true);
    world.gone(away);
    let say = |world: &mut World, subject: String, text: &str, number: u32| {
        world.say(publisher, &json!({"publish": subject, "text": text, "retain": false}).to_string());
        if number.is_multiple_of(256) {
            world.turn_all();
        }
    };
    for number in 0..SUBJECTS {
        say(&mut world, format!("/owed/{number}"), "x", number);
    }
    let content = "x".repeat(BULK_BYTES);
    for number in 0..BULK {
        say(&mut world, format!("/bulk/{number}"), &content, number);
    }
    world.turn_all();
    let free = 8_000_000 - world.node.lock().unwrap().totals().message_bytes as usize;
    // More than is free, several times: each takes of the bulk, and of what came before it.
    let large = "y".repeat(900_000.min(free / 2 + BULK_BYTES));
    for number in 0..12 {
        say(&mut world, format!("/large/{number}"), &large, 0);
        world.turn_all();
    }
    let (evicted, owed) = {
        let node = world.node.lock().unwrap();
        let lost = (0..SUBJECTS).filter(|number| {
            let log = node.find(&format!("/owed/{number}")).expect("is known");
            node.place_last(log, 1).1 == 0
        });
        (node.totals().messages_evicted_by_bytes, lost.count())
    };
    assert!(evicted > 0 && owed == 0, "{evicted} went, {owed} of them owed");
}
