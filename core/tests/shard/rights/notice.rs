//! The end of a token is told in time, once, and not to all at once.
use std::sync::Arc;

use crate::access::asking;
use crate::world::{Place, World, open_settings};
use godwit_core::holder::Holder;
use godwit_core::report::{Order, Report};
use godwit_core::rights::Rights;
use godwit_core::settings::Settings;

#[test]
fn holders_of_tokens_of_a_minute_are_told_once_each_at_a_moment_of_its_own() {
    let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
    let rules = Rights::compile(&open_settings().anonymous.unwrap_or_default()).map(Arc::new).expect("rules");
    let mut expires_ms = world.now.wall_ms + 60_000;
    let clients: Vec<_> = std::iter::repeat_with(|| {
        world.reports.clear();
        asking(&mut world)
    })
    .take(20)
    .collect();
    let mut notices: Vec<u64> = Vec::new();
    for (steps, count) in [(190, 20), (20, 20), (190, 40)] {
        for (place, connection) in &clients {
            let grant = Order::Grant {
                connection: *connection,
                holder: Holder::new("", "authorizer", "ann"),
                rights: Arc::clone(&rules),
                expires_ms: Some(expires_ms),
                token: None,
            };
            world.order(0, grant);
            world.bytes(*place, &[0x8a, 0x80, 0, 0, 0, 0]);
        }
        for _ in 0..steps {
            for (place, _) in &clients {
                let heard = world.heard(*place);
                notices.extend(
                    heard
                        .iter()
                        .filter(|one| one["notice"] == "token_expiring")
                        .map(|_| expires_ms - world.now.wall_ms),
                );
            }
            world.advance(250);
            world.turn(0);
        }
        // Shown again, a token that ends no later is nothing to tell of again.
        assert_eq!(notices.len(), count, "{notices:?}");
        expires_ms = if steps == 20 { world.now.wall_ms + 60_000 } else { expires_ms };
    }
    assert!(notices.iter().all(|&left_ms| (13_500..=20_250).contains(&left_ms)), "{notices:?}");
    assert!(notices.iter().collect::<std::collections::BTreeSet<_>>().len() > 5, "together: {notices:?}");
}

/// A client by its token, whose end is `in_ms` away, subscribed to `/a`; and one who publishes.
fn come_until(world: &mut World, in_ms: u64) -> (Place, Place) {
    let (place, connection) = asking(world);
    let rules = Rights::compile(&open_settings().anonymous.unwrap_or_default()).map(Arc::new).expect("rules");
    let expires_ms = Some(world.now.wall_ms + in_ms);
    let holder = Holder::new("", "authorizer", "ann");
    world.order(0, Order::Grant { connection, holder, rights: rules, expires_ms, token: None });
    world.say(place, r#"{"id":1,"subscribe":"/a"}"#);
    world.turn_all();
    let publisher = world.connect(0);
    (place, publisher)
}

#[test]
fn nothing_is_sent_a_tenth_of_a_second_after_the_token_has_ended() {
    const SLACK_MS: u64 = 100;
    for in_ms in [1, 40, 999, 5_000, 61_234] {
        let mut world = World::new(Settings { asks_on_connect: true, ..open_settings() }, 1, false);
        let (place, publisher) = come_until(&mut world, in_ms);
        let end_ms = world.now.wall_ms + in_ms;
        world.heard(place);
        let mut last_ms = 0;
        // A node that rests between: it turns when it says that it has to, and when somebody publishes.
        while world.now.wall_ms < end_ms + 10 * SLACK_MS {
            let until_due = world.shard(0).deadline_ms().saturating_sub(world.now.mono_ms);
            world.advance(until_due.clamp(1, 7));
            if world.now.wall_ms + 2_000 > end_ms {
                world.say(publisher, r#"{"publish":"/a","content":1}"#);
            }
            world.turn_all();
            if world.heard(place).iter().any(|push| push.get("content").is_some()) {
                last_ms = world.now.wall_ms;
            }
        }
        assert!(last_ms <= end_ms + SLACK_MS, "{in_ms}: {} ms late", last_ms.saturating_sub(end_ms));
        assert!(in_ms < 2 * SLACK_MS || last_ms + SLACK_MS >= end_ms, "{in_ms}: it was served until its end");
    }
}

#[test]
fn a_renewed_token_is_reported_once_and_the_first_one_is_not() {
    let settings = Settings { asks_on_connect: true, reports_sessions: true, ..open_settings() };
    let mut world = World::new(settings, 1, false);
    let (place, connection) = asking(&mut world);
    let renewed = |world: &mut World, token: &str| {
        let rights = Arc::new(Rights::default());
        let holder = Holder::new("acme", "jwt:https://id", "ann");
        world.order(0, Order::Grant { connection, holder, rights, expires_ms: None, token: Some(token.into()) });
        world.turn_all();
        let reports = world.reports().into_iter().filter_map(|report| match report {
            Report::Renewed { holder, token, .. } => {
                Some((holder.tenant.to_string(), token.unwrap_or_default().to_string()))
            }
            _ => None,
        });
        reports.collect::<Vec<_>>()
    };
    assert_eq!(renewed(&mut world, "t1"), []);
    world.say(place, r#"{"id":9,"connect":{"token":"next"}}"#);
    world.turn_all();
    assert_eq!(renewed(&mut world, "t2"), [("acme".to_owned(), "t2".to_owned())]);
}

#[test]
fn another_users_request_on_a_kept_http_connection_renews_nothing() {
    let settings = Settings { asks_on_connect: true, reports_sessions: true, ..open_settings() };
    let mut world = World::new(settings, 1, false);
    let place = world.accept_from(0, ([192, 0, 2, 1], 4000).into(), 0);
    let mut announced: Vec<String> = Vec::new();
    // The third shows the same text again, and the server is not asked.
    for (identity, token) in [("ann", "t1"), ("bob", "t2"), ("bob", "t2"), ("bob", "t3"), ("ann", "t1")] {
        let request =
            format!("GET /v1/snapshot?subject=/a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n\r\n");
        world.bytes(place, request.as_bytes());
        world.turn_all();
        for report in world.reports() {
            if let Report::Authorize { connection, .. } = report {
                let rights = Arc::new(Rights::default());
                let holder = Holder::new("acme", "jwt:https://id", identity);
                world
                    .order(0, Order::Grant { connection, holder, rights, expires_ms: None, token: Some(token.into()) });
                world.turn_all();
            }
        }
        announced.extend(world.reports().into_iter().filter_map(|report| match report {
            Report::Connected { holder, .. } => Some(format!("connected {}", holder.identity)),
            Report::Renewed { holder, token, .. } => {
                Some(format!("renewed {} {}", holder.identity, token.unwrap_or_default()))
            }
            _ => None,
        }));
    }
    assert_eq!(announced, ["connected ann", "renewed bob t3"]);
}
