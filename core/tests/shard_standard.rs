//! Standard messages on subjects that keep nothing: they reach who listens, under their own name, and nobody else.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use serde_json::{Value, json};
use world::{World, open_settings};

#[test]
fn standard_messages_of_unkept_subjects_reach_their_own_patterns_only() {
    for wire in ["json", "binary"] {
        let mut world = World::new(open_settings(), 1, false);
        let publisher = world.connect(0);
        let reader = world.connect_on(0, wire);
        let other = world.connect_on(0, wire);
        let ask = |world: &mut World, place, command: Value| {
            if wire == "json" {
                world.say(place, &command.to_string());
            } else {
                world.say_bytes(place, &world::binary::subscribe(&command));
            }
            world.turn(0);
            world.settle();
            world.heard(place);
        };
        for pattern in ["/a/*", "/b/*"] {
            ask(&mut world, reader, json!({"id": 1, "subscribe": pattern}));
        }
        ask(&mut world, other, json!({"id": 1, "subscribe": "/c/*"}));
        for subject in ["/a/1", "/b/1", "/a/2", "/c/1", "/a/1", "/d/1"] {
            let publish = json!({"publish": subject, "content": subject, "guaranteed": false});
            world.say(publisher, &publish.to_string());
        }
        world.turn(0);
        world.settle();
        let heard = |world: &mut World, place| -> Vec<String> {
            let messages = world.heard(place).into_iter().filter(|push| !push["message"].is_null());
            messages
                .map(|push| {
                    assert_eq!(push["message"], push["content"], "{wire}: {push}");
                    push["message"].as_str().unwrap().to_owned()
                })
                .collect()
        };
        let mut own = heard(&mut world, reader);
        own.sort_unstable();
        assert_eq!(own, ["/a/1", "/a/1", "/a/2", "/b/1"], "{wire}");
        assert_eq!(heard(&mut world, other), ["/c/1"], "{wire}");
    }
}
