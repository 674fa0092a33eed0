//! Who shows a token waits unread for the server's answer, and no longer than that.
#![allow(clippy::expect_used)] // a test that expects in vain has failed
mod world;

use std::sync::Arc;

use godwit_core::codes::Code;
use godwit_core::report::{ConnectionId, Order, Report};
use godwit_core::rights::Rights;
use godwit_core::settings::Settings;
use world::{Place, World, open_settings};

/// A client that has shown its token, and the connection the question was about.
fn asking(world: &mut World) -> (Place, ConnectionId) {
    let place = world.connect(0);
    world.say(place, r#"[{"id":1,"connect":{"token":"t"}},{"subscribe":"/a"}]"#);
    world.turn(0);
    let connection = world.reports.iter().find_map(|report| match report {
        Report::Authorize { connection, .. } => Some(*connection),
        _ => None,
    });
    (place, connection.expect("a question"))
}

#[test]
fn a_refused_client_is_read_again_so_that_its_own_close_ends_the_connection() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let (place, connection) = asking(&mut world);
    assert!(world.socket(place).is_paused, "nothing is read behind a question");
    world.order(0, Order::Refuse { connection, code: Code::TokenInvalid, reason: "no".into() });
    world.turn(0);
    assert!(!world.socket(place).is_paused);
    assert!(!world.socket(place).is_closed);
    world.bytes(place, &[0x88, 0x80, 0, 0, 0, 0]);
    world.turn(0);
    assert!(world.socket(place).is_closed);
}

#[test]
fn a_token_that_expires_soon_is_warned_of_at_once_and_one_that_has_expired_does_nothing_more() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let rules = Rights::compile(&open_settings().anonymous.unwrap_or_default()).map(Arc::new).expect("rules");
    for (in_ms, said) in [(500, "token_expiring"), (0, "close")] {
        let (place, connection) = asking(&mut world);
        let expires_ms = Some(world.now.wall_ms + in_ms);
        let grant = Order::Grant { connection, identity: "ann".into(), rights: Arc::clone(&rules), expires_ms };
        world.order(0, grant);
        world.turn(0);
        let heard: Vec<String> = world.heard(place).iter().map(ToString::to_string).collect();
        assert!(heard.iter().any(|line| line.contains(said)), "{heard:?}");
        assert!(!world.socket(place).is_paused);
        world.reports.clear();
    }
}
