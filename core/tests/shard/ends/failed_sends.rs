//! A send that fails ends its connection at once, in whatever state the connection is: nothing waits for a socket that will never take bytes.

use crate::world::{Place, World, open_settings};
use serde_json::json;

/// A subscriber whose socket is full and that has a backlog; its peer resets the connection.
fn reset_with_backlog(is_pending: bool, selector: &str, prepare: impl Fn(&mut World, Place)) -> (World, Place) {
    let mut world = World::new(open_settings(), 1, is_pending);
    let (publisher, slow) = (world.connect(0), world.connect(0));
    world.ask(slow, &json!({"id": 1, "subscribe": selector}).to_string());
    world.socket(slow).room = 700;
    for n in 0..40 {
        world.ask(publisher, &json!({"publish": "/a", "content": {"n": n, "pad": "x".repeat(200)}}).to_string());
    }
    prepare(&mut world, slow);
    world.socket(slow).is_reset = true;
    world.give_room(slow, 1);
    world.turn_all();
    (world, slow)
}

/// A masked, empty Close.
const CLOSE: [u8; 6] = [0x88, 0x80, 0, 0, 0, 0];

#[test]
fn a_reset_connection_is_closed_by_its_next_send() {
    for is_pending in [false, true] {
        for selector in ["/a", "/*"] {
            let (mut world, slow) = reset_with_backlog(is_pending, selector, |_, _| {});
            assert!(world.socket(slow).is_closed, "{selector}");
        }
    }
}

#[test]
fn a_reset_after_a_close_with_a_backlog_is_not_tried_again_and_again() {
    for is_pending in [false, true] {
        let (mut world, slow) = reset_with_backlog(is_pending, "/a", |world, slow| {
            world.bytes(slow, &CLOSE);
            world.turn_all();
            assert!(!world.socket(slow).is_closed, "what it was cut in is still to be sent");
        });
        assert!(world.socket(slow).is_closed);
        // The driver says the same once more, late.
        world.gone(slow);
        world.turn_all();
    }
}
