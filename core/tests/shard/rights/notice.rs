//! The end of a token is told in time, once, and not to all at once.
use std::sync::Arc;

use crate::access::asking;
use crate::world::{World, open_settings};
use godwit_core::holder::Holder;
use godwit_core::report::Order;
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
    let mut told: Vec<u64> = Vec::new();
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
                told.extend(
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
        assert_eq!(told.len(), count, "{told:?}");
        expires_ms = if steps == 20 { world.now.wall_ms + 60_000 } else { expires_ms };
    }
    assert!(told.iter().all(|&left_ms| (13_500..=20_250).contains(&left_ms)), "{told:?}");
    assert!(told.iter().collect::<std::collections::BTreeSet<_>>().len() > 5, "together: {told:?}");
}
