//! The last fifth of a table that all fill together is for holders and addresses that have little of it.
use super::{come, rule};
use crate::world::{Place, World, open_settings};
use serde_json::json;

/// Publishes on so many subjects of its own; how many were accepted, and the code of the first that was not.
fn fill(world: &mut World, place: Place, stem: &str, count: usize) -> (usize, Option<u64>) {
    let mut accepted = 0;
    for number in 0..count {
        let heard =
            world.ask(place, &json!({"id": 1, "publish": format!("{stem}/{number}"), "content": 1}).to_string());
        if let Some(code) = heard[0]["error"].as_u64() {
            return (accepted, Some(code));
        }
        accepted += 1;
    }
    (accepted, None)
}

#[test]
fn nobody_alone_fills_the_last_fifth_of_the_subjects() {
    let mut settings = open_settings();
    settings.asks_on_connect = true;
    settings.limits.subjects_max = 500;
    let mut world = World::new(settings, 1, false);
    let (greedy, _) = come(&mut world, &[rule("/**", "both", "allow")]);
    let (count, code) = fill(&mut world, greedy, "/u/greedy", 600);
    assert!((390..=400).contains(&count) && code == Some(4131), "{count} {code:?}");
    let heard = world.ask(greedy, r#"{"id":2,"subscribe":"/u/greedy/more"}"#);
    assert_eq!(heard[0]["error"], 4131, "by subscribing neither");
    for last in 1..4 {
        let guest = world.accept_from(0, ([192, 0, 2, last], 4000).into(), 0);
        world.upgrade(guest, "json");
        world.say(guest, r#"{"connect":{}}"#);
        assert_eq!(
            fill(&mut world, guest, &format!("/u/guest{last}"), 20),
            (5, Some(4131)),
            "each address has a hundredth"
        );
    }
    assert_eq!(fill(&mut world, greedy, "/u/greedy", 300), (300, None), "what there is goes on");
}

#[test]
fn nobody_alone_fills_the_last_fifth_of_a_shards_streams() {
    let mut settings = open_settings();
    settings.asks_on_connect = true;
    settings.limits.streams_per_shard_max = 200;
    settings.limits.subscriptions_per_connection_max = 1_000;
    let mut world = World::new(settings, 1, false);
    let (greedy, _) = come(&mut world, &[rule("/**", "both", "allow")]);
    let count = |world: &mut World, place: Place, stem: &str| {
        let ask = |n: usize| format!(r#"{{"id":1,"subscribe":"/{stem}/{n}/*"}}"#);
        (0..200).take_while(|n| world.ask(place, &ask(*n))[0]["error"] != 4131).count()
    };
    assert_eq!(count(&mut world, greedy, "greedy"), 160);
    let guest = world.accept_from(0, ([192, 0, 2, 9], 4000).into(), 0);
    world.upgrade(guest, "json");
    world.say(guest, r#"{"connect":{}}"#);
    assert_eq!(count(&mut world, guest, "guest"), 2);
    world.ask(greedy, r#"{"id":1,"unsubscribe":"/greedy/1/*"}"#);
    assert_eq!(
        world.ask(guest, r#"{"id":1,"subscribe":"/greedy/2/*"}"#)[0]["ok"],
        "subscribed",
        "what there is is shared"
    );
}

#[test]
fn nobody_alone_fills_the_last_fifth_of_the_connections() {
    let mut settings = open_settings();
    settings.limits.connections_max = 100;
    settings.trusted_proxies = vec!["198.51.100.1".into()];
    let mut world = World::new(settings, 2, false);
    let come = |world: &mut World, last: u8, shard: usize| {
        let place = world.accept_from(shard, ([192, 0, 2, last], 4000).into(), 0);
        !world.socket(place).is_closed
    };
    assert_eq!((0..90).filter(|n| come(&mut world, 1, n % 2)).count(), 80);
    assert!(come(&mut world, 2, 0) && !come(&mut world, 2, 1) && come(&mut world, 3, 1));
    let behind = world.accept_from(0, ([198, 51, 100, 1], 4000).into(), 0);
    assert!(!world.socket(behind).is_closed, "a proxy has no share");
    world.set_peer(behind, ([192, 0, 2, 1], 4000).into());
    world.bytes(behind, b"GET /v1/health HTTP/1.1\r\nHost: h\r\n\r\n");
    world.turn_all();
    let answer = String::from_utf8_lossy(&world.socket(behind).taken).into_owned();
    assert!(answer.contains("\"code\":4208") && answer.contains("share"), "whom it speaks for has one: {answer}");
}
