//! Subscriptions of one client that overlap, where one takes the place of another while the client is behind.

use std::sync::Arc;

use super::{come, connect, listeners, packet, subscribe};
use crate::world::{Place, World, open_settings};
use godwit_core::report::Order;
use godwit_core::settings::{RuleSettings, Settings};
use serde_json::json;

struct Client {
    settings: Settings,
    world: World,
    publisher: Place,
    place: Place,
}

impl Client {
    fn new(in_flight: usize) -> Self {
        let mut settings = open_settings();
        settings.limits.mqtt_inflight_max = in_flight;
        settings.listeners = listeners();
        let mut world = World::new(settings.clone(), 1, false);
        let publisher = world.connect(0);
        let place = come(&mut world, 0, &connect("c", false));
        world.turn(0);
        Self { settings, world, publisher, place }
    }

    fn subscribe(&mut self, filter: &str, qos: u8) {
        self.world.bytes(self.place, &subscribe(&[(filter, qos)]));
        self.world.turn(0);
    }

    fn publish(&mut self, count: u32) {
        for number in 0..count {
            self.world.ask(self.publisher, &json!({"publish": "/e/a", "content": number}).to_string());
        }
        self.world.turn(0);
    }

    /// How many messages came since the last time, now that the socket takes anything.
    fn hear(&mut self) -> usize {
        self.world.give_room(self.place, usize::MAX / 2);
        self.world.turn_all();
        let taken = std::mem::take(&mut self.world.socket(self.place).taken);
        taken.windows(5).filter(|bytes| *bytes == b"\0\x03e/a").count()
    }
}

#[test]
fn one_at_qos_0_that_is_asked_for_at_another_is_not_robbed_by_one_that_began_later() {
    let mut client = Client::new(10);
    client.subscribe("e/a", 0);
    client.world.socket(client.place).room = 0;
    client.publish(3);
    client.subscribe("e/#", 1);
    client.publish(2);
    client.subscribe("e/a", 1);
    assert_eq!(client.hear(), 5);
}

#[test]
fn what_a_subscription_that_rights_took_was_to_send_another_one_that_may_sends() {
    let mut client = Client::new(1);
    let mut settings = client.settings.clone();
    client.subscribe("e/a", 1);
    client.subscribe("e/#", 2);
    client.publish(3);
    let rule = |pattern: &str, actions: &str| RuleSettings {
        pattern: pattern.into(),
        actions: actions.into(),
        verdict: "allow".into(),
    };
    settings.anonymous = Some(vec![rule("/**", "publish"), rule("/e/a", "both")]);
    client.world.order(0, Order::Configure(Arc::new(settings)));
    let mut came = client.hear();
    for answer in [[0x50, 1], [0x70, 1], [0x40, 2], [0x40, 3]] {
        client.world.bytes(client.place, &packet(answer[0], &[0, answer[1]]));
        came += client.hear();
    }
    assert_eq!(came, 3);
}
