//! A drain ends when it said it would, whoever is connected and however far that one has come.
use crate::mqtt::{connect, listeners};
use crate::world::{Place, World, open_settings};
use godwit_core::report::{Order, Report};
use godwit_core::settings::Settings;

const GRACE_MS: u64 = 1_000;
/// A sweep's interval, and the time that peers have to answer a close.
const MARGIN_MS: u64 = 1_000;

fn settings(asks: bool) -> Settings {
    let mut settings = Settings { listeners: listeners(), asks_on_connect: asks, ..open_settings() };
    settings.limits.close_ms_max = 60_000;
    settings.limits.handshake_ms_max = 60_000;
    settings
}

/// When a drain has ended, as far as it has (ms after it began).
fn drain(world: &mut World) -> Option<u64> {
    world.order(0, Order::Drain { grace_ms: GRACE_MS, spread_ms: 500 });
    (0..600).map(|step| step * 50).find(|_| {
        world.turn_all();
        let is_over = world.reports().iter().any(|report| matches!(report, Report::Drained { .. }));
        world.advance(50);
        is_over
    })
}

/// A sweep looks at a part of all connections; `phase`: at which.
fn check(name: &str, phase: u64, world: &mut World) {
    for _ in 0..phase {
        world.advance(250);
        world.turn_all();
    }
    let took_ms = drain(world);
    assert!(took_ms.is_some_and(|ms| ms <= GRACE_MS + MARGIN_MS), "{name}: {took_ms:?}");
}

#[test]
fn a_login_that_hangs_does_not_make_a_drain_longer() {
    type Login = fn(&mut World) -> Place;
    let logins: [(&str, Login); 7] = [
        ("silent", |world| world.accept(0)),
        ("silent on MQTT", |world| world.accept_from(0, ([127, 0, 0, 1], 4000).into(), 1)),
        ("half a request", |world| {
            let place = world.accept(0);
            world.bytes(place, b"GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\nAuth");
            place
        }),
        ("a token over HTTP", |world| {
            let place = world.accept(0);
            world.bytes(place, b"GET /v1/stream?subject=/a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\n\r\n");
            place
        }),
        ("a token over WebSocket", |world| {
            let place = world.connect(0);
            world.say(place, r#"{"id":0,"connect":{"token":"t"}}"#);
            place
        }),
        ("a WebSocket without a word", |world| world.connect(0)),
        ("CONNECT", |world| crate::mqtt::come(world, 0, &connect("c", true))),
    ];
    for (name, login) in logins {
        for phase in 0..8 {
            let mut world = World::new(settings(true), 1, phase % 2 == 0);
            for _ in 0..3 {
                login(&mut world);
                world.turn_all();
            }
            check(name, phase, &mut world);
        }
    }
}

#[test]
fn who_does_not_answer_its_close_or_reads_nothing_does_not_make_a_drain_longer() {
    for is_blocked in [false, true] {
        for phase in 0..16 {
            let mut world = World::new(settings(false), 1, phase < 8);
            let (json, mqtt) = (world.connect(0), crate::mqtt::come(&mut world, 0, &connect("c", true)));
            let stream = world.accept(0);
            world.bytes(stream, b"GET /v1/stream?subject=/a HTTP/1.1\r\nHost: h\r\n\r\n");
            let poll = world.accept(0);
            world.bytes(poll, b"GET /v1/messages?subject=/b&wait=600 HTTP/1.1\r\nHost: h\r\n\r\n");
            world.turn_all();
            world.ask(json, r#"{"id":1,"subscribe":"/a"}"#);
            if is_blocked {
                for place in [json, mqtt, stream, poll] {
                    world.socket(place).room = 0;
                }
                let publisher = world.connect(0);
                world.ask(publisher, r#"[{"publish":"/a","content":1},{"publish":"/b","content":1}]"#);
                world.gone(publisher);
            }
            check(&format!("blocked {is_blocked}"), phase, &mut world);
        }
    }
}
